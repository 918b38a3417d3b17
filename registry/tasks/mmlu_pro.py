"""MMLU-Pro (Wang et al., 2024): questions of 14 subjects with up to ten options."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any

from harness.api import Range, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.parameter_checks import FewshotConfig

from ._options import as_list, split_options

_LETTERS = "ABCDEFGHIJ"
_CUE = "Let's think step by step."
_HEADER = "The following are multiple choice questions (with answers) about {{ category }}."
_DESCRIPTION = (
    f"{_HEADER} Think step by step and then "
    'finish your answer with "the answer is (X)" where X is the correct letter choice.\n'
)
_QUESTION = (
    "Question:\n{{ question }}\nOptions:\n"
    f"{{% for option in options %}}{{{{ '{_LETTERS}'[loop.index0] }}}}. {{{{ option }}}}\n{{% endfor %}}"
    f"Answer: {_CUE}"
)


@plugin
class MMLUPro(DatasetTask):
    """MMLU-Pro: multiple choice with up to ten options, after five worked examples of the same subject.

    The prompt is lm-eval's `mmlu_pro` (version 3.1), byte for byte: header, options (including "N/A", which fills up
    some rows), cue, and worked examples in the order of the file.

    With `scoring: loglikelihood` nothing is reasoned: header and question lose what asks for it, and examples show the
    answer alone. The options are then shown below the question, unless their texts are scored (`continuation: text`).

    Rows have `question`, `options` and `answer` (a letter), or `gold_answer` and the options within the question;
    examples have `cot_content`. `category` is a label. For files without examples set `num_fewshot: 0`.
    """

    dataset_path: str | None = "TIGER-Lab/MMLU-Pro"
    test_split: str | None = "test"
    fewshot_split: str | None = "validation"
    num_fewshot: Annotated[int, Range(ge=0, le=100)] = 5
    fewshot_config: FewshotConfig = field(default_factory=lambda: FewshotConfig(sampler="first_n", same="category"))
    description: str = _DESCRIPTION
    doc_to_text: str = _QUESTION
    doc_to_target: str | int | None = "answer"
    doc_to_choice: str | list[str] | None = "options"
    list_choices: bool = False
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "letter"})
    instruction: str | None = ""
    labels: dict[str, str] = field(default_factory=lambda: {"category": "category"})

    def __post_init__(self) -> None:
        if self.scoring and self.description == _DESCRIPTION:
            self.description = f"{_HEADER}\n\n"
        if self.scoring and self.doc_to_text == _QUESTION:
            shown = _QUESTION if self.continuation != "text" else "Question:\n{{ question }}\nAnswer:"
            self.doc_to_text = shown.removesuffix(f" {_CUE}")
        super().__post_init__()

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Add options as a list, taken out of the question if necessary, and the index of the right one."""
        letter = str(doc["answer"] if "answer" in doc else doc["gold_answer"]).strip().upper()
        answer = _LETTERS.index(letter)
        if "options" in doc:
            options = [option.strip() for option in as_list(doc["options"])][: len(_LETTERS)]
            return {**doc, "options": options, "answer": answer}
        parts = split_options(doc["question"])
        if parts is None:
            raise ValueError("no options, neither as a column nor within the question")
        return {**doc, "question": parts[0], "options": parts[1], "answer": answer}

    def solution(self, doc: Any, options: Any) -> str:
        """The row's worked solution, if it has one, without the cue that ends the question; if scored, its answer."""
        if self.scoring:
            return super().solution(doc, options)
        worked = str(doc.get("cot_content") or "").replace(f"A: {_CUE} ", "")
        return worked or f"The answer is ({super().solution(doc, options)})."
