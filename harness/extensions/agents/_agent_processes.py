"""Agents that are programs: lines of JSON over standard input and output, a process for each conversation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.extensions.agents._agent_environment import SeatDoors
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._agent_process import AgentProcess, EndedError, Processes, check_program
from harness.extensions.agents._process_slots import ProcessSlots
from harness.extensions.agents.conversations import Conversation, Conversations, question_of, read_reply


class ProgramAgent:
    """Asks a program.

    A process answers the requests of one conversation, in order; where `history` is true, those of any. It is kept
    until its conversation is over, or another one needs its place.

    Args:
        name: what errors call it.
        command: the program and its arguments; no shell reads them.
        args: sent with every request.
        timeout: seconds for a reply, the start of the process included.
        most: processes at a time.
        history: whether each request holds the whole conversation.
        log: where standard error goes.
        doors: to the model that it may call; None: it has none of the run's.

    Raises:
        SetupError: there is no such program.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        args: Mapping[str, Any],
        timeout: float,
        most: int,
        history: bool,
        log: AgentLog,
        doors: SeatDoors | None = None,
    ) -> None:
        check_program(command[0])
        self.command, self.args, self.timeout, self.history = tuple(command), dict(args), timeout, history
        self.name, self.most, self.log, self.doors = name, most, log, doors
        self.conversations = Conversations()
        self.counts = {"processes": 0, "restarted": 0}
        self._processes = Processes(name, log)
        self._slots: ProcessSlots[AgentProcess] = ProcessSlots(most, self._end)
        self._ending: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    async def complete(self, request: Request) -> Completion:
        """Raises `RequestError` for whatever the program does, `EngineFatalError` where it cannot be started."""
        conversation, age = self.conversations.of(request), request.thread.age
        messages = len(request.thread.messages)
        while True:
            process: AgentProcess | None = self._slots.resting() if self.history else conversation.session
            if process is not None and process.is_over:
                self.counts["restarted"] += 1
                self._end(process)
                process = conversation.session = None
            start = 0 if self.history or process is None else conversation.start(request.thread)
            is_new = process is None
            if process is None:
                await self._slots.take(age)
            else:
                self._slots.work(process)
            began = time.perf_counter()
            try:
                async with asyncio.timeout(self.timeout):
                    process = process or await self._new(conversation, request)
                    endpoint = self.doors.facts(request) if self.doors is not None and self.history else None
                    question = question_of(request, conversation, start, self.args, endpoint)
                    answer = await self._ask(process, question, request)
            except TimeoutError:
                raise RequestError(f"{self.name} gave no reply within {self.timeout:g} s") from None
            except EndedError as error:
                if is_new or not error.was_silent:
                    raise RequestError(f"{self.name} {error}") from None
                continue  # it ended before it was asked
            self._slots.rest(process, age)
            conversation.answered(messages, answer.text)
            return answer if answer.latency is not None else replace(answer, latency=time.perf_counter() - began)

    async def _ask(self, process: AgentProcess, question: Mapping[str, Any], request: Request) -> Completion:
        """Ask a process, which ends where it fails."""
        try:
            return read_reply(await process.ask(json.dumps(question).encode() + b"\n"), request)
        except EndedError:
            self._end(process)
            raise
        except RequestError as error:
            self._end(process)
            raise RequestError(f"{self.name}: {error}") from None
        except BaseException:  # it took too long, or nothing waits for it any more
            process.kill()
            self._end(process)
            raise

    # ------------------------------------------------------------------------------ processes

    async def _new(self, conversation: Conversation, request: Request) -> AgentProcess:
        """A process for a conversation, which has a place."""
        variables = {} if self.doors is None or self.history else self.doors.variables(request)
        try:
            process = await self._processes.start(
                self.command, conversation.agent, {**os.environ, **variables}, on_over=self._slots.free
            )
        except BaseException:
            self._slots.free()
            raise
        self.counts["processes"] += 1
        if not self.history:
            conversation.session = process
            weakref.finalize(conversation, self._forget, weakref.ref(process)).atexit = False
        return process

    def _forget(self, process: weakref.ref[AgentProcess]) -> None:
        """A conversation is over. Called in any thread."""
        with contextlib.suppress(RuntimeError):  # so is the run
            self._loop.call_soon_threadsafe(self._end_if_there, process)

    def _end_if_there(self, process: weakref.ref[AgentProcess]) -> None:
        if (there := process()) is not None:
            self._end(there)

    def _end(self, process: AgentProcess) -> None:
        """Let a process end; nothing waits for that."""
        if process.is_gone.done():
            process.close()
            return
        process.retire()
        self._slots.leave(process)
        task = asyncio.create_task(process.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all processes, and what they have started."""
        await self._processes.close(*self._ending)
        again = self._slots.ended_for_room
        if again > self.most:
            what = f"{again} processes of {self.name} were ended to make room, and started again for their next turn"
            hint = "raise it, or let a few processes serve all conversations (history=true)"
            warnings.warn(f"{what}: concurrency={self.most} is less than an episode's agents; {hint}", stacklevel=2)

    def report(self) -> dict[str, int]:
        return {**self.counts, "ended_for_room": self._slots.ended_for_room}
