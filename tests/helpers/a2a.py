"""A2A agents for tests: the package's own server on 127.0.0.1, in a thread, and what an agent answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import uvicorn
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

Play = Callable[[RequestContext, EventQueue], Awaitable[None]]


def says(text: str) -> Play:
    """An agent that answers every message with the same text."""

    async def play(context: RequestContext, queue: EventQueue) -> None:
        await queue.enqueue_event(new_text_message(text, context_id=context.context_id))

    return play


class Played(AgentExecutor):
    """An agent that is a function; `heard` has what each message said, with the message itself."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.heard: list[str] = []
        self.messages: list[Any] = []
        self.cancelled = threading.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.heard.append(context.get_user_input())
        self.messages.append(context.message)
        await self.play(context, event_queue)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.set()


def card_of(url: str, name: str = "Adder", version: str = "1.0", **fields: Any) -> AgentCard:
    """A card that names both transports at an address; `fields` as of an `AgentCard`."""
    both = [
        AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    facts: dict[str, Any] = {
        "description": "Plays.",
        "supported_interfaces": both,
        "capabilities": AgentCapabilities(streaming=True),
        "default_input_modes": ["text/plain"],
        "default_output_modes": ["text/plain"],
        "skills": [AgentSkill(id="play", name="play", description="plays", tags=["games"])],
    }
    return AgentCard(name=name, version=version, **{**facts, **fields})


def app_of(agent: AgentExecutor, card: AgentCard) -> Starlette:
    """The application of an agent, with all transports and the protocol of before."""
    handler = DefaultRequestHandler(agent_executor=agent, task_store=InMemoryTaskStore(), agent_card=card)
    routes = [
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True),
        *create_rest_routes(handler, enable_v0_3_compat=True),
    ]
    return Starlette(routes=routes)


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def served(make: Callable[[str], Any], port: int | None = None) -> Iterator[str]:
    """Serve the application that `make` gives for its address; yields that."""
    there = socket.socket()
    there.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    there.bind(("127.0.0.1", port or 0))
    url = f"http://127.0.0.1:{there.getsockname()[1]}"
    config = uvicorn.Config(make(url), log_level="critical", lifespan="off", timeout_graceful_shutdown=0, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([there],))
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive()
        yield url
    finally:
        server.should_exit = True
        thread.join()
        there.close()
