"""The dining table driven by the real vLLM engine: twenty episodes with a tiny random model on the CPU."""

from collections import Counter
from pathlib import Path

import pytest

from harness import storage
from tests.conftest import Driven

pytestmark = pytest.mark.vllm
ACTIONS = {"GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"}


def test_twenty_episodes_within_the_four_actions(roomy_engine: Driven, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run = roomy_engine.play("dpbench", folder, "structured_output=true", "matrix.condition=[sim3nc]")
    assert len(run.scores) == 20 and not run.failed and run.meta["structured_output"] is True
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    assert {move["a"] for move in moves} <= ACTIONS, "nothing but the four words"
    assert len(Counter(move["a"] for move in moves)) > 1, "a random model takes more than one of them"
    for score in run.scores:
        numbers = score.numbers
        assert numbers["parse_failures"] == numbers["engine_errors"] == 0
        assert numbers["calls"] == 3 * numbers["timesteps"] and 1 <= numbers["timesteps"] <= 30
        assert (numbers["dpbench/deadlock_rate"] == 1) == (numbers["dpbench/time_to_deadlock"] is not None)
        assert (numbers["dpbench/deadlock_rate"] == 1) or numbers["timesteps"] == 30


def test_with_talk_every_reply_is_a_message_and_an_action(roomy_engine: Driven, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    more = ("structured_output=true", "matrix.condition=[sim3c, seq3c]")
    short = ("protocol.max_timesteps=4", "protocol.max_chars=16")
    run = roomy_engine.play("dpbench", folder, *more, *short, repeats=2)
    moves = [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]
    assert moves and all(move["a"]["act"] in ACTIONS for move in moves)
    messages = [move["a"]["message"] for move in moves if move["a"]["message"] is not None]
    assert messages and all(0 < len(message) <= 16 and "\n" not in message for message in messages)
    assert all(score.numbers["messages"] for score in run.scores)
