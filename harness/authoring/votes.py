"""Counting votes: which answers are equal, how much weight each has, and which one wins."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.api import Action, Case, Parsed, Reply, Task
from harness.replies import says_nothing
from harness.replies.reading import guarded

Ties = Literal["first", "random", "none"]
"""Which of the leading answers wins: that given first, one drawn by lot, or none."""


@dataclass(frozen=True, slots=True)
class Count:
    """The result of a vote.

    Attributes:
        answer: the winner, as most of its votes write it (the first of several such ways); None if there is none.
        weights: canonical answer → its weight, in order of first appearance.
        tied: whether several answers led.
    """

    answer: Action
    weights: dict[str, float]
    tied: bool


def candidate(task: Task, case: Case, action: Action) -> str | None:
    """One text for all equal answers: the task's own, if it has one.

    None if there is no answer: an empty reply, nothing left in the text (an empty box, a program of one comment), or a
    bug while it is computed. This decides what counts as an answer for votes, panels and replies alike.
    """
    return guarded("canonical", task, lambda: _compared(task, case, action), lambda bug: None)


def _compared(task: Task, case: Case, action: Action) -> str | None:
    if action is None or (isinstance(action, str) and says_nothing(action)):
        return None
    text = str(task.canonical(case, action))
    return None if says_nothing(text) else text


@dataclass(frozen=True, slots=True)
class Ballot(Reply):
    """A task's form of answer, in which text that `candidate` does not accept as an answer is unreadable.

    Attributes:
        inner: the task's form.
        compared: an action as it is compared with others; None if nothing is left of it.
    """

    inner: Reply
    compared: Callable[[Action], str | None] = field(compare=False, repr=False)

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The inner form's."""
        return self.inner.options

    @property
    def idle(self) -> Action:
        """The inner form's."""
        return self.inner.idle

    def allows(self, action: Action) -> bool:
        """What the inner form allows."""
        return self.inner.allows(action)

    def parse(self, text: str) -> Parsed:
        """What the inner form reads, if it is an answer."""
        parsed = self.inner.parse(text)
        if parsed.error is None and parsed.action is not None and self.compared(parsed.action) is None:
            return Parsed(error=f"the answer is empty: {parsed.action!r:.80}")
        return parsed

    def exact(self, text: str) -> bool:
        """What the inner form says."""
        return self.inner.exact(text)

    def constraint(self) -> Mapping[str, Any] | None:
        """The inner form's."""
        return self.inner.constraint()


def ballot(task: Task, case: Case, seat: str) -> Ballot:
    """The form in which an agent answers the question of a case."""
    return Ballot(task.reply(case, seat), functools.partial(_compared, task, case))


def majority(
    task: Task,
    case: Case,
    answers: Sequence[Action],
    weights: Sequence[float] | None = None,
    ties: Ties = "first",
    rng: random.Random | None = None,
) -> Count:
    """The answer with the largest weight. What is no answer (`candidate`) is no vote."""
    behind: dict[str, float] = {}
    ways: dict[str, dict[str, float]] = {}
    written: dict[str, Action] = {}
    for action, weight in zip(answers, weights or [1.0] * len(answers), strict=True):
        key = candidate(task, case, action)
        if key is not None:
            behind[key] = behind.get(key, 0.0) + weight
            way = repr(action)
            ways.setdefault(key, {})[way] = ways.get(key, {}).get(way, 0.0) + weight
            written.setdefault(way, action)
    most = max(behind.values(), default=0.0)
    leading = [key for key, weight in behind.items() if math.isclose(weight, most) and most > 0]
    tied = len(leading) > 1
    if not leading or (tied and ties == "none"):
        return Count(None, behind, tied)
    chosen = rng.choice(leading) if tied and ties == "random" and rng is not None else leading[0]
    way = max(ways[chosen], key=lambda way: ways[chosen][way])
    return Count(written[way], behind, tied)


def how(count: Count) -> str:
    """One word for how a vote arrived at its answer, or why it has none."""
    if not count.weights:
        return "no candidate"
    return "tie" if count.tied else "vote" if count.answer is not None else "no weight"
