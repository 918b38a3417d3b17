"""One of several options, after a marker or as the whole reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Parsed, Reply

from ._options import read_option
from ._text import BLANK, Parsing, end_of


@dataclass(frozen=True, slots=True)
class Choice(Reply):
    """One of finitely many texts, written after a marker or as the whole reply.

    The tolerant mode looks for the marker in any case, and with two or more hashes before it if it has hashes. The last
    marker that is followed by an option counts; quotes, bold, brackets, a colon or line breaks may stand between. Case
    is ignored unless options differ in nothing else. An option ends at a word boundary: "Group 12" is not "Group 1",
    "None" is not "No", "1.0" is not "1". A list of several ("Yes or No") is no option. Without such a marker, an option
    counts that is the whole reply or is stated clearly in another way: in a JSON object, an element, after "Final
    Answer:", on a last line of its own (`plain_option`).

    Attributes:
        options: the legal actions, in the order in which the prompt lists them.
        marker: what announces the answer, e.g. "### Final Answer ###"; None if the reply is the answer.
        parsing: "reference" takes the first exact marker that is followed, after blanks only, by an option, and there
            the first option, in order, with which the text begins.
    """

    options: tuple[str, ...] = field()
    marker: str | None = None
    parsing: Parsing = "tolerant"

    def parse(self, text: str) -> Parsed:
        """The option that `text` states."""
        if self.parsing == "reference":
            option = self._first_prefix(text, self.marker or "")
        else:
            option = read_option(text, self.options, self.marker)
        return Parsed(option) if option is not None else Parsed(error=self._complaint())

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the marker and an option."""
        lead = f"{self.marker} " if self.marker else ""
        return {"choice": [lead + option for option in self.options]}

    def _first_prefix(self, text: str, marker: str) -> str | None:
        at = text.find(marker)
        while at >= 0:
            start = end_of(BLANK, text, at + len(marker))
            for option in self.options:
                if text.startswith(option, start):
                    return option
            at = text.find(marker, at + 1) if marker else -1
        return None

    def _complaint(self) -> str:
        listed = ", ".join(repr(option) for option in self.options[:20])
        more = f", … ({len(self.options)} in all)" if len(self.options) > 20 else ""
        where = f"after {self.marker!r}" if self.marker else "as the whole reply"
        return f"no valid answer was found {where}; the valid answers are: {listed}{more}"
