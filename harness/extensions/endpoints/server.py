"""A server on this machine that offers models to programs, by the APIs of OpenAI and Anthropic.

Each program gets an address and a secret of its own (`Access`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import resource
import secrets
import shutil
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from aiohttp import HttpVersion10, web

from harness.api import Completion, InnerRequest, near
from harness.extensions.endpoints._answers import Api, ApiReply, Asked
from harness.extensions.endpoints._connections import Connection, Connections
from harness.extensions.endpoints._fields import ProblemError, read_json, shown
from harness.extensions.endpoints._problems import problem_of
from harness.extensions.endpoints._sockets import make_folder
from harness.extensions.endpoints._thoughts import Thoughts
from harness.extensions.endpoints.chat import ChatApi, CompletionsApi
from harness.extensions.endpoints.keys import body_without_keys, new_key
from harness.extensions.endpoints.messages import CountTokens, MessagesApi
from harness.extensions.endpoints.responses import CountInput, ResponsesApi

MAX_BODY = 4 * 2**20
"""Bytes of a request."""
MAX_CONNECTIONS = 4096
_SHUT = 4096
"""How many seats that are shut are remembered as such."""
_MAX_NAME = 200
"""Characters of a model's name."""
_HEADERS = {"x-should-retry": "false"}
"""Of refusals: the harness has tried again where that helps. OpenAI's and Anthropic's clients read it."""
_BUSY = "rate_limit_exceeded"
"""OpenAI's code of what may be asked again soon."""
_EVENTS = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}


class OfferedModel(Protocol):
    """What answers the calls of a seat."""

    @property
    def name(self) -> str:
        """The name that programs ask for."""

    async def complete(self, ask: InnerRequest) -> Completion:
        """Answer one call. Raises what `harness.api.inner_calls.SeatCalls.complete` raises."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a program reaches its model.

    Attributes:
        base_url: for clients of OpenAI; it ends in /v1.
        anthropic_base_url: for clients of Anthropic, which add /v1 themselves.
        api_key: the secret, for both.
        socket: a Unix socket that speaks the same, for programs without a network.
    """

    base_url: str
    anthropic_base_url: str
    api_key: str = field(repr=False)
    socket: Path

    @property
    def id(self) -> str:
        """The seat's part of the addresses."""
        return self.anthropic_base_url.rpartition("/")[2]


@dataclass(slots=True, eq=False)
class _Seat:
    name: str
    model: OfferedModel
    secret: bytes = field(repr=False)
    accepts: frozenset[str]
    calls: int = 0
    open_calls: int = 0
    thoughts: Thoughts = field(default_factory=Thoughts)

    async def complete(self, asked: Asked) -> ApiReply:
        """Ask the model."""
        self.calls += 1
        serial = self.calls
        completion = await self.model.complete(self.thoughts.added(asked.ask))
        reply = ApiReply(asked, completion, serial)
        self.thoughts.keep(completion, reply)
        return reply


class EndpointServer:
    """Offers models to programs at 127.0.0.1, and at a Unix socket in a folder that only this user may enter.

    Args:
        max_body: bytes of a request.
        max_connections: connections at a time; at most half of the files that this process may open.
        patience: seconds that a request may take to come.
        keep_alive: seconds without a word after which a program that waits for events hears that the connection lives.
        folder: where the folder with the socket is made: by default with the temporary files of this machine, and in
            /tmp where a path would be too long for a socket.
        grace: seconds that calls in flight have when the server closes.

    Attributes:
        socket, port: where it listens, once it is started.
    """

    def __init__(
        self,
        *,
        max_body: int = MAX_BODY,
        max_connections: int = MAX_CONNECTIONS,
        patience: float = 30.0,
        keep_alive: float = 10.0,
        grace: float = 2.0,
        folder: Path | None = None,
    ) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.max_body, self.patience, self.keep_alive, self.grace = max_body, patience, keep_alive, grace
        self.folder = folder
        self.max_connections = min(max_connections, files // 2)
        self.max_calls = max(16, self.max_connections // 4)
        self._apis: dict[str, Api] = {
            "/chat/completions": ChatApi(),
            "/completions": CompletionsApi(),
            "/responses": ResponsesApi(),
            "/responses/input_tokens": CountInput(),
            "/messages": MessagesApi(),
            "/messages/count_tokens": CountTokens(),
        }
        self._seats: dict[str, _Seat] = {}
        self._shut: OrderedDict[str, None] = OrderedDict()
        self._listeners: list[asyncio.Server] = []
        self._calls: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Listen. Raises `OSError` if that is impossible."""
        loop = asyncio.get_running_loop()
        self._server = web.Server(self._handle)
        self._connections = Connections(self._server, self._no_http, self.max_connections, self.patience)
        self.socket = make_folder(self.folder)
        try:
            self._listeners.append(await loop.create_server(self._connections, "127.0.0.1", 0))
            self._listeners.append(await loop.create_unix_server(self._connections, self.socket))
        except OSError:
            await self.close()
            raise
        self.port: int = self._listeners[0].sockets[0].getsockname()[1]

    def open(self, model: OfferedModel, name: str, accepts: Collection[str] = ()) -> Access:
        """Offer a model to a program.

        Args:
            model: answers its calls.
            name: the seat, for people.
            accepts: names of models that the program may ask for besides `model.name`; "*" stands for all. The same
                model answers.
        """
        key, secret = secrets.token_hex(8), new_key()
        self._seats[key] = _Seat(name, model, secret.encode(), frozenset(accepts))
        base = f"http://127.0.0.1:{self.port}/s/{key}"
        return Access(f"{base}/v1", base, secret, self.socket)

    def shut(self, access: Access) -> None:
        """Refuse further calls of a program. Calls that are being answered go on."""
        if self._seats.pop(access.id, None) is not None:
            self._shut[access.id] = None
            if len(self._shut) > _SHUT:
                self._shut.popitem(last=False)

    async def close(self) -> None:
        """Stop listening, give calls in flight a moment, and close all connections. Called after `start`."""
        self._seats.clear()
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()
        self._connections.close()
        if self._calls:
            await asyncio.wait(self._calls, timeout=self.grace)
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls, timeout=self.grace)
        self._server.pre_shutdown()
        await self._server.shutdown(self.grace)
        shutil.rmtree(self.socket.parent, ignore_errors=True)

    @property
    def open_connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    @property
    def open_calls(self) -> int:
        """How many requests with a seat's secret are being answered."""
        return len(self._calls)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.version < HttpVersion10:
            return self._no_http(400)
        connection: Any = request.protocol
        key, below = _parts(request.path)
        default = "/messages" if "anthropic-version" in request.headers else "/chat/completions"
        api = self._apis.get(below) or self._apis[default]
        try:
            seat = self._seat_of(key, request)
            with self._call(seat, connection):
                return await self._reply(request, connection, seat, api, below)
        except ProblemError as problem:
            return self._refused(problem, api)

    @contextlib.contextmanager
    def _call(self, seat: _Seat, connection: Connection) -> Iterator[None]:
        """Count a call as open."""
        if seat.open_calls >= self.max_calls:
            raise ProblemError(429, f"{seat.open_calls} calls are open at once", code=_BUSY)
        self._connections.begin(connection)
        seat.open_calls += 1
        task = asyncio.current_task()
        assert task is not None
        self._calls.add(task)
        try:
            yield
        finally:
            seat.open_calls -= 1
            self._calls.discard(task)
            self._connections.end(connection)

    async def _reply(
        self, request: web.BaseRequest, connection: Connection, seat: _Seat, api: Api, path: str
    ) -> web.StreamResponse:
        if path == "/models" or path.startswith("/models/"):
            return self._models(seat, request, path[8:])
        if path not in self._apis:
            known = near(path[:100], [*self._apis, "/models"])
            raise ProblemError(404, f"no such path: {shown(path)}. {known}", code="unknown_path")
        if request.method != "POST":
            raise ProblemError(405, f"{path} wants POST, not {request.method[:20]}")
        # A program may show its keys to its model; a run records what it asks, and no key.
        body = read_json(body_without_keys(await self._body(request)))
        connection.waits_since = None  # it has come as a whole
        self._check_model(seat, body)
        if isinstance(api, CountTokens | CountInput):
            return web.json_response(api.count(body))
        return await self._answer(request, seat, api, api.read(body))

    def _seat_of(self, key: str, request: web.BaseRequest) -> _Seat:
        seat = self._seats.get(key)
        if seat is None:
            if key in self._shut:
                raise ProblemError(410, "this seat is closed: its episode is over", code="seat_closed")
            raise ProblemError(404, "no such address: it begins with /s/, the seat's id, /v1", code="unknown_seat")
        said = request.headers.get("Authorization", "")
        said = said[7:] if said[:7].lower() == "bearer " else request.headers.get("x-api-key", "")
        if not hmac.compare_digest(said.strip().encode(errors="replace"), seat.secret):
            raise ProblemError(401, "this is not the key of this seat", code="invalid_api_key")
        return seat

    async def _body(self, request: web.BaseRequest) -> bytes:
        too_large = ProblemError(413, f"a request has at most {self.max_body} bytes", code="request_too_large")
        if (request.content_length or 0) > self.max_body:
            raise too_large
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        try:
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > self.max_body:
                    raise too_large
        except (web.RequestPayloadError, ConnectionError):
            raise ProblemError(400, "the body of the request is not as its headers say") from None
        return bytes(body)

    def _check_model(self, seat: _Seat, body: dict[str, Any]) -> None:
        name = body.get("model")
        if not isinstance(name, str) or not name:
            raise ProblemError(400, f"model is missing: it is {seat.model.name}", param="model")
        if len(name) > _MAX_NAME:
            raise ProblemError(400, f"a model's name has at most {_MAX_NAME} characters", param="model")
        if name != seat.model.name and name not in seat.accepts and "*" not in seat.accepts:
            hint = near(name[:100], {seat.model.name, *seat.accepts})
            raise ProblemError(404, f"no model {shown(name)} here. {hint}", code="model_not_found", param="model")

    async def _answer(self, request: web.BaseRequest, seat: _Seat, api: Api, asked: Asked) -> web.StreamResponse:
        if asked.stream:
            return await self._streamed(_Stream(request, api, self.keep_alive), seat, api, asked)
        try:
            answer = await seat.complete(asked)
        except Exception as error:
            raise problem_of(error) from None
        return web.Response(body=json.dumps(api.reply(asked, answer)).encode(), content_type="application/json")

    async def _streamed(self, stream: _Stream, seat: _Seat, api: Api, asked: Asked) -> web.StreamResponse:
        problem = None
        try:
            answer = await seat.complete(asked)
            events = api.events(asked, answer)
        except Exception as error:
            problem = problem_of(error)
            events = api.error_events(problem)
        finally:
            begun = await stream.stop()
        if begun is not None:
            return await stream.end(begun, events)
        if problem is not None:
            raise problem
        return web.Response(body=events, headers=_EVENTS)

    def _models(self, seat: _Seat, request: web.BaseRequest, name: str) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise ProblemError(405, f"/models wants GET, not {request.method[:20]}")
        names = [seat.model.name, *sorted(seat.accepts - {"*", seat.model.name})]
        if name:
            self._check_model(seat, {"model": unquote(name)})
            return web.json_response(_model(unquote(name)))
        models = [_model(one) for one in names]
        ends = {"first_id": names[0], "last_id": names[-1], "has_more": False}
        return web.json_response({"object": "list", "data": models, **ends})

    def _refused(self, problem: ProblemError, api: Api) -> web.Response:
        headers = None if problem.code == _BUSY else _HEADERS
        return web.json_response(api.error(problem), status=problem.status, headers=headers)

    def _no_http(self, status: int) -> web.Response:
        problem = ProblemError(status, "this is no request of HTTP/1.1" if status < 500 else "the server failed")
        response = self._refused(problem, self._apis["/chat/completions"])
        response.force_close()
        return response


def _parts(path: str) -> tuple[str, str]:
    """The seat of a path, and what follows its /v1; "" for what is not there."""
    _, s, key, v1, below = f"{path}////".split("/", 4)
    return (key if s == "s" else ""), (f"/{below.rstrip('/')}" if v1 == "v1" else "")


def _model(name: str) -> dict[str, Any]:
    """A model as both providers list it."""
    of_openai = {"id": name, "object": "model", "created": 0, "owned_by": "harness"}
    return {**of_openai, "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


class _Stream:
    """Events that begin before there is a reply, where that takes long."""

    def __init__(self, request: web.BaseRequest, api: Api, every: float) -> None:
        self._request, self._api, self._every = request, api, every
        self._task: asyncio.Task[None] | None = None
        self._response: web.StreamResponse | None = None
        self._timer = asyncio.get_running_loop().call_later(every, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._ping())

    async def _ping(self) -> None:
        with contextlib.suppress(ConnectionError):
            self._response = web.StreamResponse(headers=_EVENTS)
            await self._response.prepare(self._request)
            while True:
                await self._response.write(self._api.ping)
                await asyncio.sleep(self._every)

    async def stop(self) -> web.StreamResponse | None:
        """Send nothing more by itself. Returns the response if it has begun."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        return self._response

    @staticmethod
    async def end(response: web.StreamResponse, events: bytes) -> web.StreamResponse:
        """Send the last events."""
        with contextlib.suppress(ConnectionError):
            await response.write(events)
            await response.write_eof()
        return response
