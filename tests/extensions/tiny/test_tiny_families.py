"""A game of every family with the small model, on llama.cpp's server by the engine `openai` (`pytest -m tiny`).

All at temperature 0, with one episode and replies of a few tokens: what is read, counted and judged is a model's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.engines.child_reaper import ChildReaper
from harness.extensions.openai.openai import OpenAI
from harness.extensions.tiny import weights
from tests.helpers.small_families import FAMILIES, PANEL, QUESTIONS, SHORT, check_heard, check_played, families, moves

pytestmark = [pytest.mark.tiny, pytest.mark.slow]  # `.ci/run` plays a sixteenth of them, by commit
ROOT = Path(__file__).resolve().parents[3]
LM_EVAL = ROOT / "tests" / "data" / "lm_eval"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where llama.cpp's server is with the small model: two slots of 4,096 tokens."""
    program = Path(weights.__file__).with_name("serve.py")  # importing it needs its package
    command = [sys.executable, "-P", str(program), str(weights.get()), weights.SMOLLM2.name, "2", "4096", "2"]
    environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    reaper = ChildReaper()
    reaper.add(server.pid)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.kill()
    server.wait()
    server.stdout.close()
    reaper.close()


def play(
    address: str, spec: str | Mapping[str, Any], folder: Path, *overrides: str, short: bool = True, **options: Any
) -> harness.Run:
    """A run of one case, finished without failures."""
    engine = OpenAI(model=weights.SMOLLM2.name, base_url=f"{address}/v1", structured="llama.cpp")
    how: dict[str, Any] = {"limit": 1, **options}
    run = harness.evaluate(spec, engine, overrides=(*(SHORT if short else ()), *overrides), output_path=folder, **how)
    assert run.meta["status"] == "finished" and run.scores and not run.failed
    assert not any(score.numbers.get("engine_errors") for score in run.scores)
    return run


def ask(address: str, path: str, body: Mapping[str, Any]) -> Any:
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers)) as answer:
        return json.load(answer)


@families
def test_a_spec_of_the_family_is_played_and_read(family: str, address: str, tmp_path: Path) -> None:
    spec, overrides = FAMILIES[family]
    play(address, spec, tmp_path / "run", "structured_output=true", *overrides)
    check_played(tmp_path / "run", family)


@pytest.mark.parametrize("protocol", ["darkforest", "discussion"])
def test_a_panel_reads_one_another(protocol: str, address: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"disclosure": "reasoning_summary"} if protocol == "darkforest" else {"max_rounds": 1}
    spec = {**PANEL, "protocol": {"use": protocol, "agents": 2, **how}}
    [score] = play(address, spec, tmp_path / "run").scores
    assert score.numbers["calls"] == {"darkforest": 3, "discussion": 4}[protocol]
    check_heard(tmp_path / "run")


def test_an_environment_of_pettingzoo_takes_its_actions(address: str, tmp_path: Path) -> None:
    spec = {
        "name": "rock",
        "task": {"use": "pettingzoo", "env": "classic/rps_v2", "instances": 1, "between": [-1, 1]},
        "protocol": {"use": "steps", "max_timesteps": 2},
        "structured_output": True,
        "metrics": ["score", "parse_failures"],
    }
    [score] = play(address, spec, tmp_path / "run").scores
    assert score.numbers["parse_failures"] == 0
    played = moves(tmp_path / "run")
    assert len(played) >= 2 and all(move["a"] is not None and move["calls"] for move in played)


def test_a_task_of_lm_eval_stops_where_it_says(address: str, tmp_path: Path) -> None:
    """Plain texts without a chat template, at temperature 0 and with the task's own stops and bound of tokens."""
    spec = {"name": "words", "task": {"use": "lm_eval", "include_path": str(LM_EVAL), "task": "local_functions"}}
    run = play(
        address, {**spec, "protocol": "single"}, tmp_path / "run", short=False, limit=2, allow_code_execution=True
    )
    [*calls] = [call for move in moves(tmp_path / "run") for call in move["calls"]]
    assert len(calls) == 2 and all(call["output_tokens"] <= 12 and "\n" not in call["text"] for call in calls)
    assert any(call["text"].strip() for call in calls) and len(run.scores) == 2


def test_tokens_are_those_that_the_server_counts(address: str, tmp_path: Path) -> None:
    play(address, "tiny", tmp_path / "run", "matrix.condition=[where]", log_samples=True)
    sample = json.loads((tmp_path / "run" / "samples.jsonl").read_text("utf-8").splitlines()[0])
    for move in moves(tmp_path / "run"):
        [call], thread = move["calls"], sample["threads"][move["s"]]
        asked = thread[: max(i for i, message in enumerate(thread) if message["role"] == "assistant")]
        prompt = ask(address, "/apply-template", {"messages": asked})["prompt"]
        tokens = ask(address, "/tokenize", {"content": prompt, "parse_special": True})["tokens"]
        assert call["input_tokens"] == len(tokens)
        said = ask(address, "/tokenize", {"content": call["text"]})["tokens"]
        assert call["output_tokens"] == len(said) + 1  # the end of the turn is a token too


def test_a_request_with_tools_is_answered_and_read(address: str, tmp_path: Path) -> None:
    """The model's chat template has no tools, so that llama.cpp's server leaves them out: its texts are read."""
    play(
        address, "tiny", tmp_path / "run", "matrix.condition=[chain]", "structured_output=false", "reply_via=tool_calls"
    )
    played = moves(tmp_path / "run")
    assert len(played) == 4 and len({move["a"] for move in played}) == 1, "a word goes along the line"


def test_calls_that_are_shared_are_asked_once(address: str, tmp_path: Path) -> None:
    """Of one agent and of two, the first one asks the same: 2 calls a question instead of 3."""
    spec = {
        "name": "shared",
        "task": {**QUESTIONS, "size": 2},
        "protocol": {"use": "vote", "agents": "${agents}"},
        "prompts": "qa/standard",
        "matrix": {"agents": [1, 2]},
        "dedupe_calls": True,
        "metrics": ["score"],
    }
    run = play(address, spec, tmp_path / "run", limit=2)
    assert len(moves(tmp_path / "run")) == 6 and run.meta["engines"]["model"]["requests"] == 4


def test_the_model_judges_answers(address: str, tmp_path: Path) -> None:
    judge = OpenAI(model=weights.SMOLLM2.name, base_url=f"{address}/v1", structured="llama.cpp")
    metric = {"use": "judge", "name": "helpfulness", "generation_kwargs": {"temperature": 0.0, "max_tokens": 24}}
    spec: dict[str, Any] = {"name": "judged", "task": "open_questions", "protocol": "single", "prompts": "qa/standard"}
    spec["metrics"] = [metric, {**metric, "name": "unrated", "of": "missing"}]
    [score] = play(address, spec, tmp_path / "run", judge=judge).scores
    rating, unrated = score.numbers["helpfulness"], score.numbers["unrated"]
    assert (rating is None and unrated == 1) or (rating is not None and 1 <= rating <= 10 and unrated == 0)
    [folder] = [file.parent for file in (tmp_path / "run").rglob("journal.jsonl") if file.parent != tmp_path / "run"]
    [asked] = moves(folder)
    answer = moves(tmp_path / "run")[0]["calls"][0]["text"]
    assert (
        asked["calls"][0]["text"]
        and asked["calls"][0]["input_tokens"] > moves(tmp_path / "run")[0]["calls"][0]["output_tokens"]
    )
    assert answer


def test_blame_asks_the_model_what_follows_from_another_move(address: str, tmp_path: Path) -> None:
    """A script says another word in the chain, and the model behind it passes that on. With the right word in its
    place the model is asked again, and the chain holds."""
    act = "'TIGER' if view.the_one_before_you_said != 'TIGER' else 'RIVER'"
    liar = json.dumps({"agents": ["Agent-2"], "policy": {"use": "expression", "act": act}})
    [score] = play(address, "tiny", tmp_path / "run", "matrix.condition=[chain]", f"agents.other={liar}").scores
    assert score.numbers["score"] == 0.5
    command = [sys.executable, "-m", "harness", "blame", str(tmp_path / "run"), "--metric", "score"]
    command += ["--reference", "{use: expression, act: view.the_one_before_you_said}", "--model", "openai"]
    command += ["--model_args", f"base_url={address}/v1,model={weights.SMOLLM2.name},structured=llama.cpp"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    [found] = json.loads((tmp_path / "run" / "blame.json").read_text("utf-8"))["found"].values()
    [episode] = found["episodes"].values()
    assert {move["agent"] for move in episode["decisive"]} == {"Agent-2"}
