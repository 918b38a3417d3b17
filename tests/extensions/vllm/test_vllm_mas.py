"""MAS-Bench driven by the real vLLM engine: both phases over each backend with a tiny random model on the CPU."""

from pathlib import Path

import pytest

from harness import storage
from tests.conftest import Driven

pytestmark = pytest.mark.vllm
VERBS = {
    "Broadcasting": {"receive_messages", "broadcast_message", "list_agents"},
    "P2P": {"receive_messages", "send_message"},
    "Shared K-V": {"list_files", "read_file", "write_file", "delete_file"},
}


def test_every_backend_and_condition_within_the_grammar_of_commands(roomy_engine: Driven, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    small = ("matrix.agents=[2]", "matrix.items=[2]", "protocol.max_rounds=2")
    more = ("matrix.condition=[Base, CAMOC]", "structured_output=true", "generation_kwargs.max_tokens=192")
    run = roomy_engine.play("mas_quick", folder, *small, *more)
    assert len(run.scores) == 6 and not run.failed
    for score in run.scores:
        numbers, phases = score.numbers, 2 if score.labels["condition"] == "CAMOC" else 1
        assert numbers["engine_errors"] == numbers["parse_failures"] == 0
        assert 1 <= (numbers["calls"] or 0) <= 4 * phases and 1 <= (numbers["rounds_all"] or 0) <= 2 * phases
        assert (numbers["te_final"] or 0) > 0 and (numbers["tokens_per_run"] or 0) > 0
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    for backend, verbs in VERBS.items():
        calls = [call for move in moves if f"backend={backend}" in move["e"] for call in move["a"]]
        assert calls and {call["call"] for call in calls} <= verbs | {"wait", "submit_result"}, "only its commands"
