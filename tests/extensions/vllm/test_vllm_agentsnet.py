"""AgentsNet through the real vLLM engine: the README's command, with a tiny random model on the CPU."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.evaluation.load_run import load_run
from tests.conftest import Driven
from tests.helpers.vllm_kit import evaluate

pytestmark = pytest.mark.vllm


def test_whole_episodes_with_constrained_decoding(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    constrained = (
        "--set",
        "structured_output=true",
        "--set",
        "protocol.max_chars=12",
        "--gen_kwargs",
        "max_tokens=160",
    )
    done = evaluate("agentsnet_quick", tiny_model, folder, *constrained, "--log_samples")
    assert done.returncode == 0, done.stderr
    assert "Fraction of solved instances" in done.stdout and "Tokens per instance" in done.stdout
    progress = ("agentsnet_quick · ", "vLLM loads ", f"{tiny_model.name}: ", "  `error` in ")
    texts = [line for line in done.stderr.splitlines() if not line.startswith(progress)]
    assert len(texts) == 1 and texts[0].startswith("vLLM 0.") and texts[0].endswith(f"its output: {folder}/engine.log")
    assert "EngineCore" in (folder / "engine.log").read_text()

    run = load_run(folder)
    assert run.meta["engines"]["model"]["platform"] in texts[0]
    assert run.meta["identity"]["engine"]["block_size"] is None, "what a platform needs is no part of what the run is"
    assert len(run.scores) == 15 and not run.failed
    assert run.meta["structured_output"] is True and run.meta["policies_only"] is False
    numbers: list[Any] = [score.numbers for score in run.scores]
    assert sum(n["engine_errors"] for n in numbers) == 0
    assert sum(n["parse_failures"] for n in numbers) <= 0.05 * sum(n["calls"] for n in numbers)
    assert all(n["tokens_input"] > 1000 and n["tokens_output"] > 0 for n in numbers)
    assert sum(n["messages"] for n in numbers) > 0, "agents talk to each other"

    answers = [
        line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move" and line["t"] == "answer"
    ]
    assert len(answers) == 15 * 4
    assert {line["a"] for line in answers if "coloring" in line["e"]} <= {f"Group {i}" for i in range(1, 5)}
    assert {line["a"] for line in answers if "consensus" in line["e"]} <= {"0", "1"}
    sample = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    roles = [message["role"] for message in next(iter(sample["threads"].values()))]
    assert roles == ["system"] + ["user", "assistant"] * (len(roles) // 2)

    # The finished run is recognized: the same command starts no engine and prints the same tables.
    again = evaluate("agentsnet_quick", tiny_model, folder, *constrained)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


def test_free_text_and_a_context_that_is_too_short_are_recorded_not_raised(vllm_engine: Driven, tmp_path: Path) -> None:
    more = ("matrix={problem: [coloring], graphs: [small_world], size: [4]}", "generation_kwargs.max_tokens=48")
    [score] = vllm_engine.play("agentsnet_quick", tmp_path / "run", *more).scores
    assert score.error is None
    assert score.numbers["solved"] == 0.0
    assert score.numbers["engine_errors"] > 0, "later rounds do not fit into 2048 tokens"
    kinds = {line.get("error_kind") for _, line in storage.lines(tmp_path / "run" / "journal.jsonl")}
    assert "context_length" in kinds
