"""One of several options, after a marker or as the whole reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.api import Parsed, Reply

from ._options import another_follows, plain_option
from ._text import BLANK, DECORATION, WRAPPING, Parsing, end_of


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
            option = self._last_marked(text, self.marker) if self.marker else None
            option = option or self._whole(text) or plain_option(text, self._whole)
        return Parsed(option) if option is not None else Parsed(error=self._complaint())

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the marker and an option."""
        lead = f"{self.marker} " if self.marker else ""
        return {"choice": [lead + option for option in self.options]}

    def _last_marked(self, text: str, marker: str) -> str | None:
        words, hashes = _marker(marker)
        option = None
        for match in words.finditer(text):
            if hashes and not text.endswith("##", 0, _back_over_blanks(text, match.start())):
                continue
            for skip in (BLANK, DECORATION):
                at = end_of(skip, text, match.end())
                option = self._option_at(text, at) or option
        return option

    def _option_at(self, text: str, start: int) -> str | None:
        """The longest option that stands at `start` and ends at a word boundary."""
        table, longest, fold = _table(self.options)
        stop = start + 4 * longest + 64  # room for doubled blanks, and for what follows the option
        window = _plain(text[start:stop], fold)
        for size in range(min(longest, len(window)), 0, -1):
            cut_off = size == len(window) and stop < len(text)
            if window[:size] in table and not cut_off and not _goes_on(window, size):
                several = another_follows(window, size, _any(self.options))
                return None if several else table[window[:size]]
        return None

    def _whole(self, text: str) -> str | None:
        table, _, fold = _table(self.options)
        bare = _plain(text, fold), _plain(text.strip(WRAPPING), fold)
        return next((table[form] for form in bare if form in table), None)

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


@lru_cache(maxsize=512)
def _table(options: tuple[str, ...]) -> tuple[dict[str, str], int, bool]:
    """Plain form → option, the longest plain form, and whether case may be ignored."""
    fold = len({_plain(option, True) for option in options}) == len(set(options))
    table = {_plain(option, fold): option for option in options}
    return table, max(map(len, table), default=0), fold


@lru_cache(maxsize=512)
def _any(options: tuple[str, ...]) -> re.Pattern[str]:
    """What finds any option in its plain form, at word boundaries."""
    table, _, _ = _table(options)
    return re.compile(rf"(?:{'|'.join(map(re.escape, sorted(table, key=len, reverse=True)))})(?!\w)")


@lru_cache(maxsize=64)
def _marker(marker: str) -> tuple[re.Pattern[str], bool]:
    """What finds a marker's words with anything harmless between them, and whether hashes must lead."""
    parts = [re.escape(part) for part in re.findall(r"\w+|[^\w\s#]", marker)] or [re.escape(marker)]
    edge = r"(?<!\w)" if parts[0][0].isalnum() else ""
    return re.compile(edge + r"[ \t*_`]*".join(parts) + r"[ \t*_`]*#*", re.IGNORECASE), marker.startswith("#")


def _plain(text: str, fold: bool) -> str:
    """`text` with single blanks, without case if `fold`."""
    plain = " ".join(text.split())
    return plain.casefold() if fold else plain


def _goes_on(text: str, end: int) -> bool:
    """Whether the word or number that `text[:end]` ends with goes on: Jose|ph, 1|.0, Mary|-Ann, Jose|'s."""
    after = text[end : end + 2]
    return after[:1].isalnum() or (after[:1] in tuple("._-'’") and after[1:].isalnum())


def _back_over_blanks(text: str, end: int) -> int:
    while end and text[end - 1] in " \t*_`":
        end -= 1
    return end
