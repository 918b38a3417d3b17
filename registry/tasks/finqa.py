"""FinQA (Chen et al., 2021): questions about financial reports, answered with short programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from harness.api import Action, Case, Facts, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.forms import Form
from harness.extensions.datasets.grading import Measure

from ._finqa import Problem, Program, ProgramReply, execute, execution_equal, parse, program_equal


@plugin
class FinQA(DatasetTask):
    """FinQA: a program in a language of ten operations, whose result is the answer; execution and program accuracy.

    Rows have `question`, `context` (or `pre_text`, `table` and `post_text`), `gold_program` (or `program`) and
    `gold_execution_answer` (or `exe_ans`), directly or in `qa`.
    """

    dataset_path: str | None = "ibm-research/finqa"
    test_split: str | None = "test"
    doc_to_text: str = (
        "Text from a financial report:\n{{ context }}\n\nQuestion: {{ question }}\n\nAnswer with a program of steps "
        "such as subtract(<number>, <number>), divide(#0, <number>). Operations: add, subtract, multiply, divide, exp, "
        "greater, table_max, table_min, table_sum, table_average. Arguments are numbers from the text, constants such "
        "as const_100, or #n for the result of step n, counted from 0. Write a percentage as a ratio. No formulas with "
        "+ - * /."
    )
    doc_to_target: str | int | None = "program"
    answer: dict[str, Any] | None = field(default_factory=dict)
    instruction: str | None = "End your reply with a line that holds the program and nothing else: Program: …"

    def form(self) -> Form:
        """A program."""
        return Form("program", lambda choices: ProgramReply(), "")

    def canonical(self, case: Case, action: Action) -> str:
        """The program's value with the case's table; its steps if it has no value."""
        program = parse(str(action))
        value = program if isinstance(program, Problem) else execute(program, case.target.get("table"))
        if isinstance(value, Problem):
            return str(program if isinstance(program, Program) else action)
        return str(value + 0.0) if isinstance(value, float) else value

    def prepare(self, doc: dict[str, Any]) -> dict[str, Any]:
        """Unify the names of columns."""
        doc = {**doc, **doc["qa"]} if isinstance(doc.get("qa"), Mapping) else doc
        context = doc.get("context")
        if context is None:
            table = "\n".join(" | ".join(map(str, row)) for row in doc["table"])
            context = "\n".join([*doc["pre_text"], table, *doc["post_text"]])
        program = doc["gold_program"] if "gold_program" in doc else doc["program"]
        value = doc["gold_execution_answer"] if "gold_execution_answer" in doc else doc["exe_ans"]
        return {**doc, "context": context, "program": program, "value": value}

    def hidden(self, doc: Mapping[str, Any]) -> Facts:
        """The right value, and the report's table."""
        return {"value": doc["value"], "table": doc.get("table")}

    def measures(self) -> dict[str, Measure]:
        """Execution accuracy and program accuracy."""

        def execution(action: Action, target: Mapping[str, Any]) -> float:
            program = parse(str(action))
            if isinstance(program, Problem):
                return 0.0
            return float(execution_equal(execute(program, target.get("table")), target["value"]))

        def program(action: Action, target: Mapping[str, Any]) -> float:
            answer, gold = parse(str(action)), parse(target["answers"][0])
            return float(isinstance(answer, Program) and isinstance(gold, Program) and program_equal(answer, gold))

        return {"execution": Measure(execution), "program": Measure(program)}
