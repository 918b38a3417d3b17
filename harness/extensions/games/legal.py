"""One of the legal actions of a game, by its name: any number of names with any characters."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Parsed, Reply, ReplyField
from harness.replies.answers import is_settled
from harness.replies.characters import WRAPPING, end_of, markers, valid
from harness.replies.literals import masked
from harness.replies.mentions import Stated
from harness.replies.options import plain_option, read_option
from harness.replies.strip_reasoning import strip_reasoning

_WORDED = 50
"""Names of words that are looked for in sentences."""
_CONSTRAINED = 1000
"""Names that constrained decoding can list."""
_LABELS = 20
"""Labels that are looked behind, from the last one back."""
_ENDS = 40
"""Words of a line that may end a name."""
_READ = 300
"""Characters behind a label that are read."""
_JOINED = 3
"""Names in a row that are looked at: a reply that offers more means none of them."""
_WORDS = 30
"""Characters of a reply without a label that a complaint quotes."""
_MAX_LISTED_NAMES = 20
"""Names that a complaint lists."""
_TOKEN = re.compile(r"player-\d+|(?<![^\W_])-?\d+(?:\.\d+)?|\d+(?:\.\d+)?|[^\W\d_]+|[\u2600-\u27bf]")
"""Players, numbers, words, and symbols such as the suits of cards."""
_SIGNS = re.compile(rf"{_TOKEN.pattern}|[-/\\]")
_DIRECTED = re.compile(r"(?:^|\s)[-/\\][^\W\d]|[^\W_][-/\\](?=\s|$)")
"""A sign before or behind a word that says where, as in "wB1 -bQ" of the game hive: such names keep their signs."""
_MARKS = re.compile("[\\s\u200b\"'“”‘’„«»`*_:=<>#]*")
_BREAK = re.compile(r"[\s.,;:!?–—]+|$")
_OTHERS = re.compile(
    r"(?:[\s.,;:!?\"'”’`*_)\]]{0,6}(?:(?:\b(?:or|and|then|maybe|nor|vs|versus|followed by)\b[ \t]*)+|[/|,;&+])"
    r"|[\"'”’`*_)\]]{0,6}[ \t]++(?![(\[]))[\s\"'“‘`*_(\[]{0,6}",
    re.IGNORECASE,
)
"""What stands between two names: a word or a sign that joins them, or blanks alone."""
_NUMBER = re.compile(r"(?<![^\W_])(\d+)[)\]*\"'”’`]{0,3}$")
"""A number at the end of a name, which is not part of a word such as e4."""
_MORE = re.compile(r"[)\]*\"'”’`]{0,3}(?:\.\d|%|\+(?!\w)|[ \t]*[,;/&+][ \t]*[(\[]?-?\d|[ \t]+(?:and[ \t]+)?-?\d)")
"""What goes on behind a number: 1.5 is not 1, and "0, 1, 2" is not "0, 1"."""
_ASIDE = re.compile(r"[ \t]{0,3}\((?!not\b)[^()\n]{0,30}(?<![^\W_])(\d{1,9})[^()\n\w]{0,3}\)")
"""Another number behind it: "3 (or 4)" is neither, and "3 (column 3)" is 3."""
_ABOUT = re.compile(r"[\s(*_`\"]{0,6}(?:[<>](?![^<>]*>)|[~≈≤≥])[\s=]{0,6}\d")
_UP = re.compile(r"(?<![^\W_])\d{1,9}\+\W{0,6}$")
"""A number that is not said to be the one: "<3", "~3", and at the end "3+"."""
_GOOD = (
    r"(?:(?:an?|the|my|our|very|clearly|probably|also|still|now|simply|not|only)[ \t]+){0,4}"
    r"(?:moves?|choice|action|answer|pick|play|decision|bid|better|best|good|strong(?:er|est)?|correct"
    r"|right|legal|safe"
    r"|safest|optimal|forced|fine|ok|okay|great|solid|winning|natural|ideal|clear|only|perfect|excellent"
    r"|sound|standard"
    r"|required|enough|sufficient)\b"
)
_BAD = (
    r"(?:not?|never|wrong|bad|worst|worse|losing|lost|illegal|weak(?:er|est)?|terrible|poor|opponents?"
    r"|their|his|her|your"
    r"|other|last|previous|former|risk(?:y|ier|iest)|dangerous|impossible|unavailable|taken|blocked|too)\b"
)
_BEST = (
    rf"(?:the|my|our|an?)(?:[ \t]+(?!{_BAD})\w{{1,20}}){{1,3}}"
    r"[ \t]+(?:moves?|choice|action|answer|pick|play|decision|bid)\b"
)
"""What praises a move in other words: "the most active move"."""
_DENIED = re.compile(
    r"[\s\"'”’`*_)\],]{0,6}(?:"
    r"(?:(?:is|are|was|wo)n['’]t|was|were|will[ \t]+not|can(?:not|['’]?t|(?![ \t]+be[ \t]+played))"
    r"|could|would|might|loses|fails|hangs)\b"
    rf"|(?:is|are|looks|seems)\b(?![ \t]+(?:{_GOOD}|{_BEST}))"
    r"|(?:is|are)[ \t]+(?:no\b|(?:not|never)\b(?![ \t]+(?:the|only)))"
    r"|(?:if|unless|except)\b)"
    r"|[\s\"'”’`*_)\].,:;]{0,6}(?:[?!]+[ \t]*(?:no|nope|not)\b"
    r"|[–—-]{1,3}[ \t]*(?:nope|no(?![ \t]+(?:need|risk|doubt|reason|problem|threat|danger|better)\b))\b"
    r"|(?:no|nope|nah)\b(?=[ \t]*(?:[.,;:!?)]|$|wait|rather|instead|sorry))|(?:wait|oops|scratch[ \t]+that)\b)",
    re.IGNORECASE,
)
"""What says that the name before it is not the one, or not for sure."""
_RELATIVE = re.compile(r"\+\d")
"""A number of steps: only names have those, as in "player +2" of hanabi, who is not Player-2."""
_EITHER = re.compile(r"[\s\"'”’`*_)\].,!?]{0,6}\b(?:or|nor|vs|versus)\b[\s:]*", re.IGNORECASE)
_AND = re.compile(r"[\s\"'”’`*_)\],!?]{0,6}\b(?:and|plus)\b[\s\"'“‘`*_(\[]{0,6}", re.IGNORECASE)
_VARIANT = (
    r"(?<!-)[\s\"'”’`*_,(]{{0,6}}(?:(?:an?|the|in|as|with|from|out|of|and|plus|game|played)[\s,]{{1,3}}){{0,4}}"
    r"(?:{})\b(?![ \t]+(?:is|has|looks|seems)\b)"
)
"""What makes another action of the name before it: "null ouvert", "diamonds, from the hand"."""
_BISHOP = re.compile(r"B[a-h1-8]?x?[a-h][1-8]")
"""A move whose first letter would be a pawn's, if it were small."""
_LEAD = re.compile(
    r"\d{1,3}\.{1,3}[ \t]*(?=[^\W\d_])"
    r"|(?:(?:I(?:['’]ll|[ \t]will)?|to|play|choose|pick|bid|my[ \t]move[ \t]is)[ \t]+){1,4}",
    re.IGNORECASE,
)
"""What may stand before a name: the number of a chess move, or who plays it."""


@dataclass(frozen=True, slots=True)
class LegalAction(Reply):
    """One of finitely many names behind a label: `ACTION: Nf3`. Reading takes time linear in names and text.

    The last label counts that a name follows. The first of these decides that finds exactly one name: the name to the
    letter; in any case and with any blanks, quotes or marks around it; by its words and numbers alone (`0, 0, 1` of
    "Proposal: [0, 0, 1]" needs no brackets); without the words with which all names begin ("a1" of "B a1"). A chess
    move's number or "I play" may stand before it. What follows the name on the line is left out, unless it offers
    another name ("x1 or x2", "x1 x2"), goes on with numbers ("0, 1, 2" is not "0, 1"), or takes the name back ("e4 is a
    blunder"). Without such a label a name
    counts that is stated clearly in another way: in a JSON object, an element, on a last line of its own.

    Attributes:
        options: the names of the legal actions, all different.
        label: what announces the action.
        also: (what people write for an action, its name): read in the same ways where no name is found. What stands for
            several actions is left out.
        whole: whether words with which all names begin have to be written too: "7" is no card where it may be a bid.
        variants: words that make of a name before them an action that does not exist here: "null ouvert" is not "null".
    """

    options: tuple[str, ...] = field()
    label: str = "ACTION"
    also: Sequence[tuple[str, str]] = ()
    whole: bool = False
    variants: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The name of the action, behind the label."""
        return (ReplyField(self.label.lower(), f"{self.label}:", {"enum": list(self.options)}),)

    def parse(self, text: str) -> Parsed:
        """The action that `text` names."""
        text, names = valid(strip_reasoning(text)), _Names(self.options, self.also, not self.whole, self.variants)
        found, lines = "", masked(text) if "{" in text else text
        for match in reversed(deque(markers(lines, f"{self.label}:"), _LABELS)):
            start = end_of(_MARKS, text, match.end())
            line = text[start : start + _READ].split("\n", 1)[0].strip()
            if _ABOUT.match(text[match.end() : start + _READ].split("\n", 1)[0]):
                found = found or line
                continue
            if (action := names.at_start(line)) is not None:
                if is_settled(text, f"{self.label}:", lambda line, _: _stated(names.at_start(line))):
                    return Parsed(action)
                return Parsed(error=self._complaint("what is said twice, or taken back,"))
            found = found or line
        whole = text.strip()[:_READ]
        action = names.named(whole) or plain_option(text, names.named)
        if (
            action is None
            and not (found or self.also or self.variants)
            and len(self.options) <= _WORDED
            and all(map(_is_word, self.options))
        ):
            action = read_option(text, self.options, f"{self.label}:", self.label.lower())
        return Parsed(action) if action is not None else Parsed(error=self._complaint(found or _short(whole)))

    def constraint(self) -> Mapping[str, Any] | None:
        """Exactly the label and a name; None if there are too many to list."""
        if len(self.options) > _CONSTRAINED:
            return None
        return {"choice": [f"{self.label}: {option}" for option in self.options]}

    def _complaint(self, found: str) -> str:
        listed = ", ".join(self.options[:_MAX_LISTED_NAMES])
        more = f", … ({len(self.options)} in all)" if len(self.options) > _MAX_LISTED_NAMES else ""
        shown = "".join(char if char.isprintable() else " " for char in found)[:60]
        what = f"{shown!r} is no legal action" if shown else f"no legal action was found after '{self.label}:'"
        return f"{what}; the legal actions are: {listed}{more}"


def _stated(action: str | None) -> Stated[str]:
    return Stated(action, action is None)


def _is_word(name: str) -> bool:
    """Whether a name is of words: those of moves such as e4 or 7 occur in other senses."""
    return len(name) > 1 and name.replace("_", "").replace(" ", "").isalpha()


class _Names:
    """Finds the one name that a text means, from the strictest reading to the loosest."""

    def __init__(
        self,
        names: tuple[str, ...],
        also: Sequence[tuple[str, str]] = (),
        ends: bool = True,
        variants: Sequence[str] = (),
    ) -> None:
        self._names, self._pairs, self._ends = names, also, ends
        words = "|".join(map(re.escape, variants))
        self._variant = re.compile(_VARIANT.format(words), re.IGNORECASE) if words else None
        self._token = _SIGNS if any(map(_DIRECTED.search, names)) else _TOKEN

    def named(self, text: str) -> str | None:
        """The name that a whole text means; None if it is none, or could be several."""
        name = self._own(text)
        if not self._pairs or (name is not None and _folded(name) == _folded(text)):
            return name
        other = None if _RELATIVE.search(text) else self._also.get(self._others._own(text) or "")
        return name or other if name is None or other in (None, name) else None

    @functools.cached_property
    def _also(self) -> dict[str, str]:
        return _unique(self._pairs)

    @functools.cached_property
    def _others(self) -> _Names:
        return _Names(tuple(self._also), ends=False)

    def _own(self, text: str) -> str | None:
        if text in self._names:
            return text
        name = None if _ABOUT.match(text) or _UP.search(text, max(0, len(text) - 20)) else self._loosely(text)
        return None if name is not None and _BISHOP.match(name) and text.lstrip(WRAPPING)[:1] == "b" else name

    def _loosely(self, text: str) -> str | None:
        for text_as, names in ((text.strip(WRAPPING), self._bare), (_folded(text), self._folded)):
            if text_as in names:
                return names[text_as]
        words = self._tokens(text)
        if not words:
            return None
        return self._worded.get(words) or (self._tails.get(words) if self._ends else None)

    @functools.cached_property
    def _bare(self) -> dict[str, str]:
        return _unique((name.strip(WRAPPING), name) for name in self._names)

    @functools.cached_property
    def _folded(self) -> dict[str, str]:
        return _unique((_folded(name), name) for name in self._names)

    @functools.cached_property
    def _worded(self) -> dict[tuple[str, ...], str]:
        return _unique((self._tokens(name), name) for name in self._names)

    @functools.cached_property
    def _tails(self) -> dict[tuple[str, ...], str]:
        """Names without the words with which all of them begin: "3" is enough for x3 where all begin with x."""
        if self._token is _SIGNS:  # a tile that moves stands first, where others name it as their goal
            return {}
        words = [(self._tokens(name), name) for name in self._names]
        columns = zip(*(tokens for tokens, _ in words), strict=False)
        same = sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, columns))
        return _unique((tokens[i:], name) for tokens, name in words for i in range(1, min(same + 1, len(tokens))))

    def _tokens(self, text: str) -> tuple[str, ...]:
        return tuple(self._token.findall(text.casefold()))

    def at_start(self, line: str) -> str | None:
        """The name with which a line begins, the longest first; None if another one follows it, or what denies it."""
        return self._begins(line, 0) or None

    def _begins(self, line: str, before: int) -> str | None:
        """The same; "" where several names are offered. `before`: names that stand before this one."""
        action = self.named(line)
        if action is None and (lead := _LEAD.match(line)):
            action = self.named(line[lead.end() :])
        if action is not None or before > _JOINED:
            return action or ""
        ends = [match.start() for match in itertools.islice(_BREAK.finditer(line), _ENDS)]
        for end in reversed(ends):
            if end and (action := self.named(line[:end])) is not None:
                joined = " \t|,;&" if self._token is _SIGNS else " \t/|,;&"
                end = len(line[:end].rstrip(joined))
                end += line.startswith("!", end) and action.endswith("!")
                if _DENIED.match(line, end) or (self._variant and self._variant.match(line, end)):
                    return None
                return "" if self._goes_on(line, end, action, before + 1) else action
        return None

    def _goes_on(self, line: str, end: int, action: str, before: int) -> bool:
        """Whether what ends here is not all that is meant."""
        if number := _NUMBER.search(line[:end]):
            aside = _ASIDE.match(line, end)
            if _MORE.match(line, end) or (aside and aside[1] != number[1]):
                return True
        if either := _EITHER.match(line, end):
            return self._begins(line[either.end() :], before) != action
        if also := _AND.match(line, end):
            words = self._tokens(line[also.end() :])[:1]
            if words and words[0] in self._words:
                return self._begins(line[also.end() :], before) != action
        start = end + len(line[end:]) - len(line[end:].lstrip(" \t"))
        if line.startswith("(", start) and self._names[0].startswith("("):
            return self._begins(line[start:], before) not in (None, action)
        others = _OTHERS.match(line, end)
        return others is not None and self._begins(line[others.end() :], before) not in (None, action)

    @functools.cached_property
    def _words(self) -> frozenset[str]:
        """All words of names, and of what people write for them."""
        return frozenset(word for name in (*self._names, *self._also) for word in self._tokens(name))


def _short(reply: str) -> str:
    """A reply of a few words; "" for any other."""
    return reply if len(reply) <= _WORDS and "\n" not in reply else ""


def _folded(text: str) -> str:
    return " ".join(text.strip(WRAPPING).split()).casefold()


def _unique(pairs: Iterable[tuple[Any, str]]) -> dict[Any, str]:
    """Key → name, without the keys of several names."""
    found = [*dict.fromkeys(pairs)]
    count = Counter(key for key, _ in found)
    return {key: name for key, name in found if key and count[key] == 1}
