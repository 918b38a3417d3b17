"""One of the legal actions of a game, by its name: any number of names with any characters."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Parsed, Reply

from ._options import marker_pattern, plain_option
from ._statements import last_labels
from ._text import WRAPPING, end_of, valid

_CONSTRAINED = 1000
"""Names that constrained decoding can list."""
_LABELS = 20
"""Labels that are looked behind, from the last one back."""
_ENDS = 40
"""Words of a line that may end a name."""
_READ = 300
"""Characters behind a label that are read."""
_SHOWN = 20
"""Names that a complaint lists."""
_TOKEN = re.compile(r"(?<![^\W_])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+")
_MARKS = re.compile("[\\s\u200b\"'“”‘’„«»`*_:=<>#]*")
_BREAK = re.compile(r"[\s.,;:!?–—]+|$")
_OTHERS = re.compile(
    r"[\s.,;:!?\"'”’`*_)\]]{0,6}(?:(?:\b(?:or|and|then|maybe)\b[ \t]*)+|[/|,;&])[\s\"'“‘`*_(\[]{0,6}", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LegalAction(Reply):
    """One of finitely many names behind a label: `ACTION: Nf3`. Reading takes time linear in names and text.

    The last label counts that a name follows. The first of these decides that finds exactly one name: the name to the
    letter; in any case and with any blanks, quotes or marks around it; by its words and numbers alone (`0, 0, 1` of
    "Proposal: [0, 0, 1]" needs no brackets); by its last words, where only one name ends so ("a1" of "B a1"). What
    follows the name on the line is left out, unless it offers another name ("x1 or x2"). Without such a label a name
    counts that is stated clearly in another way: in a JSON object, an element, on a last line of its own.

    Attributes:
        options: the names of the legal actions, all different.
        label: what announces the action.
    """

    options: tuple[str, ...] = field()
    label: str = "ACTION"

    def parse(self, text: str) -> Parsed:
        """The action that `text` names."""
        text, names = valid(text), _Names(self.options)
        found = ""
        for match in itertools.islice(last_labels(text, marker_pattern(f"{self.label}:")), _LABELS):
            start = end_of(_MARKS, text, match.end())
            line = text[start : start + _READ].split("\n", 1)[0].strip()
            if (action := names.at_start(line)) is not None:
                return Parsed(action)
            found = found or line
        action = names.named(text.strip()[:_READ]) or plain_option(text, names.named)
        return Parsed(action) if action is not None else Parsed(error=self._complaint(found))

    def constraint(self) -> Mapping[str, Any] | None:
        """Exactly the label and a name; None where there are too many to list."""
        if len(self.options) > _CONSTRAINED:
            return None
        return {"choice": [f"{self.label}: {option}" for option in self.options]}

    def _complaint(self, found: str) -> str:
        listed = ", ".join(self.options[:_SHOWN])
        more = f", … ({len(self.options)} in all)" if len(self.options) > _SHOWN else ""
        shown = "".join(char if char.isprintable() else " " for char in found)[:60]
        what = f"{shown!r} is no legal action" if shown else f"no legal action was found after '{self.label}:'"
        return f"{what}; the legal actions are: {listed}{more}"


class _Names:
    """Finds the one name that a text means, from the strictest reading to the loosest."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def named(self, text: str) -> str | None:
        """The name that a whole text means; None if it is none, or could be several."""
        if text in self._names:
            return text
        for text_as, names in ((text.strip(WRAPPING), self._bare), (_folded(text), self._folded)):
            if text_as in names:
                return names[text_as]
        words = _tokens(text)
        if not words:
            return None
        return self._worded[words] if words in self._worded else self._tails.get(words)

    @functools.cached_property
    def _bare(self) -> dict[str, str]:
        return _unique((name.strip(WRAPPING), name) for name in self._names)

    @functools.cached_property
    def _folded(self) -> dict[str, str]:
        return _unique((_folded(name), name) for name in self._names)

    @functools.cached_property
    def _worded(self) -> dict[tuple[str, ...], str]:
        return _unique((_tokens(name), name) for name in self._names)

    @functools.cached_property
    def _tails(self) -> dict[tuple[str, ...], str]:
        words = [(_tokens(name), name) for name in self._names]
        return _unique((tokens[i:], name) for tokens, name in words for i in range(1, len(tokens)))

    def at_start(self, line: str) -> str | None:
        """The name with which a line begins, the longest first; None where another one follows it."""
        action = self.named(line)
        if action is not None:
            return action
        ends = [match.start() for match in itertools.islice(_BREAK.finditer(line), _ENDS)]
        for end in reversed(ends):
            if end and (action := self.named(line[:end])) is not None:
                others = _OTHERS.match(line, end)
                return None if others and self.at_start(line[others.end() :]) is not None else action
        return None


def _folded(text: str) -> str:
    return " ".join(text.strip(WRAPPING).split()).casefold()


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text.casefold()))


def _unique(pairs: Iterable[tuple[Any, str]]) -> dict[Any, str]:
    """Key → name, without the keys of several names."""
    found = list(pairs)
    count = Counter(key for key, _ in dict.fromkeys(found))
    return {key: name for key, name in found if key and count[key] == 1}
