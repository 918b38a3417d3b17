"""Agents that are programs: lines of JSON over standard input and output, a process for each conversation."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import time
import uuid
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from harness.api import Completion, Request
from harness.api.errors import EngineFatalError, RequestError, SetupError, near
from harness.api.printable import cut
from harness.engines.child_reaper import MarkedReaper
from harness.engines.engine_output import one_line
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._process_slots import ProcessSlots
from harness.extensions.agents.conversations import (
    MAX_REPLY_CHARS,
    ONLY,
    Conversation,
    Conversations,
    question_of,
    read_reply,
)

LINE = 8 * MAX_REPLY_CHARS
"""Bytes of a line that a program may write."""
EXIT_SECONDS = 1.0
"""Seconds that a process has to end when its input ends."""
MARK = "HARNESS_AGENTS"
"""The environment variable by which the processes of a run are known, and all that they start."""


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
    ) -> None:
        check_program(command[0])
        self.command, self.args, self.timeout, self.history = tuple(command), dict(args), timeout, history
        self.name, self.most, self.log = name, most, log
        self.conversations = Conversations()
        self.counts = {"processes": 0, "restarted": 0}
        mark = uuid.uuid4().hex
        outer = os.environ.get(MARK)  # this run may be the work of an agent itself
        self._environment = {**os.environ, MARK: f"{outer}:{mark}" if outer else mark}
        self._environment.setdefault("PYTHONUNBUFFERED", "1")  # a reply in a buffer would be waited for
        self._reaper = MarkedReaper(mark)
        self._slots: ProcessSlots[AgentProcess] = ProcessSlots(most, self._end)
        self._alive: set[AgentProcess] = set()
        self._gone: weakref.WeakSet[AgentProcess] = weakref.WeakSet()
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
                    process = process or await self._new(conversation)
                    answer = await self._ask(process, question_of(request, conversation, start, self.args), request)
            except TimeoutError:
                raise RequestError(f"{self.name} gave no reply within {self.timeout:g} s") from None
            except _EndedError as error:
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
        except _EndedError:
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

    async def _new(self, conversation: Conversation) -> AgentProcess:
        """A process for a conversation, which has a place."""
        protocol = functools.partial(AgentProcess, self.log, conversation.agent, self._is_over)
        try:
            _, process = await self._loop.subprocess_exec(
                protocol, *self.command, env=self._environment, start_new_session=True
            )
        except BaseException as error:
            self._slots.free()
            if not isinstance(error, OSError):
                raise
            hint = " (its first line names no interpreter, such as #!/usr/bin/env python3)"
            why = f"{error.strerror or error}{hint if error.errno == errno.ENOEXEC else ''}"
            raise EngineFatalError(f"{self.name} cannot be started: {why}") from None
        self._alive.add(process)
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

    def _is_over(self, process: AgentProcess) -> None:
        """A process has ended."""
        self._alive.discard(process)
        self._gone.add(process)
        self._slots.free(process)

    async def close(self) -> None:
        """End all processes, and what they have started."""
        await asyncio.gather(*(process.end() for process in list(self._alive)), *self._ending)
        for process in list(self._gone):
            process.close()
        await asyncio.to_thread(self._reaper.close)
        again = self._slots.ended_for_room
        if again > self.most:
            what = f"{again} processes of {self.name} were ended to make room, and started again for their next turn"
            hint = "raise it, or let a few processes serve all conversations (history=true)"
            warnings.warn(f"{what}: concurrency={self.most} is less than an episode's agents; {hint}", stacklevel=2)

    def report(self) -> dict[str, int]:
        return {**self.counts, "ended_for_room": self._slots.ended_for_room}


class _EndedError(Exception):
    """A process has ended, or closed its output, instead of answering."""

    def __init__(self, message: str, was_silent: bool) -> None:
        super().__init__(message)
        self.was_silent = was_silent


class AgentProcess(asyncio.SubprocessProtocol):
    """One process, in a session and a process group of its own.

    Args:
        log: where its standard error goes.
        agent: the agent that it plays, for the log.
        on_over: called when it has ended.

    Attributes:
        is_gone: done when it has ended.
    """

    def __init__(self, log: AgentLog, agent: str, on_over: Any) -> None:
        self.is_gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log, self._agent, self._on_over = log, agent, on_over
        self._output, self._errors, self._last = bytearray(), bytearray(), ""
        self._news: asyncio.Future[None] | None = None
        self._is_closed = self._floods = False

    # ------------------------------------------------------------------------------ what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 2:
            self._take_errors(data)
        elif not self._floods:
            self._output += data
            if len(self._output) > LINE:
                self._floods = True
                self.kill()
            if self._floods or b"\n" in data:
                self._tell()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd in (0, 1):
            self._is_closed = True
            self._tell()
        else:
            self._take_errors(b"\n" if self._errors else b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport.close()

    def process_exited(self) -> None:
        self.kill()  # what it has started, and left
        if (stdin := self._transport.get_pipe_transport(0)) is not None:
            stdin.close()
        if not self.is_gone.done():
            self.is_gone.set_result(None)
        self._on_over(self)
        # What it wrote last may be under way; the end of its output says when that is here.
        self._tell()

    # ------------------------------------------------------------------------------ what its owner calls

    @property
    def is_over(self) -> bool:
        """Whether it can answer no more."""
        return self._is_closed

    async def ask(self, line: bytes) -> bytes:
        """Send a line and wait for one. Raises `_EndedError`, `RequestError`."""
        if self._output:
            text = self._output.decode("utf-8", "replace")
            raise RequestError(f"it wrote more than a line for its last reply: {cut(text.strip(), 200)!r}; {ONLY}")
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(line)
        while b"\n" not in self._output and not self._is_closed and not self._floods:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        if b"\n" not in self._output and self._is_closed and not self._floods:
            await self._drained()
        answer, newline, rest = self._output.partition(b"\n")
        if newline and len(answer) <= LINE:
            self._output = rest
            return bytes(answer)
        if self._floods:
            raise RequestError(f"it wrote more than {LINE:,} bytes without the end of a line")
        raise _EndedError(self._end_in_words(bool(answer)), was_silent=not answer)

    def retire(self) -> None:
        """Let it be asked no more."""
        self._is_closed = True

    async def end(self) -> None:
        """Let its input end; kill it, and what it has started, if that does not end it."""
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS):
                await asyncio.shield(self.is_gone)
        self.kill()
        await self.is_gone
        self.close()

    def close(self) -> None:
        """Let its pipes go."""
        self._transport.close()

    def kill(self) -> None:
        """Kill its group: it, and what it has started and has not taken itself out of it."""
        self._is_closed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    # ------------------------------------------------------------------------------ its own

    async def _drained(self) -> None:
        """Wait until all that it wrote is here: until it is gone and its pipes are at their end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(EXIT_SECONDS / 4):
                await asyncio.shield(self.is_gone)
                while any(self._is_open(fd) for fd in (1, 2)):
                    self._news = asyncio.get_running_loop().create_future()
                    await self._news

    def _is_open(self, fd: int) -> bool:
        pipe = self._transport.get_pipe_transport(fd)
        return pipe is not None and not pipe.is_closing()

    def _end_in_words(self, is_cut: bool) -> str:
        code = self._transport.get_returncode()
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = (
                f"was ended by {signal.Signals(-code).name}" if -code in list(signal.Signals) else f"ended with {code}"
            )
        else:
            how = f"ended with exit code {code}"
        where = "in the middle of a line" if is_cut else "before it replied"
        return f"{how} {where}{f': {self._last}' if self._last else ''}"

    def _take_errors(self, data: bytes) -> None:
        self._errors += data
        *lines, rest = self._errors.split(b"\n")
        if len(rest) > 65_536:
            lines, rest = [*lines, rest], bytearray()
        self._errors = bytearray(rest)
        for line in lines:
            text = line.decode("utf-8", "replace")
            self._log.write(f"[{self._agent} {self.pid}] {text}\n")
            if text.strip():
                self._last = one_line(text)
        if not self._is_open(2):
            self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


def check_program(program: str) -> None:
    """Raise `SetupError` if there is no such program, or it may not be run."""
    if shutil.which(program) is not None:
        return
    path = Path(program)
    if path.is_file() and "/" not in program:
        hint = f"A file of this folder needs ./ before it: command=./{program}."
        raise SetupError(f"command={program}: there is no such program on the PATH", hint=hint)
    if path.is_file():
        hint = f"Make it executable (chmod +x {program}), or name its interpreter: command='python {program}'."
        raise SetupError(f"command={program}: the file may not be executed", hint=hint)
    if "/" not in program:
        hint = "Install it, or write its path, such as ./my_agent."
        raise SetupError(f"command={program}: there is no such program on the PATH", hint=hint)
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = [f"{program.rpartition('/')[0]}/{one.name}" for one in path.parent.iterdir() if one.is_file()]
    raise SetupError(f"command={program}: there is no such file", hint=near(program, names))
