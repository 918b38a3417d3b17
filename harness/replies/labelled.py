"""One of several options, on a line that starts with a label: `ACTION: WAIT`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from harness.api import Parsed, Reply

from ._options import another_follows, plain_option
from ._text import DECORATION, WRAPPING, Parsing, end_of

_BEFORE = re.compile(rf"{DECORATION.pattern}(?:\\text\{{)?")
_JOINING = {"or", "and", "one", "of", "either"}
WINDOW = 400
"""Characters after a label that are read."""


@dataclass(frozen=True, slots=True)
class Labelled(Reply):
    """One of finitely many words, announced by a label and a colon.

    The tolerant mode takes the last label that an option follows; quotes, bold, brackets or line breaks may stand
    between, case is ignored, and the parts of `GRAB_LEFT` may be joined by blanks, hyphens or an escaped underscore. A
    line with nothing but all options echoes the prompt's own template and does not count; nor does a list of several
    ("GRAB_LEFT or WAIT"). Without such a label, an option counts that is stated clearly in another way: in a JSON
    object, an element, on a line of its own (`plain_option`).

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

    def parse(self, text: str) -> Parsed:
        """The option that `text` states."""
        option = self._reference(text) if self.parsing == "reference" else self._tolerant(text)
        if option is not None:
            return Parsed(option)
        listed = ", ".join(self.options[:20])
        return Parsed(error=f"no valid answer was found after '{self.label}:'; the valid answers are: {listed}")

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the label and an option."""
        return {"choice": [f"{self.label}: {option}" for option in self.options]}

    def _tolerant(self, text: str) -> str | None:
        option = _option(self.options)
        last = None
        for match in label(self.label).finditer(text):
            start = end_of(_BEFORE, text, match.end())
            stated = option.match(text, start, start + WINDOW)
            if stated is None or self._echoes(option, text, start) or another_follows(text, stated.end(), option):
                continue
            last = stated
        if last is not None:
            return _names(self.options)[_plain(last.group())]
        return self._exactly(text) or plain_option(text, self._exactly)

    def _exactly(self, text: str) -> str | None:
        bare = text.strip(WRAPPING)
        match = _option(self.options).fullmatch(bare) if len(bare) <= WINDOW else None
        return _names(self.options)[_plain(match.group())] if match else None

    def _echoes(self, option: re.Pattern[str], text: str, start: int) -> bool:
        line = text[start : start + WINDOW].partition("\n")[0]
        words = set(re.findall(r"\w+", option.sub(" ", line).casefold()))
        return words <= _JOINING and len({_plain(name) for name in option.findall(line)}) == len(self.options) > 1

    def _reference(self, text: str) -> str | None:
        upper = text.upper()
        match = re.search(rf"{re.escape(self.label.upper())}:\s*(\w+)", upper)
        where = match[1] if match else upper
        for name in self.options:
            if name.upper() in where or name.upper().replace("_", "") in where:
                return name
        return None


@lru_cache(maxsize=64)
def label(word: str) -> re.Pattern[str]:
    """What finds a label and its colon, whatever bold stands around them."""
    return re.compile(rf"(?<!\w){re.escape(word)}[ \t*_`]*[:：]", re.IGNORECASE)


@lru_cache(maxsize=256)
def _option(options: tuple[str, ...]) -> re.Pattern[str]:
    """What finds an option, the longest first, at word boundaries."""
    forms = [r"[\s_\\-]{0,3}".join(map(re.escape, re.split(r"[\s_-]+", o))) for o in sorted(options, key=len)[::-1]]
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=256)
def _names(options: tuple[str, ...]) -> dict[str, str]:
    return {_plain(option): option for option in options}


def _plain(name: str) -> str:
    return re.sub(r"[\s_\\-]+", "", name).casefold()
