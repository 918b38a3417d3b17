"""Answers to rate: what the metric `judge` has its judges play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar

from harness.api import Action, Case, Facts, Outcome, Range, Reply, plugin
from harness.extensions.judges.judge_task import RATING, JudgedTask, check_scale, judge_names, per_judge
from harness.extensions.judges.rating import Rating


@plugin
class Judging(JudgedTask):
    """Answers to rate, as the metric `judge` writes them down; every judge rates each of them.

    Attributes:
        file: JSON lines beside the spec, one for each answer; None: an example.
        scale: the lowest and the highest rating.
        criteria: names of what is rated; none: one rating.
        judges: the number of judges.
    """

    file: str | None = None
    scale: tuple[float, float] = (1, 10)
    criteria: list[str] = field(default_factory=list)
    judges: Annotated[int, Range(ge=1, le=100)] = 1

    EXAMPLE: ClassVar[Facts] = {
        "id": "example",
        "question": "Why is the sky blue?",
        "answer": "Air scatters short waves of light more than long ones.",
        "reference": None,
        "transcript": None,
        "left_out": 0,
    }

    def __post_init__(self) -> None:
        check_scale(self.scale, self.criteria)

    @property
    def grades(self) -> tuple[str, ...]:
        """The mean rating, that of each criterion, and how many replies gave none."""
        return (RATING, *self.criteria, "missing")

    def case(self, name: str, line: Facts, fence: str) -> Case:
        """The question, the answer, and what else the judge sees."""
        public: dict[str, Any] = {key: line[key] for key in self.EXAMPLE if key != "id"}
        low, high = (int(end) if float(end).is_integer() else end for end in self.scale)
        public |= {"low": low, "high": high, "criteria": [*self.criteria], "fence": fence}
        return Case(name, judge_names(self.judges), public, labels=dict(line.get("labels") or {}))

    def reply(self, case: Case, agent: str) -> Reply:
        """A number within the scale, or one for each criterion."""
        return Rating(*self.scale, tuple(self.criteria))

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Means over the judges; of a judge that is asked several times over its replies. None without any."""
        form = self.reply(case, "")
        means: dict[str, list[float]] = {name: [] for name in (RATING, *self.criteria)}
        missing = 0
        for replies in per_judge(case, outcome.facts, outcome.answers).values():
            read = [action for action in replies if action is not None and form.allows(action)]
            missing += len(replies) - len(read)
            if not read:
                continue
            for name in self.criteria:
                means[name].append(sum(action[name] for action in read) / len(read))
            means[RATING].append(sum(map(_mean, read)) / len(read))
        return {
            **{name: sum(values) / len(values) if values else None for name, values in means.items()},
            "missing": missing,
        }


def _mean(action: Action) -> float:
    values = list(action.values()) if isinstance(action, dict) else [action]
    return float(sum(values) / len(values))
