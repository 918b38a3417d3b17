"""Methods that combine answers, through the real vLLM engine: fifty multiple-choice rows each, and their peer text."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from tests.conftest import Driven
from tests.helpers.scores import numbers

pytestmark = pytest.mark.vllm

METHODS: dict[str, dict[str, Any]] = {
    "vote": {"use": "vote", "agents": 3},
    "vote of nine": {"use": "vote", "agents": 3, "calls": 9},
    "debate": {"use": "debate", "agents": 3, "rounds": 2},
    "reconcile": {"use": "reconcile", "agents": 3, "rounds": 2},
    "mixture_of_agents": {"use": "mixture_of_agents", "agents": 3, "layers": 2},
    "darkforest": {"use": "darkforest", "agents": 3, "disclosure": "full_traces"},
}
CALLS = {"vote": (3, 3), "vote of nine": (9, 9), "debate": (6, 6), "reconcile": (3, 9), "mixture_of_agents": (4, 4),
         "darkforest": (4, 4)}  # fmt: skip


def spec(folder: Path) -> dict[str, Any]:
    rows = [
        {"question_id": i, "question": f"What is {i} + {i + 1}?", "options": [str(2 * i + d) for d in range(10)],
         "answer": "B", "answer_index": 1, "category": "math", "cot_content": ""}
        for i in range(50)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "name": "ensembles",
        "task": {"use": "mmlu_pro", "data_files": str(folder / "rows.jsonl"), "num_fewshot": 0,
                 "answer": {"form": "letter", "work": False}},
        "protocol": "${method.protocol}",
        "prompts": "panels/standard",
        "matrix": {"method": [{"name": name, "protocol": {**p, "confidence": "line"}} for name, p in METHODS.items()]},
        "structured_output": True,
        "dedupe_calls": True,
        "generation_kwargs": {"temperature": 1.0, "max_tokens": 60},
        "metrics": ["score", "calls", "parse_failures", "engine_errors", {"use": "tokens", "name": "tokens"},
                    {"use": "panels/peer_text", "name": "peer_text"}],
        "tables": [{"title": "Methods", "rows": "method", "metrics": ["score", "calls", "tokens", "peer_text"],
                    "aggregate": "pooled"}],
    }  # fmt: skip


def test_every_method_plays_fifty_rows(roomy_engine: Driven, tmp_path: Path) -> None:
    run = roomy_engine.play(spec(tmp_path), tmp_path / "run")
    assert len(run.scores) == 50 * len(METHODS) and not run.failed
    assert sum(numbers(run.scores, "parse_failures")) == 0
    assert sum(numbers(run.scores, "engine_errors")) == 0
    first: dict[str, set[str]] = {}
    for name, (least, most) in CALLS.items():
        of = [score for score in run.scores if score.labels["method"] == name]
        calls = numbers(of, "calls")
        assert least <= min(calls) and max(calls) <= most, name
        peer_text = numbers(of, "peer_text")
        if name.startswith("vote"):
            assert set(peer_text) == {0}, "nobody hears anybody"
        elif name != "reconcile":  # which may agree at once
            assert min(peer_text) > 10 and all((s.numbers["tokens"] or 0) > 100 for s in of)
    for _, line in storage.lines(tmp_path / "run" / "journal.jsonl"):
        if line["k"] == "move" and line["i"] == 0 and line["t"] == "answer":
            key = line["e"].split("/", 1)[1] + line["s"]
            first.setdefault(key, set()).add(line["calls"][0]["text"])
    assert first and all(len(texts) == 1 for texts in first.values()), "all methods begin with the same answers"
    meta = run.meta["engines"]["model"]
    assert meta["calls_asked"] < sum(numbers(run.scores, "calls"))


def test_what_crosses_is_counted_by_the_model_s_tokenizer(tiny_model: Path) -> None:
    from transformers import AutoTokenizer

    from harness.api.errors import SetupError
    from harness.extensions.openai.openai import OpenAI
    from harness.extensions.vllm.vllm import VLLM

    text = "Agent-0: answer (B), confidence 0.80 \\frac{1}{2} – ⟨ψ|"
    tokens = len(AutoTokenizer.from_pretrained(tiny_model).encode(text, add_special_tokens=False))
    assert VLLM(pretrained=str(tiny_model)).count_tokens(text) == tokens > 10
    assert OpenAI(model="m", tokenizer=str(tiny_model)).count_tokens(text) == tokens
    with pytest.raises(SetupError, match="the tokenizer '/nowhere' cannot be loaded"):
        OpenAI(model="m", tokenizer="/nowhere").count_tokens(text)
