"""One process of an agent: what it is given and answers, its log, and that it ends with all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import shutil
import signal
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from harness.api.errors import EngineFatalError, RequestError, SetupError, near
from harness.api.printable import cut
from harness.engines.child_reaper import MarkedReaper
from harness.engines.engine_output import one_line
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents.conversations import MAX_REPLY_CHARS, ONLY

LINE = 8 * MAX_REPLY_CHARS
"""Bytes of a line that a program may write."""
EXIT_SECONDS = 1.0
"""Seconds that a process has to end when its input ends."""
MARK = "HARNESS_AGENTS"
"""The environment variable by which the processes of a run are known, and all that they start."""
_LAST_LINES = 3
"""Lines of standard error that explain a failure."""


class Processes:
    """The processes of one agent, marked as those of this run.

    Args:
        name: what errors call the agent.
        log: where standard error goes.
    """

    def __init__(self, name: str, log: AgentLog) -> None:
        self._name, self._log = name, log
        mark = uuid.uuid4().hex
        outer = os.environ.get(MARK)  # this run may be the work of an agent itself
        self._mark = {MARK: f"{outer}:{mark}" if outer else mark}
        self._reaper = MarkedReaper(mark)
        self._alive: set[AgentProcess] = set()
        self._gone: weakref.WeakSet[AgentProcess] = weakref.WeakSet()

    async def start(
        self,
        command: Sequence[str],
        agent: str,
        environment: Mapping[str, str],
        folder: Path | None = None,
        on_over: Callable[[AgentProcess], None] = lambda process: None,
        kind: type[AgentProcess] | None = None,
    ) -> AgentProcess:
        """Start one, in a session of its own.

        Args:
            command: the program and its arguments.
            agent: the agent that it plays, for the log.
            environment: all of it.
            folder: where it runs; None: where this process does.
            on_over: called when it has ended.
            kind: what makes of its output what it is; None: replies on standard output.

        Raises:
            EngineFatalError: it cannot be started.
        """

        def over(process: AgentProcess) -> None:
            self._alive.discard(process)
            self._gone.add(process)
            on_over(process)

        whole = {**environment, **self._mark}
        whole.setdefault("PYTHONUNBUFFERED", "1")  # a reply in a buffer would be waited for
        protocol = functools.partial(kind or AgentProcess, self._log, agent, over)
        try:
            _, process = await asyncio.get_running_loop().subprocess_exec(
                protocol, *command, env=whole, cwd=folder, start_new_session=True
            )
        except OSError as error:
            hint = " (its first line names no interpreter, such as #!/usr/bin/env python3)"
            why = f"{error.strerror or error}{hint if error.errno == errno.ENOEXEC else ''}"
            raise EngineFatalError(f"{self._name} cannot be started: {why}") from None
        self._alive.add(process)
        return process

    async def close(self, *ending: asyncio.Task[None]) -> None:
        """End them all, and what they have started; `ending`: what ends some of them already."""
        await asyncio.gather(*(process.end() for process in list(self._alive)), *ending)
        for process in list(self._gone):
            process.close()
        await asyncio.to_thread(self._reaper.close)


class EndedError(Exception):
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

    def __init__(self, log: AgentLog, agent: str, on_over: Callable[[AgentProcess], None]) -> None:
        self.is_gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log, self._agent, self._on_over = log, agent, on_over
        self._output, self._errors = bytearray(), bytearray()
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
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
        """Send a line and wait for one. Raises `EndedError`, `RequestError`."""
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
        raise EndedError(self._end_in_words(bool(answer)), was_silent=not answer)

    async def run(self, given: bytes) -> bytes:
        """Give it its whole input, wait until it has ended by itself; all of its output.

        Raises:
            EndedError: it has failed.
            RequestError: it wrote too much.
        """
        stdin = self._transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        stdin.write(given)
        stdin.write_eof()
        await asyncio.shield(self.is_gone)
        await self._drained()
        if self._floods:
            raise RequestError(f"it wrote more than {LINE:,} bytes")
        if self._transport.get_returncode():
            said = " | ".join(self._last) or one_line(self._output.decode("utf-8", "replace")[-1000:])
            raise EndedError(f"{self._ending()}{f': {said}' if said else ''}", was_silent=False)
        return bytes(self._output)

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
        where = "in the middle of a line" if is_cut else "before it replied"
        return f"{self._ending()} {where}{f': {self._last[-1]}' if self._last else ''}"

    def _ending(self) -> str:
        """How it has ended, in words."""
        code = self._transport.get_returncode()
        if code is None:
            return "closed its standard output"
        if code < 0:
            return (
                f"was ended by {signal.Signals(-code).name}" if -code in list(signal.Signals) else f"ended with {code}"
            )
        return f"ended with exit code {code}"

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
                self._last.append(one_line(text))
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
