"""Every agent answers by itself: a model alone, scored as in lm-eval."""

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

    Turns: `answer`; the observation is empty, the context the task's.

    Attributes:
        repeats: how many answers an agent gives.
        reduce: "mean": every answer counts (also for pass@k). "majority": the answer most often given counts; among
            equally frequent ones the one given first; answers that cannot be read do not count.
        parse_retries: how often an unreadable answer is asked for again; then there is none.
    """

    repeats: Annotated[int, Range(ge=1, le=10_000)] = 1
    reduce: Literal["mean", "majority"] = "mean"
    parse_retries: Annotated[int, Range(ge=0)] = 0

    needs = QuestionTask
    facts = ("samples",)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields one batch a repetition, with a turn for every agent."""
        samples: list[Action] = []
        contexts = {agent: task.context(case, agent) for agent in agents}
        for number in range(self.repeats):
            moves = yield [
                Turn(s, "answer", {}, ballot(task, case, s), contexts[s], self.parse_retries, fresh=number > 0)
                for s in agents
            ]
            answers = {m.agent: None if candidate(task, case, m.action) is None else m.action for m in moves}
            samples += answers.values()
        group = majority(task, case, samples).answer if self.reduce == "majority" else None
        return Outcome(answers=answers, group=group, facts={"samples": samples})
