"""A relay for MCP clients that start their servers: `python -m harness.extensions.seats.stdio_relay`.

It speaks over its standard input and output, and passes on to the seat whose URL and secret are in the environment
(HARNESS_MCP_URL, HARNESS_MCP_TOKEN), as the harness gives them to the programs that it starts.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server

from harness.extensions.seats.mcp_server import INSTRUCTIONS

URL, TOKEN = "HARNESS_MCP_URL", "HARNESS_MCP_TOKEN"
"""The environment variables with the seat's URL and its secret."""
_SECONDS = 90.0
"""Seconds that a request may take: `wait_for_turn` waits for up to 50."""


async def relay(url: str, token: str) -> None:
    """Serve the client at standard input until it closes it."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=_SECONDS) as http,
        Client(streamable_http_client(url, http_client=http)) as seat,
    ):

        async def tools(context: Any, params: Any) -> Any:
            return await seat.list_tools()

        async def call(context: Any, params: Any) -> Any:
            return await seat.call_tool(params.name, params.arguments or {})

        async def resources(context: Any, params: Any) -> Any:
            return await seat.list_resources()

        async def read(context: Any, params: Any) -> Any:
            return await seat.read_resource(str(params.uri))

        server: Server[Any] = Server(
            "harness-seat",
            instructions=INSTRUCTIONS,
            on_list_tools=tools,
            on_call_tool=call,
            on_list_resources=resources,
            on_read_resource=read,
        )
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options(NotificationOptions()))


def main() -> int:
    """Relay, unless no seat is named."""
    url, token = os.environ.get(URL), os.environ.get(TOKEN)
    if not url or not token:
        print(f"{URL} and {TOKEN} name no seat: the harness sets them for the programs it starts", file=sys.stderr)
        return 2
    asyncio.run(relay(url, token))
    return 0


if __name__ == "__main__":
    sys.exit(main())
