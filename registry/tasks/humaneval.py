"""HumanEval (Chen et al., 2021): Python functions, graded by running the data set's tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any

from harness.api import Action, Case, Facts, Range, Reply, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.grading import Measure
from harness.extensions.sandbox.code import Code, assemble

from ._programs import MAX_PROGRAM, same_program


@plugin
class HumanEval(DatasetTask):
    """HumanEval: complete a Python function so that it passes the data set's tests (pass@1 by execution).

    Programs run only with --allow_code_execution, each in a sandbox of its own (`extensions.sandbox`). Rows have
    `task_id`, `prompt`, `test` and `entry_point`.

    Attributes:
        seconds: the time limit of one program, in seconds.
    """

    dataset_path: str | None = "openai/openai_humaneval"
    test_split: str | None = "test"
    doc_to_text: str = (
        "Complete this Python function. Reply with the whole function in one fenced code block; it must not need "
        "anything that is not in the block or in Python's standard library.\n\n```python\n{{ prompt }}\n```"
    )
    doc_to_id: str | None = "task_id"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "code"})
    seconds: Annotated[float, Range(gt=0, le=600)] = 10.0

    grading = "executes"

    def public(self, doc: Mapping[str, Any]) -> Facts:
        """The name of the function, which its reply form needs, and the beginning of the program."""
        return {"entry_point": doc["entry_point"], "prompt": doc["prompt"]}

    def reply(self, case: Case, agent: str) -> Reply:
        """A program that defines the function."""
        return Code(case.public.get("entry_point"))

    def hidden(self, doc: Mapping[str, Any]) -> Facts:
        """The beginning of the program, its tests, and the name of the function."""
        return {name: doc[name] for name in ("prompt", "test", "entry_point")}

    def canonical(self, case: Case, action: Action) -> str:
        """The normal form of the whole program, the same for a completion and for the whole function."""
        code, name = str(action), case.public.get("entry_point")
        if name is None or len(code) > MAX_PROGRAM:
            return same_program(code)
        return same_program(assemble(case.public["prompt"], code, name))

    def measures(self) -> dict[str, Measure]:
        """`passed`: 1 if the tests pass, else 0."""

        def passed(action: Action, target: Mapping[str, Any]) -> float:
            from harness.extensions.sandbox import ProgramLimits, check

            prompt, name = target["prompt"], target["entry_point"]
            whole = assemble(prompt, str(action), name)
            return float(check(prompt, whole, target["test"], name, ProgramLimits(wall=self.seconds)).passed)

        return {"passed": Measure(passed)}
