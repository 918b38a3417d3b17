"""MATH (Hendrycks et al., 2021): competition problems whose answers are formulas."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from harness.api import plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.boxed import Boxed


@plugin
class Math(DatasetTask):
    """MATH: competition problems; an answer is right if it is mathematically equal (math-verify).

    Rows have `problem` (or `question`), and `answer` or else a `solution` with the answer in its last box; `level` and
    `subject` (or `type`) are labels.
    """

    dataset_path: str | None = "HuggingFaceH4/MATH-500"
    test_split: str | None = "test"
    doc_to_text: str = "question"
    doc_to_target: str | int | None = "answer"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "boxed"})
    metric_list: list[str | dict[str, Any]] = field(default_factory=lambda: ["math_equal", "math_strict"])
    labels: dict[str, str] = field(default_factory=lambda: {"subject": "subject", "level": "level"})

    grading = "slow"

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Unify the names of columns."""
        answer = doc.get("answer")
        if answer in (None, "") and "boxed" in doc["solution"]:
            answer = Boxed().parse(doc["solution"]).action
        if answer in (None, ""):
            raise ValueError("no answer, and no box in the solution")
        return {
            **doc,
            "question": doc["problem"] if "problem" in doc else doc["question"],
            "answer": str(answer),
            "subject": doc.get("subject", doc.get("type", "–")),
            "level": doc.get("level", "–"),
            "id": doc.get("unique_id", doc.get("id")),
        }
