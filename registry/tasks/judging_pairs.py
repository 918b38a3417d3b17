"""Pairs of answers to choose from: what `harness judge RUN_A RUN_B` has its judge play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from harness.api import Case, Facts, Outcome, Range, Reply, plugin
from harness.extensions.judges.judge_task import JudgedTask, judge_names, per_judge
from harness.extensions.judges.rating import Preference


@plugin
class JudgingPairs(JudgedTask):
    """Two answers to each question, to choose the better one of; every judge chooses.

    Attributes:
        file: JSON lines beside the spec, one for each pair and order; None: an example.
        judges: the number of judges.
    """

    file: str | None = None
    judges: Annotated[int, Range(ge=1, le=100)] = 1

    grades = ("first", "second", "tie", "missing")
    EXAMPLE: ClassVar[Facts] = {
        "id": "example",
        "question": "Why is the sky blue?",
        "first": "Air scatters short waves of light more than long ones.",
        "second": "Because it mirrors the sea.",
        "reference": None,
        "left_out": 0,
    }

    def case(self, name: str, line: Facts, fence: str) -> Case:
        """The question and both answers, in the order in which the judge sees them."""
        public: dict[str, Any] = {key: line[key] for key in self.EXAMPLE if key != "id"}
        return Case(name, judge_names(self.judges), {**public, "fence": fence}, labels=dict(line.get("labels") or {}))

    def reply(self, case: Case, agent: str) -> Reply:
        """A for the first answer, B for the second, or a tie."""
        return Preference()

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """How many of the replies prefer the first answer, the second, neither; and how many say nothing readable."""
        replies = [r for several in per_judge(case, outcome.facts, outcome.answers).values() for r in several]
        counts = {name: float(sum(r == choice for r in replies)) for name, choice in _CHOICES.items()}
        return {**counts, "missing": len(replies) - sum(counts.values())}


_CHOICES = {"first": "A", "second": "B", "tie": "tie"}
