"""Every seat answers by itself: a model alone, scored as in lm-eval."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Action, Case, Outcome, Play, Protocol, Range, Task, Turn, plugin
from harness.authoring.panels import ballot, candidate, majority
from harness.authoring.questions import QuestionTask


@plugin
class Single(Protocol):
    """Each agent answers by itself, `repeats` times, each time in a new conversation.

    Turns: `answer`; the view is empty, the brief the task's.

    Attributes:
        repeats: how many answers a seat gives.
        reduce: "mean": every answer counts (also for pass@k). "majority": the answer most often given counts; among
            equally frequent ones the one given first; answers that cannot be read do not count.
        repairs: how often an unreadable answer is asked for again; then there is none.
    """

    repeats: Annotated[int, Range(ge=1, le=10_000)] = 1
    reduce: Literal["mean", "majority"] = "mean"
    repairs: Annotated[int, Range(ge=0)] = 0

    needs = QuestionTask
    facts = ("samples",)

    def play(self, task: Task, case: Case, seats: Sequence[str], rng: random.Random) -> Play:
        """Yields one batch a repetition, with a turn for every seat."""
        samples: list[Action] = []
        briefs = {seat: task.brief(case, seat) for seat in seats}
        for number in range(self.repeats):
            moves = yield [
                Turn(s, "answer", {}, ballot(task, case, s), briefs[s], self.repairs, fresh=number > 0) for s in seats
            ]
            answers = {m.seat: None if candidate(task, case, m.action) is None else m.action for m in moves}
            samples += answers.values()
        group = majority(task, case, samples).answer if self.reduce == "majority" else None
        return Outcome(answers=answers, group=group, facts={"samples": samples})
