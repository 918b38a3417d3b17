"""LegalBench (Guha et al., 2023): its tasks whose answer is one of a few labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import chain
from typing import Any

from harness.api import DataError, Place, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.label import canonical_label
from harness.extensions.datasets.rows import Row
from harness.extensions.datasets.scored_options import CUE

from ._options import as_list

MAX_LABELS = 40


@plugin
class LegalBench(DatasetTask):
    """LegalBench: legal questions answered by one of a few labels, mostly yes or no.

    Rows have `text`, `answer`, and the labels in `answer_choices`. Otherwise the labels are those of
    `answer: {form: label, labels: […]}`, or else all answers in the split, as for the hub's data, where `dataset_name`
    chooses one task. `task` is a label of results.
    """

    dataset_path: str | None = "nguha/legalbench"
    test_split: str | None = "test"
    training_split: str | None = "train"
    doc_to_text: str = "question"
    doc_to_target: str | int | None = "answer"
    doc_to_choice: str | list[str] | None = "labels"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "label"})
    instruction: str | None = (
        "Give no explanation. Reply with one line, with one of the allowed answers: Final Answer: …"
    )
    metric_list: list[str | dict[str, Any]] = field(
        default_factory=lambda: [{"metric": "exact_match", "ignore_case": True}]
    )
    labels: dict[str, str] = field(default_factory=lambda: {"legal_task": "task"})

    def rows(self, split: str, seed: int) -> Iterable[tuple[Place, Row]]:
        """Yield the split's rows; add all answers in it as labels, if neither rows nor task declare labels."""
        rows = iter(super().rows(split, seed))
        first = next(rows, None)
        if first is None or first[1].get("answer_choices") or (self.answer or {}).get("labels"):
            return chain([first] if first else [], rows)
        all_rows = [first, *rows]
        answers = [str(row.get("answer", "")).strip() for _, row in all_rows]
        labels = sorted({canonical_label(answer): answer for answer in answers}.values())
        if len(labels) > MAX_LABELS:
            message = f"the split {split!r} has {len(labels)} different answers: no labels, but free answers"
            raise DataError(
                message, hint="LegalBench's single-label tasks have a few; declare labels: […] if it has more."
            )
        return [(place, {**row, "answer_choices": labels}) for place, row in all_rows]

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Add the labels, and list them below the text as allowed answers."""
        labels = doc.get("answer_choices") or (self.answer or {}).get("labels")
        if not labels:
            raise ValueError("no answer_choices in this row, though others have them")
        labels = as_list(labels)
        allowed = ", ".join(labels)
        answer = str(doc["answer"]).strip()
        label = next((label for label in labels if label.casefold() == answer.casefold()), answer)
        question = f"{doc['text'].strip()}\n\nAllowed answers: {allowed}{CUE if self.scoring else ''}"
        task = doc.get("task", self.dataset_name or "–")
        return {**doc, "question": question, "labels": labels, "answer": label, "task": task}
