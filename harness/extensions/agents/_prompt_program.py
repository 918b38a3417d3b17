"""Command-line agents: a process for each turn, which gets a prompt and prints its reply."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.api.inner_calls import SeatCalls
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
    the server; and the model itself. All empty where its model is none of the run's."""

    variables: Mapping[str, str] = MappingProxyType({})
    port: int = 0
    socket: Path | None = None
    seat: SeatCalls | None = None


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
        self._own: weakref.WeakKeyDictionary[Conversation, SeatFolder] = weakref.WeakKeyDictionary()
        self.counts = {"processes": 0, "replayed": 0}
        self._door = door
        self._processes = Processes(name, log)

    async def complete(self, request: Request) -> Completion:
        """Raises `RequestError` for whatever the program does, `EngineFatalError` where it cannot be started."""
        conversation, messages = self.conversations.of(request), request.thread.messages
        door = self._door(request)
        start = conversation.start(request.thread) if self.prompting.later else 0
        conversation.session = None  # should this fail, it is not known what the agent remembers
        began = time.perf_counter()
        folder, is_new = self._folder(request, conversation, door)
        if is_new and self.prompting.later and door.seat is not None:
            start = await self._remember(request, door, folder)
        answer = await self._run(request, door, folder, prompt_of(messages[start:]), start > 0)
        conversation.session = True
        conversation.answered(len(messages), answer.text)
        return Completion(answer.text, latency=time.perf_counter() - began)

    async def _remember(self, request: Request, door: Door, folder: SeatFolder) -> int:
        """Play the earlier turns of a resumed run again, whose model calls are answered by their record, so that the
        agent's own session and files are as they were; returns the index of the first message that is new to it."""
        assert door.seat is not None
        messages, known = request.thread.messages, 0
        turns = request.thread.memo.get("turns", {})
        for i, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            again, known = known, 0  # after one that failed it was given the whole conversation
            if message["content"]:
                door.seat.replaying = turns.get(i)
                self.counts["replayed"] += 1
                try:
                    await self._run(request, door, folder, prompt_of(messages[again:i]), again > 0)
                    known = i + 1
                except RequestError as error:
                    self.log.write(f"--- an earlier turn of {request.id} fails when it is played again: {error}\n")
                finally:
                    door.seat.replaying = None
        return known

    async def _run(self, request: Request, door: Door, folder: SeatFolder, prompt: str, later: bool) -> Completion:
        """A turn's reply; the process and its group are gone afterwards. Raises as `complete`."""
        try:
            async with asyncio.timeout(self.timeout):
                return await self._process(request, door, folder, prompt, later)
        except TimeoutError:
            raise RequestError(f"{self.name} gave no reply within {self.timeout:g} s") from None
        except EndedError as error:
            raise RequestError(f"{self.name} {error}") from None
        except RequestError as error:
            raise RequestError(f"{self.name}: {error}") from None

    async def _process(self, request: Request, door: Door, folder: SeatFolder, prompt: str, later: bool) -> Completion:
        template = self.prompting.later if later else self.prompting.command
        text = prompt.encode("utf-8", "replace")
        words = filled(template, prompt, folder.prepare(text, self.prompting.reply.partition("#")[0]))
        if self.prompting.confined:
            words = self._confined(words, folder, door)
        self.counts["processes"] += 1
        agent = request.id.rsplit("/", 3)[1]
        environment = self._whole(folder, door.variables)
        process = await self._processes.start(words, agent, environment, folder=folder.path / "work")
        try:
            output = await process.run(text if takes_input(template) else b"")
        finally:
            process.kill()
            process.close()
        return read_answer(read_text(self.prompting.reply, output, folder))

    def _confined(self, words: Sequence[str], folder: SeatFolder, door: Door) -> list[str]:
        from harness.extensions.sandbox.whole_programs import Outlet, confined

        outlet = Outlet(door.port, door.socket) if door.socket is not None else None
        return confined(words, folder.path, folder.home, folder.work, self.prompting.readable, outlet)

    def _folder(self, request: Request, conversation: Conversation, door: Door) -> tuple[SeatFolder, bool]:
        """The folder of a conversation, and whether this is its first turn here; it goes when the conversation does."""
        if (known := self._own.get(conversation)) is not None:
            return known, False
        first = min((turn for turn, _ in request.thread.memo.get("turns", {}).values()), default=None)
        name = conversation.name if first is None else f"{conversation.episode}/{conversation.agent}/{first}"
        inside = _HOME if self.prompting.confined else None
        folder = self._own[conversation] = self._folders.make(name, self._files, door.variables, inside)
        weakref.finalize(conversation, self._folders.forget, name, folder).atexit = False
        return folder, True

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
        return {name: count for name, count in self.counts.items() if count}
