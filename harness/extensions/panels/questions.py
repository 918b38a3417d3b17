"""Tasks whose cases are questions that one agent or a panel can answer, and grades of a panel's answers."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Case, Outcome, Task
from harness.api.errors import PluginError


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a case.

    Attributes:
        text: the question by itself, without solved examples before it.
        choices: the options of a multiple-choice question; None if the answer is free.
    """

    text: str
    choices: tuple[str, ...] | None = None


class QuestionTask(Task):
    """A task whose every case is a question that one agent can answer alone.

    Panels ask several agents. `canonical` decides which answers are equal.

    Attributes:
        grades_raw_replies: whether `grade` reads every reply, also one in which there is no answer to compare.
        replies_needed: how many replies to a question `grade` takes at least, where one agent answers alone.
        beside: the names of fields that replies have beside the answer (`harness.extensions.yaml_tasks.contract`).
    """

    grades_raw_replies = False
    replies_needed = 1
    beside: tuple[str, ...] = ()

    @property
    def writes_text(self) -> bool:
        """Whether agents answer in text. False where log-likelihoods of given options are all that counts."""
        return True

    def replies_wanted(self, case: Case) -> int | None:
        """How many replies the case wants where one agent answers alone; None: as many as the protocol asks for."""
        return None

    @abstractmethod
    def question_of(self, case: Case) -> Question:
        """The question of a case. Cases with the same question are equal, whatever their ids."""

    def question_text(self, case: Case) -> str:
        """The question by itself."""
        return self.question_of(case).text


SCORES: tuple[str, ...] = ("score", "success")
"""The grades that say whether an answer is right, whichever of them a task has."""


def score_of(task: Task) -> str:
    """The grade that says whether an answer is right. Raises `PluginError` if there is none."""
    score = next((name for name in SCORES if name in task.grades), None)
    if score is None:
        hint = f"It grades {', '.join(task.grades)}."
        raise PluginError(f"{type(task).__name__} has no grade called {' or '.join(SCORES)}", hint=hint)
    return score


def is_right(task: Task, case: Case, action: Action) -> bool:
    """Whether one agent's answer alone is right. Raises `PluginError` as `score_of`."""
    alone = Outcome(dict.fromkeys(case.agents, action), action, {"history": [[action]]})
    return bool(task.grade(case, alone)[score_of(task)] == 1)


GRADES: tuple[str, ...] = ("available", "lost", "gained", "to_right", "to_wrong", "first", "ever", "drift", "proposal")
"""The names that `panel_grades` returns."""


def panel_grades(outcome: Outcome, right: Callable[[Action], bool]) -> dict[str, float | None]:
    """Grade what a protocol makes of its panel's answers (DarkForest, Section 1 and Figure 1).

    `available`: 1 if some first answer is right, which bounds what a choice among them can reach. `lost`: 1 if one was
    and the group's answer is not; `gained`: 1 if none was and the group's is. `to_right`, `to_wrong`: how many answers
    became right, or ceased to be, from one round to the next. `first`: the share of first answers that are right.
    `ever`: 1 if an answer of any round is right. `drift`: 1 if after some round more answers were right than
    equal to any wrong one, and the group's answer is wrong (problem drift). `proposal`: 1 if the coordinator's own
    answer is right.

    All are None if the protocol records no `history`. `right` is called once for each different answer.
    """
    history: Sequence[Sequence[Action]] = outcome.facts.get("history") or ()
    if not history:
        return dict.fromkeys(GRADES)
    verdicts: dict[str, bool] = {}

    def is_right(action: Action) -> bool:
        if action is None:
            return False
        key = repr(action)
        if key not in verdicts:
            verdicts[key] = right(action)
        return verdicts[key]

    def leads(answers: Sequence[Action], marks: Sequence[bool]) -> bool:
        """Whether more answers are right than equal any wrong one."""
        wrong = Counter(
            repr(answer) for answer, mark in zip(answers, marks, strict=True) if not mark and answer is not None
        )
        return sum(marks) > max(wrong.values(), default=0)

    marks = [[is_right(action) for action in answers] for answers in history]
    pairs = [pair for one, two in itertools.pairwise(marks) for pair in zip(one, two, strict=False)]
    available, final = any(marks[0]), is_right(outcome.group)
    proposal: Any = outcome.facts.get("proposal")
    return {
        "available": float(available),
        "lost": float(available and not final),
        "gained": float(final and not available),
        "to_right": float(sum(after and not before for before, after in pairs)),
        "to_wrong": float(sum(before and not after for before, after in pairs)),
        "first": sum(marks[0]) / len(marks[0]) if marks[0] else None,
        "ever": float(any(map(any, marks))),
        "drift": float(not final and any(map(leads, history, marks))),
        "proposal": None if proposal is None else float(is_right(proposal)),
    }
