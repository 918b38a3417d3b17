"""A second run of a protocol, in which every agent knows its own answer of the first (MAS-Bench, Appendix F.5)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Literal

from harness.api import Facts, Move, Outcome, Play, Turn

Phases = Literal["one", "two"]
"""How often a group plays a case: "two" adds a second run from the beginning, with new threads and empty channels."""

FACTS = ("first", "final_from")
"""What every protocol with phases tells of them.

`first`: {"answers": seat → answer, "facts": …} of the first run, or None if there is but one.
`final_from`: the number of the batch with which the run begins that counts.
"""


def in_phases(phases: Phases, play: Callable[[], Play]) -> Play:
    """Play once, or twice (Algorithm 3). The outcome of the last run counts.

    In the second run every agent starts a new conversation. Its context has one more fact, `previous`: its own answer
    of the first run, None if it gave none. Nothing else carries over.
    """
    first: Facts | None = None
    previous: Facts | None = None
    final_from = 0
    for number in range(2 if phases == "two" else 1):
        outcome, batches = yield from _run(play(), previous)
        if number == 0 and phases == "two":
            previous = outcome.answers
            first, final_from = {"answers": dict(outcome.answers), "facts": dict(outcome.facts)}, batches
    return replace(outcome, facts={**outcome.facts, "first": first, "final_from": final_from})


def _run(game: Play, previous: Facts | None) -> Generator[list[Turn], list[Move], tuple[Outcome, int]]:
    """One run, and how many batches it had."""
    briefs: dict[str, Facts] = {}
    batches = 0
    try:
        batch = next(game)
        while True:
            moves = yield batch if previous is None else [_again(turn, briefs, previous) for turn in batch]
            batches += 1
            batch = game.send(moves)
    except StopIteration as stop:
        return stop.value, batches


def _again(turn: Turn, briefs: dict[str, Facts], previous: Facts) -> Turn:
    """The turn as the second run asks it; a seat's first one begins its new conversation."""
    opening = turn.seat not in briefs
    if opening:
        briefs[turn.seat] = {**turn.brief, "previous": previous.get(turn.seat)}
    return replace(turn, brief=briefs[turn.seat], fresh=turn.fresh or opening)
