"""Agents that act by themselves, whose harness is killed: they catch up by the record, and no model is asked twice."""

import json
from pathlib import Path

import pytest

from harness import storage
from harness.storage.inner_calls import InnerCallIndex
from tests.extensions.agents import test_inner_resume as inner
from tests.helpers.toy import results

AGENT = '''
"""Asks its model in every turn and between turns; its moves depend on all that it ever heard."""

import asyncio, os, zlib

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def note(what):
    with open(os.environ["TRACE"], "a") as file:
        file.write(what + "\\n")


async def play(mcp_url, mcp_token, base_url, api_key, model, episode, agent, seed):
    if os.environ.get("OTHER") == agent:
        seed += 1
    heard = f"{episode}/{agent}/{seed}"

    async def ask(http):
        nonlocal heard
        text = f"{episode}/{agent}/{zlib.crc32(heard.encode())}"
        answer = await http.post(
            base_url + "/chat/completions",
            json={"model": model, "messages": [{"role": "user", "content": text}]},
            headers={"Authorization": "Bearer " + api_key},
        )
        if answer.status_code == 503:  # the run has ended
            raise OSError("gone")
        note("GOT " + text)
        heard += answer.json()["choices"][0]["message"]["content"] if answer.status_code == 200 else "refused"

    async with httpx2.AsyncClient(headers={"Authorization": "Bearer " + mcp_token}, timeout=60) as at_seat:
        async with (
            httpx2.AsyncClient(timeout=60) as http,
            Client(streamable_http_client(mcp_url, http_client=at_seat)) as seat,
        ):
            await ask(http)  # before the first turn is read: it belongs to it
            while True:
                state = (await seat.call_tool("wait_for_turn", {})).structured_content
                if state["status"] == "over":
                    return
                if state["status"] != "turn":
                    continue
                heard += f"{state['text']} {state['seed']} {state['new_conversation']}"
                await ask(http)
                await ask(http)
                for letter in ("ab?"[zlib.crc32(heard.encode()) % 3], "b"):
                    done = await seat.call_tool("reply", {"text": letter})
                    heard += letter + done.content[0].text
                    if not done.is_error:
                        break
'''


def prepared(folder: Path) -> Path:
    inner.prepared(folder)
    (folder / "walker.py").write_text(AGENT)
    return folder


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(inner.FORMS, "acting", "call=walker:play,interface=mcp")
    calm, wild = prepared(tmp_path / "calm"), prepared(tmp_path / "wild")
    _, errors = (process := inner.start(calm, "acting")).communicate(timeout=300)
    assert process.returncode == 0, errors
    assert inner.killed(wild, "acting", kills=3, seed=4) > 1
    assert results(wild / "run") == results(calm / "run")
    assert inner.moves(wild) == inner.moves(calm)
    asked = [line for line in (wild / "trace").read_text().splitlines() if line.startswith("ASK")]
    got = {line[4:] for line in (wild / "trace").read_text().splitlines() if line.startswith("GOT")}
    first = {line for line in (calm / "trace").read_text().splitlines() if line.startswith("ASK")}
    assert {*asked} == first and len(got) == len(first)
    index = InnerCallIndex([wild / "run" / storage.JOURNAL])
    calls = [call for episode in index.episodes() for call in index.of(episode)]
    assert len(calls) == len(first) and not any(call.is_dropped for call in calls)
    report = json.loads((wild / "run" / "run.json").read_text())["engines"]["model"]
    assert report["recalled"] > 0 and report["differed"] == 0


@pytest.mark.slow
def test_who_acts_otherwise_gets_the_present_turn_and_the_record_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(inner.FORMS, "acting", "call=walker:play,interface=mcp")
    folder = prepared(tmp_path / "other")
    process = inner.start(folder, "acting")
    while len((folder / "trace").read_bytes().splitlines()) < 120 and process.poll() is None:
        with pytest.raises(Exception):  # noqa: B017
            process.wait(0.01)
    process.kill()
    process.communicate(timeout=60)
    monkeypatch.setenv("OTHER", "S0")
    _, errors = (process := inner.start(folder, "acting")).communicate(timeout=300)
    assert process.returncode == 0, errors
    report = json.loads((folder / "run" / "run.json").read_text())["engines"]["model"]
    assert report["differed"] > 0
    assert "did not repeat its recorded move of turn" in (folder / "run" / "engine.log").read_text()
