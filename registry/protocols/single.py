"""Every agent answers alone: one model, scored as in lm-eval."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Literal

from harness.api import Action, Case, Outcome, Play, Protocol, Range, Task, Turn, plugin
from harness.extensions.panels.panels import UNREAD, ballot, candidate, majority
from harness.extensions.panels.questions import QuestionTask
from harness.replies import act_of


@plugin
class Single(Protocol):
    """Each agent answers alone, `repeats` times, each time in a new conversation.

    Turns: `answer`; the observation is empty, the context the task's.

    Attributes:
        repeats: answers per agent; fewer where a case wants fewer.
        reduce: "mean": every answer counts (also for pass@k). "majority": the most frequent readable answer counts;
            among equally frequent ones the first.
        parse_retries: how often to ask again for an unreadable answer; then there is none.
    """

    repeats: Annotated[int, Range(ge=1, le=10_000)] = 1
    reduce: Literal["mean", "majority"] = "mean"
    parse_retries: Annotated[int, Range(ge=0)] = 0

    needs = QuestionTask
    facts = ("samples",)

    def misfit(self, task: Task) -> str | None:
        """Filters may choose among more replies than there are; of log-likelihoods none is asked for again."""
        if isinstance(task, QuestionTask) and not task.writes_text and self.parse_retries:
            return UNREAD
        if isinstance(task, QuestionTask) and task.replies_needed > self.repeats:
            needed = task.replies_needed
            return f"a filter of the task takes {needed} replies to a question: set repeats to {needed} or more"
        return None

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch per repetition, with a turn for every agent."""
        samples: list[Action] = []
        contexts = {agent: task.context(case, agent) for agent in agents}
        wanted = task.replies_wanted(case) if isinstance(task, QuestionTask) else None
        for number in range(self.repeats if wanted is None else min(wanted, self.repeats)):
            moves = yield [
                Turn(
                    agent,
                    "answer",
                    {},
                    ballot(task, case, agent),
                    contexts[agent],
                    self.parse_retries,
                    fresh=number > 0,
                )
                for agent in agents
            ]
            whole = isinstance(task, QuestionTask) and task.grades_raw_replies
            answers = {
                move.agent: act_of(move.action) if whole or candidate(task, case, move.action) is not None else None
                for move in moves
            }
            samples += answers.values()
        group = majority(task, case, samples).answer if self.reduce == "majority" else None
        return Outcome(answers=answers, group=group, facts={"samples": samples})
