"""The small model itself, on llama.cpp's server (`pytest -m tiny`): what random weights and stand-ins do not show.

All at temperature 0, with few cases: a minute or two on two cores.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.extensions.tiny import weights

pytestmark = pytest.mark.tiny
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module", autouse=True)
def model() -> Path:
    """The weights, downloaded once."""
    return weights.get()


def play(spec: str, folder: Path, *overrides: str) -> harness.Run:
    return harness.evaluate(
        spec,
        model="tiny",
        limit=1,
        overrides=("generation_kwargs.temperature=0.0", "generation_kwargs.max_tokens=40", *overrides),
        output_path=folder,
    )


def journal(folder: Path) -> dict[str, list[Any]]:
    """Episode → its moves, without what a clock says."""
    moves: dict[str, list[Any]] = {}
    for line in (folder / "journal.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        if entry["k"] == "move":
            texts = [call.get("text") for call in entry["calls"]]
            moves.setdefault(entry["e"], []).append((entry["b"], entry["s"], json.dumps(entry["a"]), texts))
    return {episode: sorted(each) for episode, each in moves.items()}


@pytest.mark.parametrize(
    ("spec", "overrides"),
    [
        ("tiny", ()),
        ("dpbench_quick", ("matrix.condition=[sim3nc]", "repeats=1", "structured_output=true")),
        ("silo_quick", ("matrix.agents=[2]", "matrix.problem=[global_maximum]", "protocol.max_rounds=2")),
        ("agentsnet_quick", ("matrix.problem=[consensus]", "matrix.graphs=[small_world]", "protocol.rounds=1")),
    ],
)
def test_the_model_plays_every_family(spec: str, overrides: tuple[str, ...], tmp_path: Path) -> None:
    play(spec, tmp_path / "run", *overrides)
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert record["status"] == "finished" and record["engine_args"]["model"]["weights"] == weights.SMOLLM2.sha256


def test_a_killed_run_goes_on_to_the_same_replies(tmp_path: Path) -> None:
    """kill -9 in the middle: the same command arrives at the moves of a run that went through."""
    command = [sys.executable, "-m", "harness", "eval", "--spec", "tiny", "--limit", "3", "--model", "tiny"]
    command += ["--model_args", "slots=1", "--set", "matrix.condition=[chain, count]", "--output_path"]

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
    begun = sum(map(len, journal(cut).values()))
    done = subprocess.run([*command, str(cut)], check=True, capture_output=True, text=True, cwd=ROOT)
    assert 0 < begun < 24 and "6/6 episodes" in done.stderr
    assert journal(cut) == journal(whole)


def test_the_model_calls_a_tool(tmp_path: Path) -> None:
    """A server with a chat template without tools answers all the same: as a call, or as text."""
    conditions = "matrix.condition=[chain]"
    play("tiny", tmp_path / "run", "reply_via=tool_calls", "structured_output=false", conditions)
    assert len(journal(tmp_path / "run")) == 1


def test_calls_that_are_shared_are_asked_once(tmp_path: Path) -> None:
    """Of one agent and of two, the first one asks the same: 2 calls a question instead of 3."""
    spec = {
        "name": "shared",
        "task": {"use": "arithmetic", "size": 3, "terms": 2},
        "protocol": {"use": "vote", "agents": "${agents}"},
        "prompts": "qa/standard",
        "matrix": {"agents": [1, 2]},
        "generation_kwargs": {"temperature": 0.0, "max_tokens": 24},
        "dedupe_calls": True,
        "metrics": ["score"],
    }
    harness.evaluate(spec, model="tiny", output_path=tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert sum(map(len, journal(tmp_path / "run").values())) == 9
    assert record["engines"]["model"]["requests"] == 6
