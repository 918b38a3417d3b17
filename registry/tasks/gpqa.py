"""GPQA (Rein et al., 2023): graduate-level questions of biology, physics and chemistry, with four options."""

from __future__ import annotations

import random
from dataclasses import field
from typing import Any

from harness.api import derive_seed, plugin
from harness.extensions.datasets import DatasetTask

from ._options import split_options

_RIGHT, _WRONG = "Correct Answer", ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


@plugin
class GPQA(DatasetTask):
    """GPQA: four options in a random order, which is the same in every run.

    Rows have `Question`, `Correct Answer` and `Incorrect Answer 1` to 3, as in the data set; or `gold_answer` and the
    options within `question`, whose order is kept. The data set is gated: accept its terms on the hub first, and do not
    publish its questions.
    """

    dataset_path: str | None = "Idavidrein/gpqa"
    dataset_name: str | None = "gpqa_diamond"
    test_split: str | None = "train"
    doc_to_text: str = "question"
    doc_to_target: str | int | None = "answer"
    doc_to_choice: str | list[str] | None = "options"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "letter"})
    instruction: str | None = "Think step by step, then end your reply with: The answer is (X)."

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Add four options and the index of the right one."""
        if _RIGHT in doc:
            options = [str(doc[name]).strip() for name in (_RIGHT, *_WRONG)]
            order = random.Random(derive_seed("gpqa", doc["Question"])).sample(range(4), 4)
            shuffled = [options[i] for i in order]
            fields = {"question": doc["Question"].strip(), "options": shuffled, "answer": order.index(0)}
            return {**doc, **fields, "id": doc.get("Record ID")}
        split = split_options(doc["question"])
        if split is None:
            raise ValueError("no options within the question")
        return {**doc, "question": split[0], "options": split[1], "answer": "ABCD".index(doc["gold_answer"])}
