"""Command-line agents: a process for each turn, which gets a prompt and prints its reply."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._agent_process import EndedError, Processes
from harness.extensions.agents._prompt_reply import filled, prompt_of, read_text, takes_input
from harness.extensions.agents._prompting import Prompting
from harness.extensions.agents._seat_folders import SeatFolder, SeatFolders, few_variables
from harness.extensions.agents.conversations import Conversation, Conversations, read_answer

_HOME = Path("/home/agent")
"""Where a confined program finds its home."""


class Door(NamedTuple):
    """How a seat's program reaches its model: variables, and behind them the port of 127.0.0.1 and the Unix socket of
    the server. All empty where its model is none of the run's."""

    variables: Mapping[str, str] = MappingProxyType({})
    port: int = 0
    socket: Path | None = None


class PromptProgram:
    """Asks a command-line agent.

    Args:
        name: what errors call it.
        prompting: how.
        timeout: seconds for a reply.
        log: where standard error goes.
        run: names the run (`SeatFolders`).
        door: how the program that answers a request reaches its model.

    Raises:
        SetupError: there is no such program, or no folder can be made.
    """

    def __init__(
        self,
        name: str,
        prompting: Prompting,
        timeout: float,
        log: AgentLog,
        run: str | None,
        door: Callable[[Request], Door] = lambda request: Door(),
    ) -> None:
        prompting.check()
        self.name, self.prompting, self.timeout, self.log = name, prompting, timeout, log
        self.conversations = Conversations()
        self._files = prompting.files()
        self._folders = SeatFolders(run)
        self.counts = {"processes": 0}
        self._door = door
        self._processes = Processes(name, log)

    async def complete(self, request: Request) -> Completion:
        """Raises `RequestError` for whatever the program does, `EngineFatalError` where it cannot be started."""
        conversation = self.conversations.of(request)
        messages = request.thread.messages
        start = conversation.start(request.thread) if self.prompting.later else 0
        conversation.session = None  # should this fail, it is not known what the agent remembers
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self.timeout):
                answer = read_answer(await self._run(request, conversation, start))
        except TimeoutError:
            raise RequestError(f"{self.name} gave no reply within {self.timeout:g} s") from None
        except EndedError as error:
            raise RequestError(f"{self.name} {error}") from None
        except RequestError as error:
            raise RequestError(f"{self.name}: {error}") from None
        conversation.session = True
        conversation.answered(len(messages), answer.text)
        return Completion(answer.text, latency=time.perf_counter() - began)

    async def _run(self, request: Request, conversation: Conversation, start: int) -> str:
        """The text of a turn's reply; the process and its group are gone afterwards."""
        door = self._door(request)
        variables = door.variables
        folder = self._folder(conversation, variables)
        template = self.prompting.later if start else self.prompting.command
        prompt = prompt_of(request.thread.messages[start:])
        text = prompt.encode("utf-8", "replace")
        words = filled(template, prompt, folder.prepare(text, self.prompting.reply.partition("#")[0]))
        if self.prompting.confined:
            words = self._confined(words, folder, door)
        self.counts["processes"] += 1
        process = await self._processes.start(
            words, conversation.agent, self._whole(folder, variables), folder=folder.path / "work"
        )
        try:
            output = await process.run(text if takes_input(template) else b"")
        finally:
            process.kill()
            process.close()
        return read_text(self.prompting.reply, output, folder)

    def _confined(self, words: Sequence[str], folder: SeatFolder, door: Door) -> list[str]:
        from harness.extensions.sandbox.whole_programs import Outlet, confined

        outlet = Outlet(door.port, door.socket) if door.socket is not None else None
        return confined(words, folder.path, folder.home, folder.work, self.prompting.readable, outlet)

    def _folder(self, conversation: Conversation, variables: Mapping[str, str]) -> SeatFolder:
        seat = f"{conversation.episode}/{conversation.agent}"
        inside = _HOME if self.prompting.confined else None
        return self._folders.of(seat, self._files, variables, inside)

    def _whole(self, folder: SeatFolder, variables: Mapping[str, str]) -> dict[str, str]:
        """All variables of a process."""
        plain = {"NO_COLOR": "1", "TERM": "dumb", **variables}
        if variables or self.prompting.confined:
            plain = {**few_variables(), **plain}
        else:
            plain = {**os.environ, **plain}
        if variables or self.prompting.confined or self.prompting.home is not None:
            plain |= {"HOME": str(folder.home), "TMPDIR": str(folder.home / "tmp")}
        return plain

    async def close(self) -> None:
        """End all processes, and what they have started; remove the folders."""
        await self._processes.close()
        await asyncio.to_thread(self._folders.close)

    def report(self) -> dict[str, int]:
        return dict(self.counts)
