"""The engine `agent`: conversations with it, as a player leads them, and processes to look for."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from harness.api import Completion, Request, Thread
from harness.api.errors import EngineError, RequestError
from harness.extensions.agents.agent import Agent

T = TypeVar("T")


class Talk:
    """One conversation of the agent `Ann` in an episode; the first message is the system's."""

    def __init__(self, engine: Agent, episode: str = "toy/c0/0") -> None:
        self.engine, self.episode, self.turns = engine, episode, 0
        self.thread = Thread()
        self.thread.add("system", "Be kind.")

    async def ask(self, text: str, **request: Any) -> Completion:
        """The whole answer to a message."""
        self.thread.add("user", text)
        name, self.turns = f"{self.episode}/Ann/{self.turns}/0", self.turns + 1
        try:
            answer = await self.engine.complete(Request(name, self.thread, {"max_tokens": 9}, 7, **request))
        except EngineError:
            self.thread.add("assistant", "")
            raise
        self.thread.add("assistant", answer.text)
        return answer

    async def say(self, text: str) -> str:
        """The answer's text."""
        return (await self.ask(text)).text


async def hung(talk: Talk, text: str, heard: Callable[[], bool]) -> str:
    """The error of a message to which no reply comes: the agent's time passes once it has heard the message."""
    reply, loop = asyncio.create_task(talk.say(text)), asyncio.get_running_loop()
    while not heard() and not reply.done():
        await asyncio.sleep(0)
    now, later = loop.time, talk.engine.timeout
    loop.time = lambda: now() + later  # type: ignore[method-assign]
    with pytest.raises(RequestError) as caught:
        await reply
    return str(caught.value)


def using(work: Callable[[Agent], Awaitable[T]], log: Path | None = None, **fields: Any) -> T:
    """Start an agent, do the work, close it."""

    async def main() -> T:
        engine = Agent(**{"timeout": 30.0, **fields})
        if log is not None:
            engine.log_to(log)
        try:
            await engine.start()
            return await work(engine)
        finally:
            await engine.close()

    return asyncio.run(main())


def lives(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def all_end(pids: list[int], seconds: float = 20.0) -> bool:
    """Whether all these processes end within so many seconds."""
    end = time.monotonic() + seconds
    while any(map(lives, pids)) and time.monotonic() < end:
        os.sched_yield()
    return not any(map(lives, pids))
