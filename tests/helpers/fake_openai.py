"""An OpenAI-compatible chat server on loopback that answers what it is told and fails on demand.

    with FakeOpenAI(lambda body: "yes", script=[status(429, headers={"Retry-After": "2"}), reset]) as server:
        ...  # base_url=server.url

Each chat request takes the next entry of `script`; once that is used up `faults(body)` may name one. Where there is
none, `answer` replies.
The server runs in a thread of its own, so that synchronous, asynchronous and command-line tests can all use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import threading
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from aiohttp import web

Body = dict[str, Any]
Fault = Callable[["FakeOpenAI", web.Request], Awaitable[web.StreamResponse]]


def status(code: int, message: str = "no", /, *, headers: dict[str, str] | None = None, **error: Any) -> Fault:
    """Answer with an HTTP status and OpenAI's error body; `error` adds to it (`code=…`, `type=…`)."""

    async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": message, **error}}, status=code, headers=headers)

    return fault


def raw(body: str | bytes, content_type: str = "application/json") -> Fault:
    """Answer 200 with this very body."""
    data = body.encode() if isinstance(body, str) else body

    async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type=content_type)

    return fault


garbage = raw('{"choices": [{"mess')
"""200, JSON by its header, cut in the middle."""
not_json = raw("<html>gateway</html>", "text/html")
"""200 and a web page."""
empty_choices = raw('{"id": "x", "choices": []}')
"""200 and nothing said."""
unreadable = {
    "no text": raw(b'{"choices": [{"message": {"content": "\xe2\x82"}}]}'),
    "too deep": raw('{"choices": ' + "[" * 200_000),
    "a number too long": raw('{"id": ' + "9" * 5000 + "}"),
}
"""200 and JSON that no parser takes."""


async def reset(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """Break the connection before the first byte."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def half(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """Break the connection in the middle of the body."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"choices": [')
    assert request.transport is not None
    request.transport.abort()
    return response


async def drip(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """Send a blank now and then, until the client or the server closes."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while not server.closing.is_set():
        await response.write(b" ")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.closing.wait(), 0.02)
    return response


async def hang(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
    """Say nothing until the server closes: the client's timeout must end it."""
    await server.closing.wait()
    return web.Response()


def wire(data: bytes) -> Fault:
    """Write these very bytes to the connection, in place of a response, and close it."""

    async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(data)
        request.transport.close()
        return web.Response()

    return fault


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
malformed = {
    "no HTTP": wire(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "binary": wire(bytes(range(256))),
    "bad status line": wire(b"HTTP/1.1 two hundred\r\n\r\n"),
    "no such status": wire(b"HTTP/1.1 99999 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "bad version": wire(b"HTTP/x.y 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
    "bad chunk size": wire(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
    "chunk without end": wire(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n"),
    "bad content length": wire(_HEAD + b"Content-Length: many\r\n\r\n{}"),
    "negative content length": wire(_HEAD + b"Content-Length: -2\r\n\r\n{}"),
    "two content lengths": wire(_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} "),
    "too short a body": wire(_HEAD + b"Content-Length: 900\r\n\r\n{}"),
    "a huge header": wire(_HEAD + b"X: " + b"x" * 100_000 + b"\r\nContent-Length: 2\r\n\r\n{}"),
    "many headers": wire(_HEAD + b"X: x\r\n" * 20_000 + b"Content-Length: 2\r\n\r\n{}"),
    "bad header": wire(_HEAD + b"no header at all\r\nContent-Length: 2\r\n\r\n{}"),
    "no gzip": wire(_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
    "no such encoding": wire(_HEAD + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}"),
    "no such charset": wire(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
        b"Content-Type: application/json; charset=\xff\r\nContent-Length: 2\r\n\r\n{}"
    ),
    "no content": wire(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    "not modified": wire(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n"),
    "another place that is none": wire(
        b"HTTP/1.1 307 There\r\nConnection: close\r\nLocation: http://[x\r\nContent-Length: 0\r\n\r\n"
    ),
    "another place that is not named": wire(b"HTTP/1.1 302 There\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
}
"""Responses that are no HTTP, or HTTP that says nothing of the model."""


def flood(head: bytes, part: bytes) -> Fault:
    """A response that never ends: `part` again and again, until the client closes; `sent` counts its bytes."""

    async def fault(server: FakeOpenAI, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        writer = request.transport
        writer.write(head)
        while not writer.is_closing() and not server.closing.is_set():
            if writer.get_write_buffer_size() < 1 << 20:  # type: ignore[attr-defined]
                writer.write(part)
                server.sent += len(part)
            await asyncio.sleep(0)
        return web.Response()

    return fault


_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def bomb(megabytes: int) -> Fault:
    """A response in gzip, of a thousandth of the megabytes that it holds."""
    packed = zlib.compressobj(9, wbits=31)
    body = b"".join(packed.compress(b" " * (1 << 20)) for _ in range(megabytes)) + packed.flush()
    return wire(_HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


endless = {
    "to the end of the connection": flood(_HEAD + b"\r\n", b" " * (1 << 18)),
    "in chunks": flood(_HEAD + _CHUNKED + b"\r\n", b"40000\r\n" + b" " * (1 << 18) + b"\r\n"),
    "by its length": flood(_HEAD + b"Content-Length: 999999999999\r\n\r\n", b" " * (1 << 18)),
    "an error": flood(b"HTTP/1.1 400 Bad Request\r\n\r\n", b" " * (1 << 18)),
}
"""Bodies that never end."""


def chat(message: str | Body, usage: Body | None = None, finish_reason: str = "stop") -> Body:
    """The body of a chat completion."""
    text = {"role": "assistant", "content": message} if isinstance(message, str) else message
    words = len(str(text.get("content")).split())
    return {
        "id": "chatcmpl-0",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [{"index": 0, "message": text, "finish_reason": finish_reason}],
        "usage": usage or {"prompt_tokens": 7, "completion_tokens": words, "total_tokens": 7 + words},
    }


def completion(text: str) -> Body:
    """The body of a completion of a plain text."""
    usage = {"prompt_tokens": 7, "completion_tokens": len(text.split())}
    choice = {"index": 0, "text": text, "finish_reason": "stop"}
    return {"object": "text_completion", "choices": [choice], "usage": usage}


WORD = re.compile(r"\s*\S+|\s+")


def value(before: str, token: str) -> float:
    """The log-probability that the fake gives a token behind another one."""
    return -1 - ((len(before) * 7 + sum(map(ord, token))) % 50 + 1) / 16


def echoed(body: Body, start: str = "<s>") -> Body:
    """What a server says of prompts with `echo` and `logprobs`: a token for each word with the blanks before it, the
    token `start` before all, and one generated token behind them."""
    prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
    choices = []
    for index, prompt in enumerate(prompts):
        tokens = [start] * bool(start) + WORD.findall(prompt) + ["!"]
        values = [None, *(value(a, b) for a, b in itertools.pairwise(tokens))]
        # A word of up to two letters is the likeliest there.
        tops = [None, *({b: v, "_": v + (len(b.strip()) > 2)} for b, v in zip(tokens[1:], values[1:], strict=True))]
        offsets = list(itertools.accumulate(map(len, tokens[:-1]), initial=0))
        logprobs = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}
        choices.append({"index": index, "text": prompt + "!", "logprobs": logprobs, "finish_reason": "length"})
    tokens_sent = sum(len(choice["logprobs"]["tokens"]) - 1 for choice in choices)
    usage = {"prompt_tokens": tokens_sent, "completion_tokens": len(prompts)}
    return {"object": "text_completion", "choices": choices[::-1], "usage": usage}


class FakeOpenAI:
    """See the module. `answer(body)` gives a text or a whole response body.

    Attributes:
        url: what `base_url` must say.
        bodies: every chat request's JSON, in order of arrival; `headers` likewise, and `paths` below /v1.
        peak: the most chat requests seen in flight at once.
        sent: the bytes of bodies that never end.
        props: what llama.cpp's server says of itself at /props; with it this one passes for such a server.
    """

    def __init__(
        self,
        answer: Callable[[Body], str | Body] = lambda body: "hello",
        *,
        script: Sequence[Fault | None] = (),
        faults: Callable[[Body], Fault | None] = lambda body: None,
        models: Sequence[str] = ("fake",),
        key: str | None = None,
        props: Body | None = None,
    ) -> None:
        self.answer, self.script, self.models, self.key = answer, list(script), list(models), key
        self.faults, self.props = faults, props
        self.models_fault: Fault | None = None
        self.bodies: list[Body] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.peak = self._flying = self.sent = self.asked_props = 0
        self.url = ""
        self._transports: set[asyncio.Transport] = set()

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listening socket and every connection. May be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.closing.set)
            self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self.closing = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**28)
        self.route(app.router)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ready.set()
        await self.closing.wait()
        await runner.cleanup()
        for transport in self._transports:  # a busy machine may leave some that still have something to send
            transport.abort()
        await asyncio.sleep(0)

    def route(self, router: web.UrlDispatcher) -> None:
        """Say what answers which address."""
        router.add_post("/v1/chat/completions", self._chat)
        router.add_post("/v1/completions", self._chat)
        router.add_get("/v1/models", self._list)
        router.add_get("/props", self._props)

    def _refused(self, request: web.Request) -> bool:
        if request.transport is not None:
            self._transports.add(request.transport)
        return self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}"

    async def _list(self, request: web.Request) -> web.StreamResponse:
        if self._refused(request):
            return web.json_response({"error": {"message": "bad key"}}, status=401)
        if self.models_fault:
            return await self.models_fault(self, request)
        owner = {} if self.props is None else {"owned_by": "llamacpp"}
        return web.json_response(
            {"object": "list", "data": [{"id": m, "object": "model", **owner} for m in self.models]}
        )

    async def _props(self, request: web.Request) -> web.StreamResponse:
        self.asked_props += 1
        return web.json_response(self.props) if self.props is not None else web.json_response({}, status=404)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if self._refused(request):
            return web.json_response({"error": {"message": "bad key"}}, status=401)
        body = await request.json()
        self.bodies.append(body)
        self.paths.append(request.path.removeprefix("/v1"))
        self.headers.append(dict(request.headers))
        if body["model"] not in self.models:
            return web.json_response({"error": {"message": f"model {body['model']} does not exist"}}, status=404)
        self._flying += 1
        self.peak = max(self.peak, self._flying)
        try:
            fault = self.script.pop(0) if self.script else self.faults(body)
            if fault:
                return await fault(self, request)
            text = self.answer(body)
            if isinstance(text, dict) and "choices" in text:
                return web.json_response(text)
            return web.json_response(completion(str(text)) if self.paths[-1] == "/completions" else chat(text))
        finally:
            self._flying -= 1
