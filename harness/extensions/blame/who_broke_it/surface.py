"""Readers of transcripts that know nothing of their tasks: what the surface of texts says of who broke it.

Each cue gives the turns that stand out. `teams` plants no fault that one of them gives away, and the policies
`who_broke_it/surface` and `who_broke_it/odd_one_out`, floors of the benchmark, read by nothing else.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.api import Action, Turn

_TURN = re.compile(r"^Turn (\d+) \(round (\d+)\): (.*)\n  did: (.*(?:\n    .*)*)", re.MULTILINE)
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_KEY = re.compile(r'"([^"\n]*)"\s*:')
_MIN_DRAWN_DIGITS = 5
"""Digits from which on a number is one that agents draw."""


@dataclass(frozen=True)
class ShownTurn:
    """A turn as the reader is shown it."""

    number: int
    round: int
    agent: str
    text: str

    @property
    def said(self) -> str:
        """The text without the names of keys: whom messages are for."""
        return _KEY.sub("", self.text)


def turns_of(question: str) -> list[ShownTurn]:
    """The turns of a transcript (`teams.transcript`), without what they saw."""
    shown = re.sub(r"^  saw: .*(?:\n    .*)*\n", "", question, flags=re.MULTILINE)
    return [ShownTurn(int(n), int(r), agent, text) for n, r, agent, text in _TURN.findall(shown)]


def rarest_shape(turns: Sequence[ShownTurn]) -> list[int]:
    """Turns whose text, with every number and the names of keys masked, is the rarest of its transcript."""
    shapes = [" ".join(sorted({*_NUMBER.sub("0", one.said).split(", ")})) for one in turns]
    counts = Counter(shapes)
    least = min(counts.values(), default=0)
    return [one.number for one, shape in zip(turns, shapes, strict=True) if counts[shape] == least]


def leading_zero(turns: Sequence[ShownTurn]) -> list[int]:
    """Turns with a number that begins with 0."""
    return [one.number for one in turns if any(len(n) > 1 and n[0] == "0" for n in _NUMBER.findall(one.text))]


def lone_word(turns: Sequence[ShownTurn]) -> list[int]:
    """Turns with a word or a short number that no other agent says in the whole transcript."""
    speakers: dict[str, set[str]] = {}
    said = [
        {*_WORD.findall(one.said), *(n for n in _NUMBER.findall(one.said) if len(n) < _MIN_DRAWN_DIGITS)}
        for one in turns
    ]
    for one, words in zip(turns, said, strict=True):
        for word in words:
            speakers.setdefault(word, set()).add(one.agent)
    return [one.number for one, words in zip(turns, said, strict=True) if any(len(speakers[w]) == 1 for w in words)]


def strange_key(turns: Sequence[ShownTurn]) -> list[int]:
    """Turns with a key that no other turn has."""
    counts = Counter(key for one in turns for key in {*_KEY.findall(one.text)})
    return [one.number for one in turns if any(counts[key] == 1 for key in _KEY.findall(one.text))]


def repetition(turns: Sequence[ShownTurn]) -> list[int]:
    """The later one of two turns in which different agents say the same long number first."""
    first: dict[str, str] = {}
    found = []
    for one in turns:
        for number in _NUMBER.findall(one.text):
            if len(number) >= _MIN_DRAWN_DIGITS and first.setdefault(number, one.agent) != one.agent:
                found.append(one.number)
                break
    return found


def differs_from_all(turns: Sequence[ShownTurn]) -> list[int]:
    """In a round in which all other agents say the same, the turn of the one that does not."""
    found = []
    for _, batch in itertools.groupby(turns, lambda one: one.round):
        own = [*batch]
        counts = Counter(one.said for one in own)
        if len(own) > 2 and len(counts) == 2 and min(counts.values()) == 1:
            found += [one.number for one in own if counts[one.said] == 1]
    return found


def _is_between(before: ShownTurn, one: ShownTurn, after: ShownTurn) -> bool:
    return before.said == after.said != one.said


def differs_from_itself(turns: Sequence[ShownTurn]) -> list[int]:
    """Turns in which an agent says something else than just before and just after, where it says the same."""
    own: dict[str, list[ShownTurn]] = {}
    for one in turns:
        own.setdefault(one.agent, []).append(one)
    threes = (three for said in own.values() for three in zip(said, said[1:], said[2:], strict=False))
    return sorted(one.number for before, one, after in threes if _is_between(before, one, after))


def quieter(turns: Sequence[ShownTurn]) -> list[int]:
    """The turns of an agent that says more different things, or fewer, than all others do, each by itself."""
    said: dict[str, set[str]] = {}
    for one in turns:
        said.setdefault(one.agent, set()).add(one.said)
    sizes = Counter(len(texts) for texts in said.values())
    alone = [agent for agent, texts in said.items() if len(sizes) == 2 and sizes[len(texts)] == 1]
    return [one.number for one in turns if one.agent in alone]


Cue = Callable[[Sequence[ShownTurn]], list[int]]
FORMATS: Mapping[str, Cue] = {
    "leading zero": leading_zero,
    "strange key": strange_key,
    "rarest shape": rarest_shape,
    "lone_word": lone_word,
    "repetition": repetition,
}
ODD: Mapping[str, Cue] = {
    "differs from all": differs_from_all,
    "differs from itself": differs_from_itself,
    "quieter": quieter,
}


def suspects(question: str, cues: Mapping[str, Cue]) -> list[int]:
    """The turns of the cue that leaves the fewest; all where none says anything."""
    turns = turns_of(question)
    found = sorted((own for cue in cues.values() if (own := cue(turns))), key=len)
    return found[0] if found else [one.number for one in turns]


def guess(turn: Turn, rng: random.Random, cues: Mapping[str, Cue]) -> Action:
    """The agent and the number of a turn of `suspects`, at random; nothing in another task than who_broke_it."""
    options = turn.reply.options or ()
    found = [one for one in suspects(str(turn.context.get("question")), cues) if one < len(options)]
    return options[rng.choice(found)] if found else turn.reply.noop


def given_away(question: str, turn: int, most: int) -> bool:
    """Whether one of all cues says the turn, among no more than `most`."""
    turns = turns_of(question)
    return any(
        turn in found and len(found) <= most for cue in (*FORMATS.values(), *ODD.values()) if (found := cue(turns))
    )
