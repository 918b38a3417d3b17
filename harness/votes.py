"""Counting votes: answers that are the same, how much stands behind each, and who wins."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.api import Action, Case, Task

Ties = Literal["first", "random", "none"]
"""Which of the leading answers wins: that given first, one drawn by lot, or none."""


@dataclass(frozen=True, slots=True)
class Count:
    """How a vote went.

    Attributes:
        answer: the winner as its first voter wrote it; None if there is none.
        weights: canonical answer → what stands behind it, in order of first appearance.
        tied: whether several answers led.
    """

    answer: Action
    weights: dict[str, float]
    tied: bool


def canonical(task: Task, case: Case, action: Action) -> str:
    """One text for all answers that are the same: the task's own, if it has one."""
    own = getattr(task, "canonical", None)
    return str(own(case, action)) if own is not None else json.dumps(action, sort_keys=True)


def majority(
    task: Task,
    case: Case,
    answers: Sequence[Action],
    weights: Sequence[float] | None = None,
    ties: Ties = "first",
    rng: random.Random | None = None,
) -> Count:
    """The answer with most weight behind it; an answer of None is no vote."""
    behind: dict[str, float] = {}
    written: dict[str, Action] = {}
    for action, weight in zip(answers, weights or [1.0] * len(answers), strict=True):
        if action is not None:
            key = canonical(task, case, action)
            behind[key] = behind.get(key, 0.0) + weight
            written.setdefault(key, action)
    most = max(behind.values(), default=0.0)
    leading = [key for key, weight in behind.items() if math.isclose(weight, most) and most > 0]
    tied = len(leading) > 1
    if not leading or (tied and ties == "none"):
        return Count(None, behind, tied)
    chosen = rng.choice(leading) if tied and ties == "random" and rng is not None else leading[0]
    return Count(written[chosen], behind, tied)


def how(count: Count) -> str:
    """In a word how a vote came to its answer, or why it has none."""
    if not count.weights:
        return "no candidate"
    return "tie" if count.tied else "vote" if count.answer is not None else "no weight"
