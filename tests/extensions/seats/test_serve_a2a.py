"""`harness serve --as a2a`: a seat of a run for whoever speaks A2A, also for another harness."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, SendMessageRequest, Task, TaskState

import harness

SECRET = "the-secret-of-the-seat"
DEBATE: dict[str, Any] = {
    "task": {"use": "arithmetic", "size": 1},
    "protocol": {"use": "debate", "agents": 2, "rounds": 2},
    "models": {"rest": {"use": "mock", "text": "The answer is 4."}},
    "agents": {"default": {"model": "rest"}, "one": {"model": "rest", "count": 1}},
}


@contextlib.contextmanager
def served(folder: Path, spec: str, *options: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a seat that a harness of its own serves, and its process."""
    words = ["serve", "--spec", spec, "--as", "a2a", "--port", "0", "--output_path", str(folder / "served"), *options]
    command = [sys.executable, "-m", "harness", *words]
    environment = {**os.environ, "HARNESS_SEAT_TOKEN": SECRET}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        try:
            assert process.stderr is not None
            said = (re.search(r"http://127\.0\.0\.1:\d+/\S*", line) for line in process.stderr)
            yield next(filter(None, said))[0], process
        finally:
            process.kill()
            process.communicate()


def moves_of(folder: Path) -> list[tuple[str, str]]:
    """(agent, reply) of every move that has one."""
    lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [(line["s"], line["calls"][-1]["text"]) for line in lines if line["k"] == "move" and line.get("calls")]


@pytest.mark.slow
def test_a_client_plays_a_game_to_its_end(tmp_path: Path) -> None:
    async def play(url: str) -> Task:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {SECRET}"}, timeout=60) as http:
            card = await A2ACardResolver(http, url).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
            task, text = Task(), "start"
            for number in range(10):
                part = Message(message_id=str(number), role=Role.ROLE_USER, parts=[Part(text=text)])
                part.task_id, part.context_id = task.id, task.context_id
                async for event in client.send_message(SendMessageRequest(message=part)):
                    if event.HasField("task"):
                        task = event.task
                    elif event.HasField("status_update"):
                        task.status.CopyFrom(event.status_update.status)
                    elif event.HasField("artifact_update"):
                        task.artifacts.append(event.artifact_update.artifact)
                if task.status.state != TaskState.TASK_STATE_INPUT_REQUIRED:
                    return task
                legal = re.findall(r"x\(\d,\d\)", task.status.message.parts[0].text.partition("legal actions: ")[2])
                text = f"ACTION: {legal[0]}"
            raise AssertionError("the game has no end")

    game = ("--seat", "Player-0", "--set", "matrix.game=[tic_tac_toe]", "--limit", "1")
    with served(tmp_path, "game_suite", *game) as (url, process):
        task = asyncio.run(play(url))
        process.communicate(timeout=60)
    assert task.status.state == TaskState.TASK_STATE_COMPLETED and "Returns: " in task.artifacts[0].parts[0].text
    assert process.returncode == 0
    run = harness.load_run(tmp_path / "served")
    assert run.scores[0].error is None and "outside" in run.scores[0].model
    assert len(moves_of(tmp_path / "served")) >= 3


@pytest.mark.slow
def test_a_harness_plays_the_seat_of_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each asks the other: what one asks is what the other one answers."""
    monkeypatch.setenv("SEAT", SECRET)
    (tmp_path / "inner.yaml").write_text(json.dumps({"name": "inner", **DEBATE}))
    with served(tmp_path, "inner.yaml", "--seat", "one", "--limit", "1") as (url, process):
        seat = {"use": "agent", "a2a": url, "api_key_env": "SEAT", "max_retries": 0}
        outer = {
            "name": "outer",
            **DEBATE,
            "protocol": {"use": "debate", "agents": 2, "rounds": 3},
            "models": {**DEBATE["models"], "seat": seat},
            "agents": {"default": {"model": "rest"}, "one": {"model": "seat", "count": 1}},
        }
        how: dict[str, Any] = {"limit": 1, "output_path": tmp_path / "outer", "allow_code_execution": True}
        run = harness.evaluate(outer, **how)
        process.communicate(timeout=60)
    assert process.returncode == 0
    [score] = run.scores
    assert score.number("engine_errors") == 0 and score.model == "Agent-1 + mock"
    asked = [reply for agent, reply in moves_of(tmp_path / "outer") if agent == "Agent-1"]
    moves = [reply for agent, reply in moves_of(tmp_path / "served") if agent == "Agent-1"]
    assert len(asked) == 3 and len(moves) == 2
    assert asked[0].startswith("What is ") and "The answer is 4." in asked[1]
    assert all("The answer is 4." in move and "Others were asked the same question" in move for move in moves)
    meta = json.loads((tmp_path / "outer" / "run.json").read_text())
    assert meta["engines"]["seat"]["agent"]["name"] == "Agent-1" and SECRET not in str(meta)
    for file in [*(tmp_path / "outer").iterdir(), *(tmp_path / "served").iterdir()]:
        assert SECRET not in file.read_text(errors="replace")
