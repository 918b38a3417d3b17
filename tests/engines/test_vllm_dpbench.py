"""The dining table driven by the real vLLM engine: twenty episodes with a tiny random model on the CPU."""

from collections import Counter
from pathlib import Path

import pytest

from harness import storage
from harness.evaluation import Run
from tests.helpers.vllm_kit import evaluate

pytestmark = pytest.mark.vllm
ACTIONS = {"GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"}


def test_twenty_episodes_within_the_four_actions(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    more = ("--set", "constrained=true", "--set", "matrix.condition=[sim3nc]")
    done = evaluate("dpbench", tiny_model, folder, *more)
    assert done.returncode == 0, done.stderr
    assert "Performance across the conditions" in done.stdout and "Traceback" not in done.stderr

    run = Run.load(folder)
    assert len(run.scores) == 20 and not run.failed and run.meta["constrained"] is True
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    assert {move["a"] for move in moves} <= ACTIONS, "nothing but the four words"
    assert len(Counter(move["a"] for move in moves)) > 1, "a random model takes more than one of them"
    for score in run.scores:
        numbers = score.numbers
        assert numbers["parse_failures"] == numbers["engine_errors"] == 0
        assert numbers["calls"] == 3 * numbers["timesteps"] and 1 <= numbers["timesteps"] <= 30
        assert (numbers["dpbench/deadlock_rate"] == 1) == (numbers["dpbench/time_to_deadlock"] is not None)
        assert (numbers["dpbench/deadlock_rate"] == 1) or numbers["timesteps"] == 30


def test_with_talk_every_reply_is_a_message_and_an_action(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    more = ("--set", "constrained=true", "--set", "matrix.condition=[sim3c, seq3c]", "--repeats", "2")
    short = ("--set", "protocol.max_timesteps=4", "--set", "protocol.max_chars=16")
    done = evaluate("dpbench", tiny_model, folder, *more, *short)
    assert done.returncode == 0, done.stderr
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    assert moves and all(move["a"]["act"] in ACTIONS for move in moves)
    messages = [move["a"]["message"] for move in moves if move["a"]["message"] is not None]
    assert messages and all(0 < len(message) <= 16 and "\n" not in message for message in messages)
    assert all(score.numbers["messages"] for score in Run.load(folder).scores)
