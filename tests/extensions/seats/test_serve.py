"""`harness serve`: outside agents play seats of a run, leave, come back, and the run is a usual one."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from harness.cli import main
from tests.helpers.acting import seat_at, wait
from tests.helpers.toy import TOY

ROOT = Path(__file__).parents[3]
SMALL = ("--spec", "toy", "--set", "matrix.agents=[2]", "--set", "task.cases_made=2", "--set", "protocol.rounds=2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "harness.yaml").write_text(f"parents: [{TOY.root}]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "harness", "serve", *SMALL, "--output_path", "run", *options]


def served(*options: str, token: str = "") -> tuple[subprocess.Popen[str], list[tuple[str, str]]]:
    """A command, and (URL, secret) of its seats."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HARNESS_SEAT_TOKEN": token}
    process = subprocess.Popen(
        command("--port", "0", *options), env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    text, seats = "", list[tuple[str, str]]()
    for line in process.stderr:
        text += line
        count = re.search(r"^(\d+) seats? for", text)
        seats = re.findall(r"^seat \d+ .*: (http\S+)\n  Authorization: Bearer (.+)$", text, re.MULTILINE)
        if count is not None and len(seats) == int(count[1]):
            return process, seats
    raise AssertionError(text)


async def play(url: str, secret: str, letter: str, most: int = 99) -> list[str]:
    """Say the same letter in so many turns; returns what the turns showed."""
    shown: list[str] = []
    async with seat_at(url, secret) as seat:
        while len(shown) < most:
            state = await wait(seat)
            if state["status"] == "turn":
                shown.append(state["text"])
                assert not (await seat.call_tool("reply", {"text": letter})).is_error
            elif not state["more_episodes"]:
                break
    return shown


def finished(process: subprocess.Popen[str], folder: Path) -> list[dict[str, object]]:
    """The scores of a run that has ended well."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "outside (agent): an outside agent played." in output
    return [json.loads(line) for line in (folder / "run" / "scores.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_group_is_played_by_clients_one_episode_after_another(folder: Path) -> None:
    process, seats = served("--seat", "default")
    assert len({url for url, _ in seats}) == len({secret for _, secret in seats}) == 2

    async def both() -> list[list[str]]:
        return list(await asyncio.gather(*(play(url, secret, "a") for url, secret in seats)))

    first, second = asyncio.run(asyncio.wait_for(both(), 60))
    scores = finished(process, folder)
    assert len(scores) == 2 and len(first) == len(second) == 4  # turns of two episodes
    meta = json.loads((folder / "run" / "run.json").read_text())
    assert meta["model"] == "outside (agent)" and meta["engines"]["outside"]["turns"] == 8


@pytest.mark.slow
def test_one_agent_is_played_and_others_by_policies_across_a_kill(folder: Path) -> None:
    process, [(url, secret)] = served("--seat", "S1", token="open sesame")
    assert secret == "that of $HARNESS_SEAT_TOKEN"
    assert len(asyncio.run(asyncio.wait_for(play(url, "open sesame", "b", most=3), 60))) == 3
    while sum(b'"k":"move"' in line for line in (folder / "run" / "journal.jsonl").read_bytes().splitlines()) < 6:
        pass  # the journal is written every 100 ms
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    process, [(url, _)] = served("--seat", "S1", token="open sesame")
    shown = asyncio.run(asyncio.wait_for(play(url, "open sesame", "b"), 60))
    assert len(shown) == 1 and "[You replied]\nb" in shown[0]  # all that was said
    assert len(finished(process, folder)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_starts_the_command_plays_over_its_standard_input(folder: Path, mode: str) -> None:
    async def inside() -> int:
        words = command("--seat", "S0", "--stdio")
        variables = {**os.environ, "PYTHONPATH": str(ROOT)}
        turns = 0
        async with Client(StdioServerParameters(command=words[0], args=words[1:], env=variables), mode=mode) as seat:
            while (state := await wait(seat))["status"] == "turn" or state["more_episodes"]:
                if state["status"] == "turn":
                    turns += 1
                    await seat.call_tool("reply", {"text": "a"})
        return turns

    assert asyncio.run(asyncio.wait_for(inside(), 60)) == 4
    assert (folder / "run" / "results.json").is_file()


@pytest.mark.slow
def test_a_label_may_be_any_text(folder: Path) -> None:
    process, seats = served("--seat", "S0", "--limit", "1", "--label", "🎲")
    asyncio.run(play(*seats[0], "a"))
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "outside (🎲)" in output


@pytest.mark.slow
def test_a_run_over_standard_input_ends_although_its_client_keeps_it_open(folder: Path) -> None:
    process = subprocess.Popen(
        command("--seat", "S0", "--stdio", "--limit", "1"), env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    sent = 0

    def ask(method: str, **params: object) -> dict[str, Any]:
        nonlocal sent
        sent += 1
        assert process.stdin is not None and process.stdout is not None
        print(
            json.dumps({"jsonrpc": "2.0", "id": sent, "method": method, "params": params}),
            file=process.stdin, flush=True,
        )  # fmt: skip
        answer = next(said for line in process.stdout if (said := json.loads(line)).get("id") == sent)
        found: dict[str, Any] = answer["result"]
        return found

    ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "x", "version": "1"})
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), file=process.stdin, flush=True)
    while True:
        state = ask("tools/call", name="wait_for_turn", arguments={"seconds": 10**400})["structuredContent"]
        if state["status"] == "turn":
            ask("tools/call", name="reply", arguments={"text": "a"})
        elif state["status"] == "over" and not state["more_episodes"]:
            break
    assert process.wait(20) == 0
    assert process.stderr is not None and "Traceback" not in process.stderr.read()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--seat", "S7"), "there is no group and no agent 'S7'"),
        (("--seat", "defualt"), "Did you mean default?"),
        (("--seat", "default", "--stdio"), "--stdio serves one seat, and 2 agents are to be played"),
        (("--seat", "S0", "--stdio", "--as", "a2a"), "A2A is spoken over HTTP"),
    ],
)
def test_a_seat_that_cannot_be_served_is_explained(
    folder: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    assert main(["serve", *SMALL, "--output_path", "run", *options]) == 2
    assert words in capsys.readouterr().err
    assert not (folder / "run").exists()
