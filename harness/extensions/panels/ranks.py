"""A ranking of all candidates that a reply gives as a list, a table, an object of JSON, or a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from harness.replies.conclusions import concluding
from harness.replies.literals import objects
from harness.replies.statements import last_statement

_MAX_CHARS = 20_000
"""Characters at a reply's end that are read."""
_MEDALS = {"🥇": 1, "🥈": 2, "🥉": 3}
_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_RANK = re.compile(
    r"[\s>*_`#|(\[-]*+(?:(?P<medal>[🥇🥈🥉])|(?:(?:rank|place|position|number|no\.)[ \t]*)?#?(?P<number>\d{1,3})"
    rf"(?:st|nd|rd|th|[.)]|(?=[ \t*_]*[:|–—=-])|(?=[ \t]+\w))|(?P<word>{'|'.join(_WORDS)})\b"
    r"|(?P<end>best|top|highest|winner|middle|worst|last|lowest|bottom|runner-up)\b)"
    r"(?:[ \t]+(?:place|rank|position|choice))?[\s*_`)\]:|=>.–—-]*(?:(?:goes|is|to)[ \t]+){0,2}[*_`\"“]*",
    re.IGNORECASE,
)
"""The rank with which a line begins."""
_ORDER = re.compile(
    r"\b(?:best to worst|highest to lowest|top to bottom|strongest to weakest|most to least)\b"
    r"|\b(?:ranking|order)\b[^.!?]{0,40}(?:\bis\b|:)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:followed by|then|ahead of|over|better than|beats)\b", re.IGNORECASE)
"""What stands between a candidate and the next one."""
_BACKWARDS = re.compile(
    r"\b(?:worst to best|lowest to highest|weakest to strongest|least to most|from worst)\b", re.IGNORECASE
)
_BEHIND = re.compile(rf"[ \t](?:is[ \t]|in[ \t]|comes[ \t])?({'|'.join(_WORDS)})[.!]?$", re.IGNORECASE)
"""The rank behind a candidate: "A second"."""
_KEYS = ("rank", "place", "position", "ranking", "order")
_ENDS = {"best": 1, "top": 1, "highest": 1, "winner": 1, "runner-up": 2, "middle": 500}
_LAST = 999


@lru_cache(maxsize=256)
def _candidate(candidates: tuple[str, ...]) -> re.Pattern[str]:
    """A candidate's label between the borders of words, as it is written."""
    names = "|".join(re.escape(one) for one in sorted(candidates, key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])({names})(?![^\W_]|['’]\w)")


def in_ranks(text: str, candidates: tuple[str, ...]) -> list[str] | None:
    """All candidates from the best down; None if the reply does not give each of them one rank. Linear.

    The ranks are numbers ("1. A", "2nd: B", a column of a table), medals, words ("First place: A", "Best: A"), members
    of objects of JSON ({"name": "A", "rank": 1}), or the order in a sentence that says "from best to worst".
    """
    text = text[-_MAX_CHARS:]
    if _BACKWARDS.search(text):
        return None
    for ranked in (_of_objects(text, candidates), _of_lines(text, candidates)):
        if len(ranked) > 1:
            return _in_order(ranked, candidates)
    if "<" in text or ">" in text:
        return None
    sentence = concluding(last_statement(text), lambda said: _candidate(candidates).search(said) is not None)
    if sentence is None:
        return None
    found = list(_candidate(candidates).finditer(sentence))
    gaps = [sentence[one.end() : two.start()] for one, two in pairwise(found)]
    if (found and _ORDER.search(sentence, 0, found[0].start())) or (gaps and all(map(_BEFORE.search, gaps))):
        return _in_order(list(enumerate(match[1] for match in found)), candidates)
    return _in_order(list(_worded(sentence, candidates)), candidates)


def _in_order(ranked: Sequence[tuple[int, str]], candidates: Sequence[str]) -> list[str] | None:
    """Candidates by rank, if each has one of its own."""
    names, ranks = [name for _, name in ranked], {rank for rank, _ in ranked}
    is_whole = len(names) == len(ranks) == len(candidates) > 1 and set(names) == set(candidates)
    return [name for _, name in sorted(ranked)] if is_whole else None


def _of_lines(text: str, candidates: tuple[str, ...]) -> list[tuple[int, str]]:
    """The ranks of lines that begin with one and go on with a candidate."""
    name, found = _candidate(candidates), list[tuple[int, str]]()
    for line in text.split("\n"):
        rank = _RANK.match(line)
        label = name.match(line, rank.end()) if rank else None
        if rank and label:
            found.append((_rank(rank), label[1]))
    return found


def _rank(match: re.Match[str]) -> int:
    if match["medal"]:
        return _MEDALS[match["medal"]]
    if match["number"]:
        return int(match["number"])
    if match["word"]:
        return _WORDS.index(match["word"].lower()) + 1
    return _ENDS.get(match["end"].lower(), _LAST)


def _worded(sentence: str, candidates: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The ranks of parts of a sentence: "First place goes to A, second to B, and third to C"."""
    name = _candidate(candidates)
    for part in re.split(r"[,;]", sentence):
        part = part.strip().removeprefix("and ").removeprefix("the ")
        rank = _RANK.match(part)
        label = name.match(part, rank.end()) if rank else None
        if rank and label:
            yield _rank(rank), label[1]
        elif (behind := _BEHIND.search(part)) is not None and len(names := name.findall(part)) == 1:
            yield _WORDS.index(behind[1].lower()) + 1, names[0]


def _of_objects(text: str, candidates: tuple[str, ...]) -> list[tuple[int, str]]:
    """The ranks that objects of JSON give, each with a candidate and its rank."""
    found = list[tuple[int, str]]()
    waiting: list[Any] = [value for _, _, value in objects(text)] if "{" in text else []
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            rank = next((one for key, one in value.items() if str(key).strip().casefold() in _KEYS), None)
            names = [one for one in value.values() if isinstance(one, str) and one in candidates]
            if isinstance(rank, int) and not isinstance(rank, bool) and len(names) == 1:
                found.append((rank, names[0]))
            else:
                waiting += value.values()
    return found
