"""Data-set tasks driven by the real vLLM engine: 50 multiple-choice rows, and two models that take turns in a vote."""

import json
from pathlib import Path

import pytest

from harness import storage
from harness.evaluation.load_run import load_run
from tests.conftest import Driven
from tests.helpers.scores import numbers
from tests.helpers.vllm_kit import evaluate

pytestmark = pytest.mark.vllm


def rows(folder: Path) -> str:
    """Fifty rows of our own in MMLU-Pro's form."""
    results = [
        {"question_id": i, "question": f"What is {i} + {i + 1}?", "options": [str(2 * i + d) for d in range(10)],
         "answer": "B", "answer_index": 1, "category": ["math", "law"][i % 2], "cot_content": ""}
        for i in range(50)
    ]  # fmt: skip
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in results))
    return f"task.data_files={file}"


SETS = ("task.num_fewshot=0", "structured_output=true", "task.answer={form: letter, work: false}")


def test_fifty_multiple_choice_rows_with_constrained_letters(roomy_engine: Driven, tmp_path: Path) -> None:
    run = roomy_engine.play("mmlu_pro", tmp_path / "run", rows(tmp_path), *SETS)
    assert len(run.scores) == 50 and not run.failed
    assert {score.numbers["answered"] for score in run.scores} == {1} and {s.labels["category"] for s in run.scores}
    assert sum(numbers(run.scores, "parse_failures")) == 0
    assert all((score.numbers["tokens_total"] or 0) > 10 for score in run.scores)


@pytest.mark.slow
def test_two_models_one_engine_at_a_time_in_a_vote(tiny_model: Path, tmp_path: Path) -> None:
    args = {"use": "vllm", "pretrained": str(tiny_model), "max_model_len": 1024, "enforce_eager": True}
    who = {"default": "model", "other": {"model": "other", "agents": ["Agent-1"]}}
    more = (f"models={json.dumps({'other': args})}", "protocol=vote", "protocol.agents=3", f"agents={json.dumps(who)}")
    sets = [word for change in (rows(tmp_path), *SETS, *more) for word in ("--set", change)]
    how = ("--limit", "6", "--sequential_engines")
    done = evaluate("mmlu_pro", tiny_model, tmp_path / "run", *sets, *how, enforce_eager=True)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "run")
    assert len(run.scores) == 6 and not run.failed
    assert run.meta["engines"]["other"]["requests"] == 6 and run.meta["engines"]["model"]["requests"] == 12
    assert run.meta["engines"]["other"]["engine_switches"] >= 2
    moves = [line for _, line in storage.lines(tmp_path / "run" / "journal.jsonl") if line["k"] == "move"]
    assert len(moves) == 18 and all(move["a"]["answer"] in list("ABCDEFGHIJ") for move in moves)
