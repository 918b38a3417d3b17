"""An agent that acts through MCP by a script, and the engine that writes the same acts as text."""

import json
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from harness.api import CallsTools, Completion, Engine, Request
from harness.extensions.seats.mcp_server import WAIT
from harness.extensions.seats.moves import END
from harness.replies.tool_reply import ToolReply

Calls = list[tuple[str, dict[str, Any]]]
ACTS: dict[tuple[str, str, int], Calls] = {}
"""(episode, agent, turn) → the calls that `Writer` has written as text."""


class Writer(Engine, CallsTools):
    """Writes one of a form's examples, and remembers which calls say the same."""

    model = "writer"

    def __init__(self) -> None:
        ACTS.clear()

    async def complete(self, request: Request) -> Completion:
        episode, agent, turn, attempt = request.id.rsplit("/", 3)
        form = request.reply
        assert form is not None and attempt == "0", "an example is readable"
        acting = form.with_tools if form.with_tools.tools else ToolReply(form)
        legal = form.examples
        action = legal[zlib.crc32(f"{agent}{turn}".encode()) % len(legal)]
        calls: Calls = [(one["name"], json.loads(one["arguments"])) for one in acting.calls_of(action)]
        ACTS[episode, agent, int(turn)] = [*calls, (END, {})] if acting.most_calls > len(calls) else calls
        if request.tools:
            return Completion(
                "", tool_calls=[{"id": "", **one} for one in form.calls_of(action)], finish_reason="tool_calls"
            )
        return Completion(form.written(action), finish_reason="stop")


@asynccontextmanager
async def seat_at(url: str, secret: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a seat."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as seat,
    ):
        yield seat


async def play(mcp_url: str, mcp_token: str, mode: str = "auto") -> None:
    """Play a seat to its end, with the calls of `ACTS`."""
    turn = 0
    async with seat_at(mcp_url, mcp_token, mode) as seat:
        while (state := await wait(seat))["status"] != "over":
            for tool, arguments in ACTS[state["episode"], state["agent"], turn]:
                done = await seat.call_tool(tool, arguments)
                assert not done.is_error, done.content[0].text
            turn += 1


async def wait(seat: Client) -> Mapping[str, Any]:
    """The next state of a seat that is not "not yet"."""
    while True:
        facts: Mapping[str, Any] = (await seat.call_tool(WAIT, {})).structured_content
        if facts["status"] != "wait":
            return facts
