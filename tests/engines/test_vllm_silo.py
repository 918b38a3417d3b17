"""SILO-Bench driven by the real vLLM engine: one task over each channel with a tiny random model on the CPU."""

from pathlib import Path

import pytest

from harness import storage
from harness.evaluation import Run
from tests.helpers.vllm_kit import evaluate

pytestmark = pytest.mark.vllm
VERBS = {
    "P2P": {"send_message", "receive_messages"},
    "BP": {"broadcast_message", "receive_messages", "list_agents"},
    "SFS": {"list_files", "read_file", "write_file", "delete_file"},
}


def test_one_task_over_each_channel_within_the_grammar_of_calls(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    small = ("--set", "matrix.agents=[2]", "--set", "matrix.problem=[global_maximum]", "--set", "protocol.max_rounds=3")
    more = ("--set", "constrained=true", "--gen_kwargs", "max_tokens=256")
    done = evaluate("silo_quick", tiny_model, folder, *small, *more)
    assert done.returncode == 0, done.stderr
    assert "Overall performance by communication protocol" in done.stdout and "Traceback" not in done.stderr

    run = Run.load(folder)
    assert len(run.scores) == 3 and not run.failed
    for score in run.scores:
        numbers = score.numbers
        assert numbers["engine_errors"] == numbers["parse_failures"] == 0
        assert 1 <= (numbers["calls"] or 0) <= 8 and (numbers["silo/token_consumption"] or 0) > 0
        assert (numbers["utilisation"] or 0) > 0 and (numbers["t_base"] or 0) > 0
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    for channel, verbs in VERBS.items():
        calls = [call for move in moves if f"protocol={channel}" in move["e"] for call in move["a"]]
        whole = [call["call"] for call in calls if "error" not in call]
        assert whole and set(whole) <= verbs | {"wait", "submit_result"}, "nothing but the channel's calls"
