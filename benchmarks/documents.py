"""The data-set part of `python benchmarks/run.py`: questions from a JSONL file, answered by the mock engine."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]

SPEC = """
name: questions
task:
  use: dataset_qa
  data_files: {test: rows.jsonl}
  doc_to_text: "{{question}}"
  doc_to_choice: options
  doc_to_target: answer
  answer: {form: letter}
protocol: single
prompts: qa/standard
metrics: [score, {use: tokens, kind: total, name: tokens}, parse_failures]
tables: [{title: Questions, rows: model, columns: metric, metrics: [score, parse_failures], aggregate: pooled}]
"""


def questions(measured: Measured, smoke: bool) -> list[Row]:
    """Everything a run does: reading, rendering, asking, parsing, journal, grading, tables."""
    return [_run(measured, count) for count in ((200,) if smoke else (2_000, 20_000))]


def _run(measured: Measured, count: int) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        row = {
            "question": "Which of these is even? " + "It is a number. " * 20,
            "options": list("1234567890"),
            "answer": "D",
        }
        lines = (json.dumps({**row, "id": i}) for i in range(count))
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        (folder / "spec.yaml").write_text(SPEC.replace("rows.jsonl", str(folder / "rows.jsonl")))
        spec = ["--spec", str(folder / "spec.yaml"), "--output_path", str(folder / "r")]
        wall, cpu, peak, _ = measured(
            ["-m", "harness", "eval", "--quiet", *spec, "--model", "mock", "--model_args", "text=The answer is (D)."]
        )
    return {"documents": count, "wall s": round(wall, 2), "CPU s": round(cpu, 2), "peak MiB": round(peak)}
