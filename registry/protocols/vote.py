"""Everybody answers by itself, then the votes are counted: the baseline of every exchange of answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Case, Outcome, Play, Protocol, Range, Task, Turn, plugin
from harness.errors import PluginError

from ._votes import Ties, majority


@plugin
class Vote(Protocol):
    """All seats answer once, without seeing one another; the answer with most votes is the group's.

    Turns: `answer`; the view is empty, the brief the task's. Seats' order is the task's.

    Attributes:
        weights: seat → weight; None: all the same. A seat that is not named has weight 1; 0 takes its vote away.
        ties: what wins of several leading answers: the one given "first" in seats' order, one drawn by lot ("random"),
            or "none".
        invalid: what an answer that cannot be read counts: "ignored", or "vote": all of them together are one more
            answer, which wins as no answer if it leads.
        repairs: how often an unreadable answer is asked for again.
    """

    weights: dict[str, float] | None = None
    ties: Ties = "first"
    invalid: Literal["ignored", "vote"] = "ignored"
    repairs: Annotated[int, Range(ge=0)] = 0

    needs = frozenset({"question"})
    facts = ("votes", "tied", "unanimous")

    def __post_init__(self) -> None:
        for seat, weight in (self.weights or {}).items():
            if not 0 <= weight < float("inf"):
                raise PluginError(f"the weight of {seat} is {weight}; it must be 0 or more", at=("weights", seat))

    def play(self, task: Task, case: Case, seats: Sequence[str], rng: random.Random) -> Play:
        """Yields one batch with a turn for every seat."""
        given = self.weights or {}
        strangers = [seat for seat in given if seat not in seats]
        if strangers:
            there = ", ".join(seats)
            raise PluginError(
                f"weights names {strangers[0]!r}, who has no seat", hint=f"There are: {there}.", at=("weights",)
            )
        moves = yield [
            Turn(seat, "answer", {}, task.reply(case, seat), task.brief(case, seat), self.repairs) for seat in seats
        ]
        answers = {move.seat: move.action for move in moves}
        weights = [given.get(seat, 1.0) for seat in seats]
        count = majority(task, case, [answers[seat] for seat in seats], weights, self.ties, rng)
        lost = sum(weight for seat, weight in zip(seats, weights, strict=True) if answers[seat] is None)
        group = None if self.invalid == "vote" and lost > max(count.weights.values(), default=0.0) else count.answer
        everybody = all(action is not None for action in answers.values())
        facts = {"votes": count.weights, "tied": count.tied, "unanimous": len(count.weights) == 1 and everybody}
        return Outcome(answers=answers, group=group, facts=facts)
