"""A seat as an MCP server: the tools of its turn, what it sees as resources, and a tool that waits for its turn.

Both forms of the protocol are spoken: the stateless one of July 2026, and those before it that begin with a handshake.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from harness.api import Facts
from harness.api.errors import near
from harness.extensions.seats._connections import refuse
from harness.extensions.seats._standard_input import standard_input
from harness.extensions.seats.board import OpenSeat, SeatTurn, State
from harness.extensions.seats.moves import MoveForm

WAIT = "wait_for_turn"
"""The tool that waits for the seat's turn."""
WAIT_SECONDS = 20.0
"""Seconds that it waits unless it is asked for less or more: clients give up after 30 or 60."""
MOST_SECONDS = 50.0
_FIRST_SECONDS = 5.0
"""Seconds that a list of tools waits for the first turn: many clients ask for it once."""
_MAX_SUBSCRIPTIONS = 16
MAX_BODY = 4 * 1024 * 1024
"""Bytes of a request."""
MAX_SESSIONS = 64
"""Sessions of a seat at a time: one more ends the one that has been idle for longest."""
_SESSION = b"mcp-session-id"
_SECURITY = TransportSecuritySettings(
    enable_dns_rebinding_protection=True,
    allowed_hosts=["127.0.0.1:*", "localhost:*"],
    allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
)
logging.getLogger("mcp").addHandler(logging.NullHandler())  # what clients do wrong is theirs to read
_Context: TypeAlias = "ServerRequestContext[Any, Any]"

INSTRUCTIONS = f"""You play a seat in a game with others. Repeat: call {WAIT}; it says what you see, or "not yet", \
then call it again. When it is your turn, make your move with one of the other tools: they do what you are asked to \
write. A move that is not legal is explained, and you try again. Stop when {WAIT} says that the episode is over; if it \
says that another one may follow, call it again."""
_WAIT_TOOL = types.Tool(
    name=WAIT,
    description="Wait for your turn. Returns what you see and which tools make your move; or that it is not your turn "
    "yet (call it again); or that the episode is over.",
    input_schema={
        "type": "object",
        "properties": {
            "seconds": {
                "type": "number",
                "description": f"How long to wait at most; {WAIT_SECONDS:g} by default, never more than "
                f"{MOST_SECONDS:g}.",
            },
            "whole": {"type": "boolean", "description": "Return all of the conversation, if you do not know it."},
        },
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "status": {"enum": ["turn", "wait", "over", "replaced"]},
            "text": {"type": "string"},
            "turn": {"type": "integer"},
            "episode": {"type": "string"},
            "agent": {"type": "string"},
            "new_conversation": {"type": "boolean"},
            "seed": {"type": "integer"},
            "more_episodes": {"type": "boolean"},
            "tools": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["status", "text"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True),
)
RESOURCES = {
    "seat://context": ("context", "What you know from the start: the rules.", "text/plain"),
    "seat://observation": ("observation", "What you are asked now.", "text/plain"),
    "seat://conversation": ("conversation", "All that was said to you and by you so far.", "application/json"),
}
"""URI → (name, description, type) of what a seat sees: what a model would be shown, to the letter."""


class SeatServer:
    """The MCP server of a seat.

    Attributes:
        server: of the official package; transports serve it.
    """

    def __init__(self, seat: OpenSeat) -> None:
        self.seat = seat
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus, max_subscriptions=_MAX_SUBSCRIPTIONS)
        self._sessions: dict[str, ServerSession] = {}
        self._moves: MoveForm | None = None
        self._notifying: set[asyncio.Task[None]] = set()
        self.server: Server[Any] = Server(
            "harness-seat",
            title=f"Seat {seat.name}",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=self._schema,
            on_list_tools=self._tools,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_read_resource=self._read,
            on_subscriptions_listen=self._listen,
        )
        seat.on_change.append(self._changed)

    def options(self) -> InitializationOptions:
        """What a handshake offers."""
        return self.server.create_initialization_options(NotificationOptions(tools_changed=True))

    async def run_stdio(self, output: int) -> None:
        """Serve one client on standard input and a descriptor of standard output, until it closes the former."""
        writes = anyio.wrap_file(os.fdopen(os.dup(output), "w", encoding="utf-8"))
        async with stdio_server(cast(Any, standard_input()), writes) as (reading, writing):
            await self.server.run(reading, writing, self.options())

    def close(self) -> None:
        """End what clients listen to."""
        self.seat.on_change.remove(self._changed)
        self._listen.close()
        self._sessions.clear()

    # ------------------------------------------------------------------------------ requests

    async def _tools(self, context: _Context, params: Any) -> types.ListToolsResult:
        self._note(context)
        await self.seat.first_turn(_FIRST_SECONDS)
        moves = self._moves_now()
        tools = [] if moves is None else [_tool(tool) for tool in moves.tools]
        return types.ListToolsResult(tools=[_WAIT_TOOL, *tools], ttl_ms=0, cache_scope="private")

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        client = self._note(context)
        arguments = dict(params.arguments or {})
        if params.name == WAIT:
            return await self._wait(arguments, client)
        result = self.seat.act(params.name, arguments, client=client)
        return _said(result.text, result.error, {"error": result.error, "turn_is_over": result.over})

    async def _wait(self, arguments: Mapping[str, Any], client: str | None) -> types.CallToolResult:
        seconds, wrong = arguments.get("seconds", WAIT_SECONDS), None
        if unknown := [name for name in arguments if name not in ("seconds", "whole")]:
            wrong = f"{WAIT} has no argument {unknown[0]!r:.80}; it takes seconds and whole"
        elif isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
            wrong = f"seconds={seconds!r:.80} is no number of seconds"
        if wrong is not None:
            counted = self.seat.refuse(wrong, client=client)
            return _said(counted.text if counted.over else wrong, True)
        whole = arguments.get("whole") is True
        return _state(await self.seat.wait_for_turn(float(min(seconds, MOST_SECONDS)), client, whole))

    async def _resources(self, context: _Context, params: Any) -> types.ListResourcesResult:
        self._note(context)
        listed = [
            types.Resource(uri=uri, name=name, description=about, mime_type=kind)
            for uri, (name, about, kind) in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=listed, ttl_ms=0, cache_scope="private")

    async def _read(self, context: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        client = self._note(context)
        uri = str(params.uri)
        if uri not in RESOURCES:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:80]!r}. {near(uri[:80], RESOURCES)}")
        state = self.seat.read(client)
        if state.turn is None:
            text = f"The episode is over. {state.outcome}".strip() if state.kind == "over" else "It is not your turn."
        elif uri == "seat://conversation":
            text = json.dumps(state.turn.conversation[: state.turn.end], ensure_ascii=False)
        else:
            text = state.turn.context if uri == "seat://context" else state.turn.observation
        contents = types.TextResourceContents(uri=uri, mime_type=RESOURCES[uri][2], text=text)
        return types.ReadResourceResult(contents=[contents], ttl_ms=0, cache_scope="private")

    # ------------------------------------------------------------------------------ its own

    def _moves_now(self) -> MoveForm | None:
        """What may be done in the present turn, or could be in the last one."""
        if self.seat.turn is not None:
            self._moves = self.seat.turn.moves
        return self._moves

    def _schema(self, tool: str) -> Mapping[str, Any] | None:
        """The arguments of a tool, for checks of the package."""
        moves = self._moves_now()
        tools: Sequence[Facts] = () if moves is None else moves.tools
        return next((one["parameters"] for one in tools if one["name"] == tool), None)

    def _note(self, context: _Context) -> str | None:
        """Remember a session, which is notified when its tools change; its id, if it has one."""
        headers = getattr(context.request, "headers", {})
        session: str | None = headers.get("mcp-session-id")
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._sessions[session or ""] = context.session
            if len(self._sessions) > _MAX_SUBSCRIPTIONS:
                self._sessions.pop(next(iter(self._sessions)))
        return session

    def _changed(self) -> None:
        """A turn has begun, or is over."""
        before = self._moves
        moves = self._moves_now()
        if moves is None or (before is not None and before.tools == moves.tools):
            return
        task = asyncio.get_running_loop().create_task(self._notify())
        self._notifying.add(task)
        task.add_done_callback(self._notifying.discard)

    async def _notify(self) -> None:
        await self._bus.publish(ToolsListChanged())
        for session in list(self._sessions.values()):
            await session.send_tool_list_changed()


class SeatMCP:
    """The application that serves a seat over streamable HTTP, for a server of ASGI.

    Args:
        seat: the seat. Its secret is the bearer token that every request needs.
        url: where it is served.
    """

    def __init__(self, seat: OpenSeat, url: str) -> None:
        self.url, self._path, self._secret = f"{url}/mcp", f"/{url.split('/', 3)[3]}/mcp", seat.secret
        self._server = SeatServer(seat)
        self._manager = StreamableHTTPSessionManager(
            self._server.server,
            security_settings=_SECURITY,
            max_request_body_size=MAX_BODY,
            max_sessions=2 * MAX_SESSIONS,
        )
        self._sessions: dict[str, int] = {}  # id → its open requests, those last used at the end
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the sessions' group, in a task that also ends it."""
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._keep(ready))
        await ready.wait()

    async def _keep(self, ready: asyncio.Event) -> None:
        async with self._manager.run():
            ready.set()
            await self._leave.wait()
            self._server.close()

    async def close(self) -> None:
        """End all sessions."""
        self._leave.set()
        if self._task is not None:
            await self._task

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["path"].rstrip("/") != self._path:
            await refuse(send, 404, f"this seat is at {self._path}")
        elif not hmac.compare_digest(given, b"Bearer " + self._secret.encode()):
            await refuse(send, 401, "the secret is not this seat's: send the header Authorization: Bearer SECRET")
        else:
            await self._take(scope, receive, send)

    async def _take(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, and note the session that it belongs to or begins."""
        session = dict(scope["headers"]).get(_SESSION, b"").decode("latin-1")
        if session in self._sessions:
            self._sessions[session] = self._sessions.pop(session) + 1
        begun = False

        async def answer(message: Any) -> None:
            nonlocal begun, session
            if message["type"] == "http.response.start" and not session and message["status"] < 400:
                session = dict(message["headers"]).get(_SESSION, b"").decode("latin-1")
                begun = bool(session)
                if begun:
                    self._sessions[session] = 1
            await send(message)

        try:
            await self._manager.handle_request(scope, receive, answer)
        finally:
            if session in self._sessions:
                self._sessions[session] -= 1
        if begun:
            await self._end_idle(scope)

    async def _end_idle(self, scope: Any) -> None:
        """End sessions that are too many, as their clients would."""

        async def nothing(*message: Any) -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        while len(self._sessions) > MAX_SESSIONS:
            idle = next((one for one, requests in self._sessions.items() if not requests), None)
            if idle is None:
                return
            del self._sessions[idle]
            headers = [(name, value) for name, value in scope["headers"] if name in (b"host", b"authorization")]
            headers += [(_SESSION, idle.encode("latin-1")), (b"content-length", b"0")]
            await self._manager.handle_request({**scope, "method": "DELETE", "headers": headers}, nothing, nothing)


def _tool(tool: Facts) -> types.Tool:
    """A tool of a turn."""
    name, schema = str(tool["name"]), dict(tool["parameters"])
    return types.Tool(name=name, description=tool.get("description"), input_schema=schema)


def _state(state: State) -> types.CallToolResult:
    """What `wait_for_turn` returns."""
    if state.turn is not None:
        return _turn(state.turn)
    more = f" Another one may follow: call {WAIT} again." if state.more else ""
    words = {
        "wait": f"Not yet your turn: call {WAIT} again.",
        "over": f"The episode is over. {state.outcome}".strip() + more,
        "replaced": f"Another client has called {WAIT} at this seat: it plays on. Do not call it again.",
    }[state.kind]
    return _said(words, state.kind == "replaced", {"status": state.kind, "more_episodes": state.more})


def _turn(turn: SeatTurn) -> types.CallToolResult:
    note = f"Your turn: you are {turn.agent}, this is turn {turn.number}. Make your move with a tool:"
    if not turn.start and turn.number > 1:
        note = f"A new conversation begins: what was said before is over, or is repeated here. {note}"
    facts = {
        "status": "turn", "text": turn.text, "turn": turn.number, "episode": turn.episode, "agent": turn.agent,
        "new_conversation": not turn.start, "seed": turn.seed, "tools": turn.moves.names,
    }  # fmt: skip
    return _said(turn.text, False, facts, f"{note}\n{turn.moves.usage()}")


def _said(text: str, error: bool, facts: Mapping[str, Any] | None = None, *more: str) -> types.CallToolResult:
    content = [types.TextContent(type="text", text=one) for one in (text, *more)]
    structured = None if facts is None else {"text": text, **facts}
    return types.CallToolResult(content=[*content], structured_content=structured, is_error=error)
