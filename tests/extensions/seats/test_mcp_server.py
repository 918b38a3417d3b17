"""A seat as an MCP server, used by the official client: with the stateless protocol and with sessions."""

import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from harness.api import Reply, Request, Thread
from harness.extensions.games.legal import LegalAction
from harness.extensions.networks.calls import Calls
from harness.extensions.seats._connections import SeatConnections
from harness.extensions.seats.board import OpenSeat
from harness.extensions.seats.listener import SeatListener
from harness.extensions.seats.mcp_server import MAX_SESSIONS, WAIT
from harness.replies import Labelled
from tests.core.replies.every_form import VERBS

ROOT = Path(__file__).parents[3]
FORM = Labelled(("WAIT", "GRAB"))
MODES = ("2026-07-28", "legacy", "auto")


@asynccontextmanager
async def client(url: str, secret: str, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    """A client that shows a secret."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode, **options) as one,
    ):
        yield one


def run(work: Callable[[SeatListener], Awaitable[None]], **options: Any) -> None:
    """Do something with a listener."""

    async def inside() -> None:
        listener = SeatListener(**options)
        await listener.start()
        try:
            await asyncio.wait_for(work(listener), 30)
        finally:
            await listener.close()

    asyncio.run(inside())


def request(thread: Thread, form: Reply = FORM, turn: int = 0) -> Request:
    return Request(f"toy/1/0/Ann/{turn}/0", thread, {}, 7, reply=form)


def said(*texts: str, thread: Thread | None = None) -> Thread:
    thread = thread or Thread()
    for text in texts:
        thread.add("user", text)
    return thread


@pytest.mark.parametrize("mode", MODES)
def test_a_client_waits_acts_and_hears_the_end(mode: str) -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        url = await listener.open(seat)
        async with client(url, seat.secret, mode) as one:
            assert mode == MODES[0] or "not yet" in one.instructions
            listing = asyncio.create_task(one.list_tools())  # many clients list tools once: it waits for the first turn
            asked = asyncio.create_task(seat.ask(request(said("rules", "first"))))
            assert [tool.name for tool in (await listing).tools] == [WAIT, "reply"]
            state = await one.call_tool(WAIT, {})
            facts = state.structured_content
            assert (facts["status"], facts["turn"], facts["agent"], facts["episode"]) == ("turn", 1, "Ann", "toy/1/0")
            assert state.content[0].text == facts["text"] == "rules\n\nfirst" and facts["tools"] == ["reply"]
            assert 'action: one of "WAIT", "GRAB"' in state.content[1].text
            listed = (await one.list_tools()).tools[1]
            assert [*listed.input_schema["properties"]] == ["action"], "models fill in whatever they are offered"
            assert listed.input_schema["properties"]["action"]["enum"] == ["WAIT", "GRAB"]
            assert (await one.read_resource("seat://context")).contents[0].text == "rules"
            assert (await one.read_resource("seat://observation")).contents[0].text == "rules\n\nfirst"
            conversation = json.loads((await one.read_resource("seat://conversation")).contents[0].text)
            assert [message["content"] for message in conversation] == ["rules", "first"]
            wrong = await one.call_tool("reply", {"action": "GRAP"})
            assert wrong.is_error and "Did you mean GRAB?" in wrong.content[0].text
            for tool, arguments, words in (
                ("replay", {}, "Did you mean reply?"),
                ("reply", {"move": 1}, "it takes action"),
                ("reply", {"action": "GRAB", "turn": 1}, "no argument 'turn'; it takes action"),
                (WAIT, {"second": 3}, "it takes seconds"),
                (WAIT, {"seconds": "x"}, "no number of seconds"),
            ):
                refused = await one.call_tool(tool, arguments)
                assert refused.is_error and words in refused.content[0].text, refused.content
            done = await one.call_tool("reply", {"action": "GRAB"})
            assert not done.is_error and done.structured_content["turn_is_over"]
            assert (await asked).text == "ACTION: GRAB"
            late = await one.call_tool("reply", {"action": "WAIT"})
            assert late.is_error and "turn 1 is over, you have made your move; nothing was done" in late.content[0].text
            early = await one.call_tool(WAIT, {"seconds": 0})
            assert early.structured_content["status"] == "wait" and "Not yet" in early.content[0].text
            seat.end("Ann has eaten.")
            over = await one.call_tool(WAIT, {})
            assert over.structured_content["status"] == "over" and "Ann has eaten." in over.content[0].text

    run(work)


@pytest.mark.parametrize("mode", MODES[:2])
def test_clients_hear_that_the_tools_have_changed(mode: str) -> None:
    async def work(listener: SeatListener) -> None:
        seat, thread, heard = OpenSeat("toy/Ann"), said("first"), asyncio.Event()

        async def hear(message: Any) -> None:
            if type(message).__name__ == "ToolListChangedNotification":
                heard.set()

        async def listen(one: Client) -> None:
            async with one.listen(tools_list_changed=True) as events:
                listening.set()
                async for _ in events:
                    heard.set()

        url, listening = await listener.open(seat), asyncio.Event()
        asked = asyncio.create_task(seat.ask(request(thread)))
        async with client(url, seat.secret, mode, message_handler=hear) as one:
            task = asyncio.create_task(listen(one)) if mode != "legacy" else None
            if task is not None:
                await listening.wait()
            await one.call_tool(WAIT, {})
            heard.clear()
            await one.call_tool("reply", {"action": "WAIT"})
            thread.add("assistant", (await asked).text)
            asked = asyncio.create_task(seat.ask(request(said("next", thread=thread), Calls(VERBS), 1)))
            await heard.wait()
            tools = {tool.name: tool for tool in (await one.list_tools()).tools}
            assert {WAIT, "send_message", "submit_result", "end_turn"} <= tools.keys()
            await one.call_tool(WAIT, {})
            assert "noted" in (await one.call_tool("submit_result", {"answer": "7"})).content[0].text
            assert (await one.call_tool("end_turn", {})).structured_content["turn_is_over"]
            assert "7" in (await asked).text
            if task is not None:
                task.cancel()

    run(work)


def test_a_seat_needs_its_own_secret_and_no_other_seat_is_disturbed() -> None:
    async def work(listener: SeatListener) -> None:
        ann, bob = OpenSeat("toy/Ann"), OpenSeat("toy/Bob")
        first, second = await listener.open(ann), await listener.open(bob)
        asked = asyncio.create_task(ann.ask(request(said("first"))))
        async with httpx2.AsyncClient() as http:
            for url, secret, status in ((first, bob.secret, 401), (first, "x", 401), (f"{second}x", bob.secret, 404)):
                refused = await http.post(url, json={}, headers={"Authorization": f"Bearer {secret}"})
                assert refused.status_code == status and refused.json()["error"]
            headers = {"Authorization": f"Bearer {ann.secret}", "Accept": "application/json, text/event-stream"}
            assert (await http.post(first, content=b"{", headers=headers)).status_code == 400
            large = await http.post(first, content=b" " * 5_000_000, headers=headers)
            assert large.status_code == 413
            outside = await http.post(first, json={}, headers={**headers, "Host": "example.org"})
            assert outside.status_code == 421
        async with client(first, ann.secret) as one:
            await one.call_tool(WAIT, {})
            await one.call_tool("reply", {"action": "GRAB"})
        assert (await asked).text == "ACTION: GRAB"
        await listener.shut(bob)
        async with httpx2.AsyncClient() as http:
            gone = await http.post(second, json={}, headers={"Authorization": f"Bearer {bob.secret}"})
            assert gone.status_code == 404 and "its episode is over" in gone.json()["error"]

    run(work)


def test_a_client_that_vanishes_loses_nothing_and_a_second_one_takes_over() -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        url = await listener.open(seat)
        async with client(url, seat.secret, "legacy") as first, client(url, seat.secret, "legacy") as second:
            waiting = asyncio.create_task(first.call_tool(WAIT, {}))
            while seat._waiting is None:
                await asyncio.sleep(0)
            other = asyncio.create_task(second.call_tool(WAIT, {}))
            replaced = await waiting
            assert replaced.is_error and "Another client" in replaced.content[0].text
            asked = asyncio.create_task(seat.ask(request(said("first"))))
            assert (await other).structured_content["status"] == "turn"
            refused = await first.call_tool("reply", {"action": "WAIT"})
            assert refused.is_error and "another client has read this turn" in refused.content[0].text
        async with client(url, seat.secret) as third:
            assert (await third.call_tool(WAIT, {})).structured_content["text"] == "first"
            await third.call_tool("reply", {"action": "GRAB"})
        assert (await asked).text == "ACTION: GRAB"

    run(work)


def test_many_legal_moves_are_listed_and_the_nearest_named() -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        moves = LegalAction(tuple(f"move {i} to {j}" for i in range(30) for j in range(30)))
        asked = asyncio.create_task(seat.ask(request(said("first"), moves)))
        async with client(await listener.open(seat), seat.secret) as one:
            state = await one.call_tool(WAIT, {})
            assert len(state.content[1].text) < 1_000 and "(900 in all)" in state.content[1].text
            wrong = await one.call_tool("reply", {"action": "move 30 to 1"})
            assert wrong.is_error and "Did you mean move 3 to 1" in wrong.content[0].text
            await one.call_tool("reply", {"action": "move 3 to 1"})
        assert (await asked).text == "ACTION: move 3 to 1"

    run(work)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_that_starts_its_server_plays_through_the_relay(mode: str) -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        variables = {"HARNESS_MCP_URL": await listener.open(seat), "HARNESS_MCP_TOKEN": seat.secret}
        started = StdioServerParameters(
            command=sys.executable,
            args=["-m", "harness.extensions.seats.stdio_relay"],
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        )
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        async with Client(started, mode=mode) as one:
            state = await one.call_tool(WAIT, {})
            assert state.structured_content["text"] == "first"
            wrong = await one.call_tool("reply", {"action": "GRAP"})
            assert wrong.is_error and "Did you mean GRAB?" in wrong.content[0].text
            assert [tool.name for tool in (await one.list_tools()).tools] == [WAIT, "reply"]
            assert (await one.read_resource("seat://observation")).contents[0].text == "first"
            assert not (await one.call_tool("reply", {"action": "GRAB"})).is_error
        assert (await asked).text == "ACTION: GRAB"

    run(work)


@pytest.mark.slow
def test_the_relay_says_what_it_needs() -> None:
    words = [sys.executable, "-m", "harness.extensions.seats.stdio_relay"]
    without = {name: value for name, value in os.environ.items() if not name.startswith("HARNESS_")}
    done = subprocess.run(words, env={**without, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "HARNESS_MCP_URL and HARNESS_MCP_TOKEN name no seat" in done.stderr


def test_what_is_no_request_gets_an_error_and_disturbs_nobody() -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        url = await listener.open(seat)
        host, _, port = url.split("/")[2].partition(":")
        crowd = [await asyncio.open_connection(host, int(port)) for _ in range(200)]  # say nothing
        for line in (b"GET /\r\n\r\n", b"\x00\xff\x16\x03\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(line)
            assert (await reader.read()).startswith(b"HTTP/1.1 40")
            writer.close()
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        async with client(url, seat.secret) as one:
            await one.call_tool(WAIT, {})
            await one.call_tool("reply", {"action": "GRAB"})
        assert (await asked).text == "ACTION: GRAB"
        for _, writer in crowd:
            writer.close()

    run(work)


@pytest.mark.parametrize("sent", [b"", b"POST /seats/"], ids=["silent", "begun"])
def test_many_connections_disturb_nobody_else(sent: bytes) -> None:
    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        url = await listener.open(seat)
        host, _, port = url.split("/")[2].partition(":")
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        async with client(url, seat.secret) as one:
            await one.call_tool(WAIT, {})
            crowd = []
            for _ in range(300):
                crowd.append(await asyncio.open_connection(host, int(port)))
                crowd[-1][1].write(sent)
            assert listener.open_connections <= 50
            await one.call_tool("reply", {"action": "GRAB"})
        assert (await asked).text == "ACTION: GRAB"
        for _, writer in crowd:
            writer.close()

    run(work, most=50)


def test_half_a_files_limit_is_used_for_connections() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, limits[1]))
    try:
        assert SeatConnections().most == 64
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: "], ids=["silent", "begun"])
def test_a_request_that_does_not_come_ends_its_connection(sent: bytes) -> None:
    async def work(listener: SeatListener) -> None:
        url = await listener.open(OpenSeat("toy/Ann"))
        host, _, port = url.split("/")[2].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        assert listener.open_connections == 0
        writer.close()

    run(work, patience=0.05)


@pytest.mark.slow
def test_sessions_that_were_left_behind_make_room_for_new_ones() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}

    async def work(listener: SeatListener) -> None:
        seat = OpenSeat("toy/Ann")
        url = await listener.open(seat)
        own = {"Authorization": f"Bearer {seat.secret}", "Accept": "application/json, text/event-stream"}
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        async with client(url, seat.secret, "legacy") as one, httpx2.AsyncClient(headers=own) as http:
            await one.call_tool(WAIT, {})
            sessions = []
            for number in range(MAX_SESSIONS + 10):
                body = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": hello}
                begun = await http.post(url, json=body)
                assert begun.status_code == 200
                sessions.append(begun.headers["mcp-session-id"])
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            there = [
                (await http.post(url, json=ping, headers={"mcp-session-id": session})).status_code
                for session in (sessions[0], sessions[-1])
            ]
            assert there == [404, 200]
            await one.call_tool("reply", {"action": "GRAB"})  # a client that listens has not left
        assert (await asked).text == "ACTION: GRAB"

    run(work)
