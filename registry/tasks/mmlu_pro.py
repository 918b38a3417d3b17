"""MMLU-Pro (Wang et al., 2024): questions of 14 subjects with up to ten options."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from harness.api import Range, plugin
from harness.documents import DatasetTask

from ._options import listed, split_options


@plugin
class MMLUPro(DatasetTask):
    """MMLU-Pro: multiple choice with up to ten options; five worked examples of the same subject stand before each.

    Rows have `question`, `options` and `answer` (a letter), or the options within the question and `gold_answer`;
    examples have `cot_content`. `category` is a label. With files that hold no examples say `num_fewshot: 0`.
    """

    dataset_path: str | None = "TIGER-Lab/MMLU-Pro"
    test_split: str | None = "test"
    fewshot_split: str | None = "validation"
    num_fewshot: Annotated[int, Range(ge=0, le=100)] = 5
    fewshot_config: dict[str, Any] = field(default_factory=lambda: {"sampler": "first_n", "same": "category"})
    doc_to_text: str = "Question: {{ question }}\nOptions:"
    doc_to_target: str | int | None = "answer"
    doc_to_choice: str | list[str] | None = "options"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "letter"})
    instruction: str | None = "Think step by step, then end your reply with: The answer is (X)."
    target_delimiter: str = "\nAnswer: "
    labels: dict[str, str] = field(default_factory=lambda: {"category": "category"})

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Options out of the question where they stand in it; "N/A" at the end, which fills up rows, is no option."""
        letter = str(doc["answer"] if "answer" in doc else doc["gold_answer"]).strip().upper()
        answer = "ABCDEFGHIJ".index(letter)
        if "options" in doc:
            options = listed(doc["options"])
            while len(options) > 2 and options[-1] == "N/A":
                options.pop()
            return {**doc, "options": options, "answer": answer}
        found = split_options(doc["question"])
        if found is None:
            raise ValueError("no options, neither as a column nor within the question")
        return {**doc, "question": found[0], "options": found[1], "answer": answer}

    def solved(self, doc: Any, options: Any) -> str:
        """The worked solution, if the row has one."""
        worked = str(doc.get("cot_content") or "").removeprefix("A:").strip()
        return worked or f"The answer is ({super().solved(doc, options)})."
