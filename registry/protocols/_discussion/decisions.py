"""Stand-in for the decisions: unanimity, majority and plurality."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Literal, NamedTuple

from harness.api import Action, Case, Move, Task, Turn
from harness.authoring.panels import Opinion, Panel, majority
from harness.authoring.traffic import Traffic

Decision = Literal["unanimity", "majority", "plurality"]


class Verdict(NamedTuple):
    answer: Action
    exit: str
    votes: dict[str, float]
    tied: bool = False
    again: bool = False


def settled(rules: Any, number: int, opinions: Sequence[Opinion]) -> Verdict | None:
    counts = Counter(o.candidate for o in opinions if o.candidate is not None)
    if not counts or rules.decision == "plurality":
        return None
    [(top, count)] = counts.most_common(1)
    need = len(opinions) if rules.decision == "unanimity" else len(opinions) // 2 + 1
    if count < need:
        return None
    answer = next(o.answer for o in opinions if o.candidate == top)
    return Verdict(answer, rules.decision, {k: float(v) for k, v in counts.items()})


def decide(
    rules: Any, panel: Panel, task: Task, case: Case, opinions: Sequence[Opinion], traffic: Traffic, rng: random.Random
) -> Generator[list[Turn], list[Move], Verdict]:
    count = majority(task, case, [o.answer for o in opinions], ties="first", rng=rng)
    return Verdict(count.answer, count.exit, count.weights, count.tied)
    yield []
