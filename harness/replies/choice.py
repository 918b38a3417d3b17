"""One of several options: after a marker, or on a line that starts with a label such as `ACTION: WAIT`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Parsed, Reply, ReplyField

from .characters import BLANK, Parsing, end_of
from .options import read_option


@dataclass(frozen=True, slots=True)
class Choice(Reply):
    """One of finitely many texts, written after a marker or as the whole reply.

    The tolerant mode looks for the marker in any case, and with two or more hashes before it if it has hashes. The last
    marker that is followed by an option counts; quotes, bold, brackets, a colon or line breaks may come between. Case
    is ignored unless options differ in nothing else. An option ends at a word boundary: "Group 12" is not "Group 1",
    "None" is not "No", "1.0" is not "1". A list of several ("Yes or No") is not an option. Without such a marker, an
    option counts that is the whole reply or is stated clearly in another way: in a JSON object, an element, after
    "Final Answer:", on a last line of its own (`plain_option`).

    Attributes:
        options: the legal actions, in the order in which the prompt lists them.
        marker: what announces the answer, e.g. "### Final Answer ###"; None if the reply is the answer.
        parsing: "reference" takes the first exact marker that is followed, after blanks only, by an option, and there
            the first option, in order, with which the text begins.
    """

    options: tuple[str, ...] = field()
    marker: str | None = None
    parsing: Parsing = "tolerant"

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The answer, after the marker."""
        return (ReplyField("answer", self.marker or "", {"enum": list(self.options)}),)

    def parse(self, text: str) -> Parsed:
        """The option that `text` states."""
        if self.parsing == "reference":
            option = self._first_prefix(text, self.marker or "")
        else:
            option = read_option(text, self.options, self.marker)
        return Parsed(option) if option is not None else Parsed(error=self._complaint())

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the marker and an option."""
        return {"choice": [f"{self.marker or ''} {option}".lstrip() for option in self.options]}

    def _first_prefix(self, text: str, marker: str) -> str | None:
        at = text.find(marker)
        while at >= 0:
            start = end_of(BLANK, text, at + len(marker))
            if found := [option for option in self.options if text.startswith(option, start)]:
                return found[0]
            at = text.find(marker, at + 1) if marker else -1
        return None

    def _complaint(self) -> str:
        listed = ", ".join(repr(option) for option in self.options[:20])
        more = f", … ({len(self.options)} in all)" if len(self.options) > 20 else ""
        where = f"after {self.marker!r}" if self.marker else "as the whole reply"
        return f"no valid answer was found {where}; the valid answers are: {listed}{more}"


@dataclass(frozen=True, slots=True)
class Labelled(Reply):
    """One of finitely many words, announced by a label and a colon.

    The tolerant mode takes the last label that an option follows; quotes, bold, brackets or line breaks may stand
    between, case is ignored, and the parts of `GRAB_LEFT` may be joined by blanks, hyphens or an escaped underscore. A
    list of several ("GRAB_LEFT or WAIT", the prompt's own template) is not an option. Without such a label, an option
    counts that is stated clearly in another way: in a JSON object, an element, on a line of its own (`plain_option`).

    Attributes:
        options: the legal actions, in the order in which the prompt lists them.
        label: what announces the answer.
        noop: the option of an agent that does nothing.
        parsing: "reference" is DPBench's own code: in capitals, the first label that a word follows at once (also
            inside a longer word: REACTION:); that word, or the whole text if there is no such label, is searched for
            one option after the other, so "not GRAB_RIGHT" is GRAB_RIGHT.
    """

    options: tuple[str, ...] = field()
    label: str = "ACTION"
    noop: str | None = field(default=None)
    parsing: Parsing = "tolerant"

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The option, after the label."""
        return (ReplyField(self.label.lower(), f"{self.label}:", {"enum": list(self.options)}),)

    def parse(self, text: str) -> Parsed:
        """The option that `text` states."""
        is_reference = self.parsing == "reference"
        option = self._reference(text) if is_reference else read_option(text, self.options, f"{self.label}:")
        if option is not None:
            return Parsed(option)
        listed = ", ".join(self.options[:20])
        return Parsed(error=f"no valid answer was found after '{self.label}:'; the valid answers are: {listed}")

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the label and an option."""
        return {"choice": [f"{self.label}: {option}" for option in self.options]}

    def _reference(self, text: str) -> str | None:
        upper = text.upper()
        match = re.search(rf"{re.escape(self.label.upper())}:\s*(\w+)", upper)
        where = match[1] if match else upper
        found = (one for one in self.options if one.upper() in where or one.upper().replace("_", "") in where)
        return next(found, None)
