"""SILO-Bench driven by the real vLLM engine: one task over each channel with a tiny random model on the CPU."""

from pathlib import Path

import pytest

from harness import storage
from tests.conftest import Driven

pytestmark = pytest.mark.vllm
VERBS = {
    "P2P": {"send_message", "receive_messages"},
    "BP": {"broadcast_message", "receive_messages", "list_agents"},
    "SFS": {"list_files", "read_file", "write_file", "delete_file"},
}


def test_one_task_over_each_channel_within_the_grammar_of_calls(roomy_engine: Driven, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    small = ("matrix.agents=[2]", "matrix.problem=[global_maximum]", "protocol.max_rounds=3")
    more = ("structured_output=true", "generation_kwargs.max_tokens=256")
    run = roomy_engine.play("silo_quick", folder, *small, *more)
    assert len(run.scores) == 3 and not run.failed
    for score in run.scores:
        numbers = score.numbers
        assert numbers["engine_errors"] == numbers["parse_failures"] == 0
        assert 1 <= (numbers["calls"] or 0) <= 8 and (numbers["silo/token_consumption"] or 0) > 0
        assert (numbers["utilization"] or 0) > 0 and (numbers["t_base"] or 0) > 0
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    for channel, verbs in VERBS.items():
        calls = [call for move in moves if f"protocol={channel}" in move["e"] for call in move["a"]]
        whole = [call["call"] for call in calls if "error" not in call]
        assert whole and set(whole) <= verbs | {"wait", "submit_result"}, "nothing but the channel's calls"
