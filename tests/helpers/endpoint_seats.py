"""A model with a script behind an endpoint of its own, and clients that ask it.

def test_it() -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.chat.completions.create(model="tiny", messages=HELLO)
        assert place.asked.text ...

    serve(work, Completion("yes"))
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.api import Completion, InnerRequest
from harness.extensions.endpoints.server import Access, EndpointServer

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
Said = Completion | Exception | Callable[[InnerRequest], Awaitable[Completion]]


class Scripted:
    """A model that says one thing after another, the last again and again: a completion, an error, or what a function
    returns."""

    def __init__(self, said: Iterable[Said], name: str = "tiny") -> None:
        self.name = name
        self.said = list(said) or [Completion("blue", finish_reason="stop", input_tokens=3, output_tokens=1)]
        self.asks: list[InnerRequest] = []

    async def complete(self, ask: InnerRequest) -> Completion:
        self.asks.append(ask)
        said = self.said[0] if len(self.said) == 1 else self.said.pop(0)
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Completion) else await said(ask)


@dataclass
class Place:
    """A server, a seat of it, and clients with its secret."""

    server: EndpointServer
    model: Scripted
    access: Access
    links: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def ask(self) -> InnerRequest:
        """What the model was asked last."""
        return self.model.asks[-1]

    @cached_property
    def openai(self) -> Any:
        import openai

        return openai.AsyncOpenAI(base_url=self.access.base_url, api_key=self.access.api_key)

    @cached_property
    def anthropic(self) -> Any:
        import anthropic

        return anthropic.AsyncAnthropic(base_url=self.access.anthropic_base_url, api_key=self.access.api_key)

    async def close(self) -> None:
        for name in ("openai", "anthropic"):
            if name in vars(self):
                await getattr(self, name).close()
        for link in self.links:
            link.close()
        await self.server.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A plain connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.links.append(writer)
        return reader, writer

    def request(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> bytes:
        """The bytes of a request with the seat's secret; a header in `headers` replaces the usual one."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        all_headers = {"Host": "x", "Authorization": f"Bearer {self.access.api_key}", "Content-Length": str(len(data))}
        all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} /s/{self.access.id}/v1{path} HTTP/1.1", *(f"{k}: {v}" for k, v in all_headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + data

    async def post(self, path: str, body: Any, method: str = "POST", **headers: str) -> tuple[int, Any]:
        """The status and JSON of a reply."""
        reader, writer = await self.connect()
        writer.write(self.request(path, body, method, **headers))
        status, _, content = await read_reply(reader)
        return status, json.loads(content)

    async def post_to(self, seat: str, body: Any, key: str) -> tuple[int, Any]:
        """The same for another seat and another secret."""
        sent = self.request("/chat/completions", body, Authorization=f"Bearer {key}")
        reader, writer = await self.connect()
        writer.write(sent.replace(self.access.id.encode(), seat.encode(), 1))
        status, _, content = await read_reply(reader)
        return status, json.loads(content)


async def read_reply(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a reply of known length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


def serve(work: Callable[[Place], Awaitable[None]], *said: Said, accepts: Iterable[str] = (), **options: Any) -> None:
    """Run `work` with a server whose model says `said`; `options` are the server's. Afterwards nothing is left."""

    async def main() -> None:
        server = EndpointServer(**options)
        await server.start()
        folder: Path = server.socket.parent
        model = Scripted(said)
        place = Place(server, model, server.open(model, "episode/agent", accepts=list(accepts)))
        try:
            await work(place)
        finally:
            await place.close()
        assert server.open_calls == 0
        assert not folder.exists()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
