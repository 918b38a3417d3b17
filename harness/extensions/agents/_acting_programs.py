"""Programs and functions that act by themselves: how one is started, ends, and is ended."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from harness.api.errors import SetupError
from harness.extensions.agents import _agent_calls, _agent_loop
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._agent_process import AgentProcess, Processes

OnOver = Callable[[Any], None]
"""Called with what was started when it has ended."""


class ActingProcess(AgentProcess):
    """A process whose output, on both channels, is for the log."""

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self._take_errors(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 2:
            self._take_errors(b"\n" if self._errors else b"")

    async def how_it_ended(self) -> str:
        """How, and what it wrote last."""
        await self._drained()
        return f"{self._ending()} before it made its move{f': {self._last[-1]}' if self._last else ''}"


class ProgramLauncher:
    """Starts a command.

    Args:
        name: what errors call it.
        command: the program and its arguments; no shell reads them.
        log: where it writes.
    """

    def __init__(self, name: str, command: Sequence[str], log: AgentLog) -> None:
        self._command, self._processes = tuple(command), Processes(name, log)

    async def start(
        self, agent: str, environment: Mapping[str, str], facts: Mapping[str, Any], on_over: OnOver
    ) -> ActingProcess:
        """Start one.

        Args:
            agent: whom it plays, for the log.
            environment: its variables.
            facts: for functions.
            on_over: called when it has ended.

        Raises:
            EngineFatalError: it cannot be started.
        """
        process = await self._processes.start(self._command, agent, environment, None, on_over, ActingProcess)
        assert isinstance(process, ActingProcess)
        return process

    async def close(self) -> None:
        """End all that are left, and what they have started."""
        await self._processes.close()


class FunctionLauncher:
    """Calls a function, in a thread of its own; what it returns is awaited in the loop of all agents.

    Args:
        call: `module:name`.
        args: further keyword arguments.
        log: where it prints to.

    Raises:
        SetupError: there is no such function, or it takes no `mcp_url`.
    """

    def __init__(self, call: str, args: Mapping[str, Any], log: AgentLog) -> None:
        self._call, self._args, self._log = call, dict(args), log
        self._target = _agent_calls.load(call, log)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entering = asyncio.Lock()
        hint = "Write `async def play(mcp_url, mcp_token)`, which plays the whole episode."
        if inspect.isclass(self._target):
            raise SetupError(f"call={call} is a class; interface=mcp takes a function", hint=hint)
        parameters = inspect.signature(self._target).parameters
        self._any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        self._names = set(parameters)
        if not self._any and "mcp_url" not in parameters:
            raise SetupError(f"call={call} has no parameter mcp_url", hint=hint)
        if not self._any and (unknown := [name for name in args if name not in parameters]):
            raise SetupError(f"call={call} has no parameter {unknown[0]!r}, which args= gives", hint=hint)

    async def start(
        self, agent: str, environment: Mapping[str, str], facts: Mapping[str, Any], on_over: OnOver
    ) -> ActingCall:
        """Call it once, with those of the `facts` that it has parameters for."""
        given = {name: value for name, value in facts.items() if self._any or name in self._names}
        async with self._entering:  # all seats of an episode start at once, and it is left once
            if self._loop is None:
                self._loop = await asyncio.to_thread(_agent_loop.enter, self._log)
        running = ActingCall(self._call, self._log, self._loop, on_over)
        running.begin(lambda: self._target(**{**given, **self._args}))
        return running

    async def close(self) -> None:
        """Leave the agents' loop; a thread that hangs is left."""
        loop, self._loop = self._loop, None
        if loop is not None:
            _agent_loop.leave(self._log, loop)


class ActingCall:
    """A call of a function that plays an episode."""

    def __init__(self, call: str, log: AgentLog, loop: asyncio.AbstractEventLoop, on_over: OnOver) -> None:
        self._own = asyncio.get_running_loop()
        self.is_gone: asyncio.Future[None] = self._own.create_future()
        self._call, self._log, self._loop, self._on_over = call, log, loop, on_over
        self._how = "returned before it made its move"
        self._awaited: Any = None
        self._is_abandoned = False

    @property
    def is_over(self) -> bool:
        """Whether it has returned, or is waited for no more."""
        return self._is_abandoned or self.is_gone.done()

    def begin(self, target: Callable[[], Any]) -> None:
        """Call it, in a thread."""

        def run() -> None:
            try:
                with self._log.diverted():
                    value = target()
                    if inspect.isawaitable(value):
                        self._awaited = asyncio.run_coroutine_threadsafe(_agent_calls.guarded(value), self._loop)
                        _, error = self._awaited.result()
                        if error is not None:
                            raise error
            except BaseException as error:  # SystemExit and KeyboardInterrupt of the agent's own too
                if not self._is_abandoned:
                    self._log.write("".join(traceback.format_exception(error)))
                self._how = f"fails: {_agent_calls.in_words(error)}"
            with contextlib.suppress(RuntimeError):  # the run is over
                self._own.call_soon_threadsafe(self._over)

        threading.Thread(target=run, name=self._call, daemon=True).start()

    async def how_it_ended(self) -> str:
        """How."""
        return self._how

    def retire(self) -> None:
        """Nothing: it ends at once."""

    async def end(self) -> None:
        """Wait for it no more; what it awaits is cancelled."""
        self.kill()

    def kill(self) -> None:
        """As `end`: nothing can end a thread."""
        if not self._is_abandoned:
            self._is_abandoned = True
            if self._awaited is not None:
                self._awaited.cancel()
            self._over()

    def _over(self) -> None:
        if not self.is_gone.done():
            self.is_gone.set_result(None)
            self._on_over(self)


Running: TypeAlias = ActingProcess | ActingCall
Launcher: TypeAlias = ProgramLauncher | FunctionLauncher
