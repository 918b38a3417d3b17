"""DarkForest's benchmark on small questions of the tests' own making, one scripted model in every agent."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import harness
from harness.api import Completion, Request
from harness.config import spec
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.extensions.panels.fit import fit
from harness.runtime.options import Options
from tests.extensions.datasets.documents_kit import BUILTIN, jsonl

BENCHMARKS = ("MATH", "HumanEval", "MMLU-Pro", "GPQA", "FinQA", "LegalBench")
QUESTIONS, CALIBRATION = 3, 4


def row(benchmark: str, k: int) -> dict[str, Any]:
    """A question whose right answer is k, k + 1, (B) or Yes, and says so to whoever knows where to look."""
    mark = f"[{benchmark} {k}]"
    match benchmark:
        case "MATH":
            return {"problem": f"{mark} What is {k}?", "answer": str(k), "unique_id": str(k)}
        case "HumanEval":
            text = f'def f() -> int:\n    """{mark}"""\n'
            test = f"def check(candidate):\n    assert candidate() == {k}\n"
            return {"task_id": f"HumanEval/{k}", "prompt": text, "test": test, "entry_point": "f"}
        case "MMLU-Pro":
            options = {"options": ["no", "yes", "never"], "answer": "B", "category": "law"}
            return {"question_id": k, "question": f"{mark} Is it?", **options}
        case "GPQA":
            return {
                "question": f"{mark} Is it? The options are: (A) no (B) yes (C) never (D) often.",
                "gold_answer": "B",
            }
        case "FinQA":
            gold = {"gold_program": f"add({k}, 1)", "gold_execution_answer": float(k + 1)}
            return {"id": k, "question": f"{mark} What is one more?", "context": f"It was {k} .", **gold}
    text = f"{mark} Is it?"
    return {"id": k, "task": "own", "text": text, "answer": "Yes", "answer_choices": ["Yes", "No"]}


def said(benchmark: str, k: int, right: bool) -> str:
    """An answer in the benchmark's form."""
    other = k if right else k + 7
    match benchmark:
        case "MATH":
            return f"It is \\boxed{{{other}}}"
        case "HumanEval":
            return f"```python\ndef f() -> int:\n    return {other}\n```"
        case "MMLU-Pro" | "GPQA":
            return f"The answer is ({'B' if right else 'A'})."
        case "FinQA":
            return f"Program: add({other}, 1)"
    return f"Final Answer: {'Yes' if right else 'No'}"


class Model:
    """Sits in every agent: right in two of three calls, by the call's seed; never content with its own answers."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.temperatures: dict[str, set[float]] = {}

    def __call__(self, request: Request) -> Completion:
        output = " ".join(message["content"] for message in request.thread.messages)
        text = request.thread.messages[-1]["content"]
        [benchmark, k] = re.findall(r"\[([A-Za-z-]+) (\d+)\]", output)[0]
        self.asked[benchmark] += 1
        self.temperatures.setdefault(benchmark, set()).add(request.sampling["temperature"])
        reply = said(benchmark, int(k), request.seed % 3 > 0)
        if "of their numbers in one line" in text:
            reply = "0,1,2"
        elif "Give each a score" in text:
            numbers = re.findall(r"^Answer (\d+):", text, re.MULTILINE)
            reply = json.dumps({number: 1 / len(numbers) for number in numbers})
        elif "Criticise this answer" in text:
            reply = "Not yet.\nVerdict: revise"
        elif "Confidence: …" in text:
            reply += "\nConfidence: 0.8"
        return Completion(
            reply, finish_reason="stop", input_tokens=len(output.split()), output_tokens=len(reply.split())
        )


def data(folder: Path, benchmarks: Iterable[str] = BENCHMARKS) -> str:
    """A change that puts small files in the place of the benchmarks' data, and the model under test in every agent."""
    values = []
    for benchmark in benchmarks:
        ask = jsonl(folder / f"{benchmark}.jsonl", [row(benchmark, k) for k in range(QUESTIONS)])
        learn = jsonl(folder / f"{benchmark}-fit.jsonl", [row(benchmark, 50 + k) for k in range(CALIBRATION)])
        here = {"test_split": "test", "process_docs": {"where": "1"}}
        task = {**here, "data_files": {"test": str(ask)}} | ({"num_fewshot": 0} if benchmark == "MMLU-Pro" else {})
        fitted = {**here, "data_files": {"test": str(learn)}, "dataset_path": None}
        agents = dict.fromkeys(("second", "third", "coordinator"), "model")
        values.append({"inherits": benchmark, "task": task, "fit": fitted, **agents})
    return f"matrix.benchmark={json.dumps(values)}"


def played(name: str, folder: Path, *overrides: str, benchmarks: Iterable[str] = BENCHMARKS) -> tuple[Run, Model]:
    """Fit and run a spec of DarkForest's on small data; the model was asked what the evaluation asked."""
    changes = [data(folder, benchmarks), *overrides]
    with contextlib.chdir(folder):
        fit(
            spec.load(name, BUILTIN, changes),
            BUILTIN,
            lambda: Mock(function=Model()),
            options=Options(output_path=folder / "fit", allow_code_execution=True),
        )
        model = Model()
        run = harness.evaluate(
            name, Mock(function=model), overrides=changes, output_path=folder / "run", allow_code_execution=True
        )
    return run, model
