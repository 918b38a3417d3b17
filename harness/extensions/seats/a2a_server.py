"""A seat as an A2A agent: a task is an episode, its prompts are what the task asks for, and messages are its moves."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import TaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    HTTPAuthSecurityScheme,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    SecurityRequirement,
    SecurityScheme,
    StringList,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

from harness.api.printable import clean_name, cut
from harness.api.version import __version__
from harness.extensions.seats._connections import refuse
from harness.extensions.seats.board import ActResult, OpenSeat, SeatTurn

MAX_BODY = 4 * 1024 * 1024
"""Bytes of a request."""
_MAX_TASKS = 64
"""Tasks that are remembered, those last changed."""
_WAIT = 3600.0
"""Seconds after which a wait begins anew."""
_PARKED = 600.0
"""Seconds after which the package's own bookkeeping of a task that waits for a client is put away."""
_LOST = "another client plays this seat now"
_LAST_SECONDS = 1.0
"""Seconds at the end in which clients get the answers that are on their way."""
_CARD = "/.well-known/agent-card.json"
_TELLS = ". Call wait_for_turn"
_HOW = """Send any message to sit down. The task then asks for input: its message is what the seat is asked. Answer \
with text, or with a data part {"tool": name, "arguments": {…}} (the tools are in the message's metadata), in the \
same task. The task is completed when the episode is over, with the outcome as its artifact; a message without a task \
begins the next episode. Whoever sat down last plays."""
logging.getLogger("a2a").addHandler(logging.NullHandler())  # what clients do wrong is theirs to read


@dataclass
class _Play:
    """A task: an episode, as far as a client plays it.

    Attributes:
        episode: its id, once the first turn was read.
        turn: the number of the turn that the client was asked.
        heard: ids of the messages that were taken, the last ones.
        said: the answer to the last of them.
    """

    episode: str | None = None
    turn: int | None = None
    heard: list[str] = field(default_factory=list)
    said: Message | None = None


class SeatAgent(AgentExecutor):
    """Lets A2A clients play a seat: the one that began last.

    Args:
        seat: the seat.
    """

    def __init__(self, seat: OpenSeat) -> None:
        self.seat = seat
        self._plays: OrderedDict[str, _Play] = OrderedDict()
        self._episode: str | None = None  # whose turn was asked last
        self._ended: tuple[str | None, str] | None = None  # the last episode that is over, and its outcome
        self._changed = asyncio.Event()
        self._sitting = ""  # the task that began last
        self.forget: Callable[[str], None] = lambda task: None  # called with a task that is remembered no more
        seat.on_change.append(self._note)

    def close(self) -> None:
        """Follow the seat no more."""
        self.seat.on_change.remove(self._note)

    def _note(self) -> None:
        if self.seat.turn is not None:
            self._episode = self.seat.turn.episode
        if self.seat.outcome is not None:
            self._ended = (self._episode, self.seat.outcome)
        self._changed.set()
        self._changed = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Take a message: the first one of a task sits down, further ones are moves."""
        assert context.task_id and context.context_id and context.message is not None
        task = context.current_task  # whose context counts: a message may name the task alone
        updater = TaskUpdater(event_queue, context.task_id, task.context_id if task else context.context_id)
        play, missed = self._plays.get(context.task_id), ""
        if context.current_task is None:
            working = TaskStatus(state=TaskState.TASK_STATE_WORKING)
            await event_queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, status=working))
            play = self._plays[context.task_id] = _Play()
            if len(self._plays) > _MAX_TASKS:
                self.forget(self._plays.popitem(last=False)[0])
            self._sitting = context.task_id
            self._note()
            self.seat.restart()
        elif play is None:
            await updater.cancel(_message(updater, "this task was forgotten; begin a new one"))
            return
        elif context.message.message_id in play.heard:  # sent again, as its answer was lost
            await updater.requires_input(play.said)
            return
        else:
            before = self._act(play, context.message, context.task_id)
            if self._is_lost(context.task_id):
                await updater.cancel(_message(updater, _LOST))
                return
            turn = self.seat.turn
            if not before.over and turn is not None and turn.number == play.turn:
                text = before.text.replace(_TELLS, "")
                play.said = _message(updater, text, {**_facts_of(turn), "refused": before.error})
                play.heard = [*play.heard[-7:], context.message.message_id]
                await updater.requires_input(play.said)
                return
            missed = before.text.replace(_TELLS, "") if before.error else ""
        play.heard = [*play.heard[-7:], context.message.message_id]
        await updater.start_work()
        await self._next(play, updater, context.task_id, missed)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End a task; the turn stays open for whoever sits down next."""
        assert context.task_id and context.context_id
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    def _is_lost(self, client: str) -> bool:
        """Whether another client has sat down."""
        reader = self.seat.turn and self.seat.turn.reader
        return reader is not None and reader != client

    def _act(self, play: _Play, message: Message, client: str) -> ActResult:
        """Make a move of a message's parts, in their order."""
        texts = [part.text for part in message.parts if part.WhichOneof("content") == "text"]
        calls = [part.data for part in message.parts if part.WhichOneof("content") == "data"]
        if len(texts) + len(calls) < len(message.parts):
            error = "a move is text or data, and neither a file nor an address; nothing was done"
            return self.seat.refuse(error, play.turn, client)
        if not calls:
            return self.seat.say("\n".join(texts), play.turn, client)
        for data in calls:
            call = MessageToDict(data)
            tool, arguments = (call.get("tool"), call.get("arguments", {})) if isinstance(call, dict) else (None, None)
            if not isinstance(tool, str) or not isinstance(arguments, dict):
                error = 'a data part is {"tool": name, "arguments": {…}}; nothing was done'
                return self.seat.refuse(error, play.turn, client)
            result = self.seat.act(tool, _whole(arguments), play.turn, client)
            if result.error or result.over:
                break
        return result

    async def _next(self, play: _Play, updater: TaskUpdater, client: str, missed: str) -> None:
        """Wait for the next turn, and ask it; or for the end of the episode. `missed`: why the last move was none."""
        while True:
            while (
                play.episode is None and self.seat.turn is None and not self.seat.is_closed and self._sitting == client
            ):
                await self._changed.wait()  # what is over is the episode before
            if self._sitting != client:
                await updater.cancel(_message(updater, _LOST))
                return
            state = await self.seat.wait_for_turn(_WAIT, client)
            if state.kind == "replaced":
                await updater.cancel(_message(updater, _LOST))
                return
            turn = state.turn
            if turn is not None and play.episode in (None, turn.episode):
                play.episode, play.turn = turn.episode, turn.number
                text = f"({missed})\n\n{turn.text}" if missed else turn.text
                play.said = _message(updater, text, _facts_of(turn))
                await updater.requires_input(play.said)
                return
            if state.kind == "wait" or (play.episode is None and not self.seat.is_closed):
                continue
            await self._complete(play, updater)
            return

    async def _complete(self, play: _Play, updater: TaskUpdater) -> None:
        ended = self._ended[1] if self._ended is not None and self._ended[0] == play.episode else ""
        if play.episode is None:
            await updater.reject(_message(updater, "the seat is closed: there are no further episodes"))
            return
        text = ended or "The episode is over."
        await updater.add_artifact([Part(text=text)], name="outcome", metadata={"episode": play.episode})
        await updater.complete(_message(updater, text))


def _message(updater: TaskUpdater, text: str, facts: Mapping[str, Any] | None = None) -> Message:
    return updater.new_agent_message([Part(text=text)], metadata=dict(facts or {}))


def _facts_of(turn: SeatTurn) -> dict[str, Any]:
    """What a message says of its turn."""
    return {
        "episode": turn.episode,
        "agent": turn.agent,
        "turn": turn.number,
        "start": turn.start,
        "tools": [dict(tool) for tool in turn.moves.tools],
    }


def _whole(value: Any) -> Any:
    """Numbers of JSON that came through protocol buffers, which know only floats, as integers where they are."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    return [_whole(one) for one in value] if isinstance(value, list) else value


class _Tasks(TaskStore):
    """The tasks of a seat, as many as are remembered, each with the end of its history."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, Task] = OrderedDict()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        del task.history[:-4]  # a client has what it was sent
        kept = Task()
        kept.CopyFrom(task)
        self._tasks[task.id] = kept
        self._tasks.move_to_end(task.id)
        if len(self._tasks) > 2 * _MAX_TASKS:  # those that are ended for new ones are there until then
            self._tasks.popitem(last=False)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        if (kept := self._tasks.get(task_id)) is None:
            return None
        task = Task()
        task.CopyFrom(kept)
        return task

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        tasks = [one for one in self._tasks.values() if params.context_id in ("", one.context_id)]
        return ListTasksResponse(tasks=tasks, page_size=len(tasks), total_size=len(tasks))

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        self._tasks.pop(task_id, None)


def card_of(name: str, url: str, about: str = "") -> AgentCard:
    """The card of a seat.

    Args:
        name: of the seat.
        url: where it is served.
        about: what is played.
    """
    places = [("JSONRPC", f"{url}/"), ("HTTP+JSON", url)]
    skill = AgentSkill(id="play", name=f"Play as {cut(name, 80)}", description=_HOW, tags=["harness", "game"])
    return AgentCard(
        name=cut(clean_name(name), 100),
        description=cut(about, 1000) or "A seat of a multi-agent benchmark.",
        version=__version__,
        supported_interfaces=[
            AgentInterface(url=at, protocol_binding=binding, protocol_version="1.0") for binding, at in places
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain"],
        skills=[skill],
        security_schemes={"secret": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="bearer"))},
        security_requirements=[SecurityRequirement(schemes={"secret": StringList()})],
    )


class SeatA2A:
    """The application that serves a seat over A2A, for a server of ASGI.

    Args:
        seat: the seat. Its secret is the bearer token that all but the card needs.
        url: where it is served; its path is where requests come.
        about: what is played.
    """

    def __init__(self, seat: OpenSeat, url: str, about: str = "") -> None:
        self.url = url = url.rstrip("/")
        path = "/" + url.split("://", 1)[1].partition("/")[2]
        self._prefix, self._secret = path.rstrip("/"), seat.secret
        self.agent, self.card = SeatAgent(seat), card_of(seat.name, url, about)
        self._handler = DefaultRequestHandler(
            agent_executor=self.agent,
            task_store=_Tasks(),
            agent_card=self.card,
            interrupted_task_timeout=_PARKED,
        )
        routes = [
            *create_agent_card_routes(self.card, card_url=f"{self._prefix}{_CARD}"),
            *create_jsonrpc_routes(self._handler, f"{self._prefix}/"),
            *create_rest_routes(self._handler, path_prefix=self._prefix),
        ]
        self._app = Starlette(routes=routes)
        self.agent.forget = self._forget
        self._ending: set[asyncio.Task[Any]] = set()
        self._requests, self._idle = 0, asyncio.Event()
        self._idle.set()

    async def start(self) -> None:
        """Nothing has to begin."""

    async def close(self) -> None:
        """End what clients wait for, once they have the answers that are on their way."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await self._idle.wait()
        self.agent.close()
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self._handler.aclose()

    def _forget(self, task: str) -> None:
        """End what the package keeps running for a task."""
        cancel = self._handler.on_cancel_task(CancelTaskRequest(id=task), ServerCallContext())
        ending = asyncio.get_running_loop().create_task(cancel)
        self._ending.add(ending)
        ending.add_done_callback(self._ended)

    def _ended(self, ending: asyncio.Task[Any]) -> None:
        self._ending.discard(ending)
        if not ending.cancelled():
            ending.exception()  # one that is over already cannot be ended

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        given = headers.get(b"authorization", b"")
        is_card = scope["path"] == f"{self._prefix}{_CARD}" and scope["method"] == "GET"
        if not _is_here(headers.get(b"host", b"")):
            await refuse(send, 421, "this server is 127.0.0.1")
        elif not is_card and not hmac.compare_digest(given, b"Bearer " + self._secret.encode()):
            await refuse(send, 401, "the secret is not this seat's: send the header Authorization: Bearer SECRET")
        elif int(headers.get(b"content-length", b"0")) > MAX_BODY:
            await refuse(send, 413, f"a request has at most {MAX_BODY:,} bytes")
        else:
            self._requests += 1
            self._idle.clear()
            try:
                await self._take(scope, receive, send)
            finally:
                self._requests -= 1
                if not self._requests:
                    self._idle.set()

    async def _take(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, once it is there as a whole and can be kept."""
        body = await _body(receive)
        if body is None:
            await refuse(send, 413, f"a request has at most {MAX_BODY:,} bytes")
            return
        try:
            _check_numbers(body)
        except _NoNumberError as error:
            await refuse(send, 400, f"{error}; nothing was done")
            return
        first: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

        async def read() -> Any:
            return first.pop() if first else await receive()

        await self._app(scope, read, send)


async def _body(receive: Callable[[], Awaitable[Any]]) -> bytes | None:
    """What a client sends; None if that is more than a request may have."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b""
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise _NoNumberError(f"{text[:20]} is no number of JSON, or too large a one")
    return number


class _NoNumberError(ValueError):
    """Python's JSON has such a number, and protocol buffers break at it."""


_DECODER = json.JSONDecoder(parse_constant=_finite, parse_float=_finite, parse_int=_finite)


def _check_numbers(body: bytes) -> None:
    """Raise `_NoNumberError` for NaN, Infinity and the like. Whatever else is wrong with JSON, the package says."""
    try:
        _DECODER.decode(body.decode())
    except _NoNumberError:
        raise
    except (ValueError, RecursionError):
        pass


def _is_here(host: bytes) -> bool:
    """Whether a page of another site, whose name leads here, does not ask."""
    return host.rpartition(b":")[0].lower() in (b"127.0.0.1", b"localhost")
