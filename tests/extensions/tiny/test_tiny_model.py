"""The small model itself by the engine `tiny` (`pytest -m tiny`): what random weights and stand-ins do not show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.extensions.tiny import weights
from tests.helpers.small_families import moves, replies

pytestmark = pytest.mark.tiny
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", autouse=True)
def model() -> Path:
    """The weights, downloaded once."""
    return weights.get()


def test_ten_conditions_are_read_in_short_prompts_and_above_the_floor(tmp_path: Path) -> None:
    run = harness.evaluate("tiny", model="tiny", limit=1, output_path=tmp_path / "run")
    assert run.meta["engine_args"]["model"]["weights"] == weights.SMOLLM2.sha256
    scores = {score.labels["condition"]: score.numbers["score"] or 0 for score in run.scores}
    assert len(scores) == 10 and not run.failed
    assert sum(float(str(score)) for score in scores.values()) / 10 > 0.4, "random play has 0.24"
    calls = [call for move in moves(tmp_path / "run") for call in move["calls"]]
    assert max(call["input_tokens"] for call in calls) <= 300
    assert not any(score.numbers["parse_failures"] for score in run.scores)
    assert all("\n" not in call["text"] for call in calls)


def test_a_killed_run_goes_on_to_the_same_replies_and_repeats_them(tmp_path: Path) -> None:
    """kill -9 in the middle: the same command arrives at the moves of a run that went through."""
    command = [sys.executable, "-m", "harness", "eval", "--spec", "tiny", "--limit", "3", "--model", "tiny"]
    command += ["--model_args", "deterministic=true", "--set", "matrix.condition=[chain, count]", "--output_path"]

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run([*command, str(whole)], check=True, capture_output=True, cwd=ROOT)
    environment = {**os.environ, "MARK": str(tmp_path)}
    process = subprocess.Popen([*command, str(cut)], env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stderr is not None
    for line in process.stderr:
        if ": 2/6 episodes" in line:
            process.send_signal(signal.SIGKILL)
            break
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL
    begun = len(moves(cut))
    done = subprocess.run([*command, str(cut)], check=True, capture_output=True, text=True, cwd=ROOT)
    assert 0 < begun < 24 and "6/6 episodes" in done.stderr
    assert replies(cut) == replies(whole)
    report = json.loads((whole / "run.json").read_text("utf-8"))["engines"]["model"]
    assert report["asked_again"] == {"asked": 16, "equal": 16}
