"""Open questions of our own, which no rule can grade: for trying out judges without a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from harness.api import Place, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.rows import Row, read_files

_FILE = Path(__file__).with_name("_open_questions.jsonl")


@plugin
class OpenQuestions(DatasetTask):
    """Twenty-four open questions to explain, advise, write or compare, each with the points of a good answer.

    No rule grades the answers; the metric `judge` has a judge rate them. Rows have `id`, `kind`, `question`, `points`.
    Works offline.
    """

    test_split: str | None = "test"
    doc_to_text: str = "question"
    doc_to_target: str | int | None = "points"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "text"})
    instruction: str | None = ""
    metric_list: list[str | dict[str, Any]] = field(default_factory=lambda: ["ungraded"])
    labels: dict[str, str] = field(default_factory=lambda: {"kind": "{{ kind }}"})

    def rows(self, split: str, seed: int) -> Iterator[tuple[Place, Row]]:
        """The questions of the file beside this one, in its order."""
        return read_files([_FILE])

    def example(self) -> Any:
        """The first question."""
        return next(iter(self.cases(1, 0)))
