"""An agent of your own in a model's place: a Python function or class, a program, or a server."""

from __future__ import annotations

import hashlib
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness.api import Completion, Facts, Range, plugin
from harness.engine_api import Describes, Engine, Reports, Request, RunsPrograms, WritesLog
from harness.engines import _agent_calls as calls
from harness.engines._agent_log import AgentLog
from harness.engines._priority import PriorityGate
from harness.errors import EngineFatalError, SetupError

_MOST_FILES = 1_000


@plugin
class Agent(Engine, Describes, Reports, RunsPrograms, WritesLog):
    """An agent of your own: a Python function or class (`call`), a program (`command`) or a server (`url`).

    Args:
        call: `module:name` of a function `(messages) -> text`, or of a class with `reply(message)`. Its module is in
            the working directory, in the project's root, or installed.
        args: keyword arguments for the function or the class; programs and servers get them with every request.
        label: the name in tables; by default what `call`, `command` or `url` names.
        timeout: seconds for a reply.
        concurrency: the most requests that the agent answers at once.
    """

    call: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    timeout: Annotated[float, Range(gt=0)] = 600.0
    concurrency: Annotated[int, Range(ge=1, le=1000)] = 32

    incidental: ClassVar[frozenset[str]] = frozenset({"timeout", "concurrency"})

    def __post_init__(self) -> None:
        self._log_path: Path | None = None
        self._log = AgentLog()
        self._form: calls.PythonAgent | None = None
        self._is_open = False
        self._queue = PriorityGate(lambda in_flight: in_flight < self.concurrency)
        if not self.call:
            raise SetupError("the engine agent needs call=module:name")
        if self.call.partition(":")[2].strip() == "" or "/" in self.call:
            raise SetupError(
                f"call={self.call!r} names no function",
                hint="Write module:name, such as call=my_agents.planner:reply for `def reply(messages)` "
                "in my_agents/planner.py.",
            )

    @property
    def model(self) -> str:
        return self.label or str(self.call)

    @property
    def programs(self) -> str | None:
        return f"{self.call} as it is, without a sandbox"

    def describe(self) -> Facts:
        """The fields, and a digest of the agent's code: of its package in your folders, or of its module."""
        return {**super().describe(), "code": self._digest()}

    def log_to(self, path: Path) -> None:
        self._log_path = path

    async def start(self) -> None:
        """Find the agent.

        Raises:
            SetupError: there is none, or it cannot be imported.
        """
        self._log = AgentLog(self._log_path)
        self._log.open()
        self._log.begin(self.model)
        self._form = calls.PythonAgent(str(self.call), self.args, self.timeout, self._log)
        self._is_open = True

    async def complete(self, request: Request) -> Completion:
        """Raises `RequestError` for whatever the agent does."""
        if self._form is None or not self._is_open:
            raise EngineFatalError("the engine is not started, or closed")
        await self._queue.enter(request.thread.age)
        try:
            return await self._form.complete(request)
        finally:
            self._queue.leave()

    async def close(self) -> None:
        self._is_open = False
        if self._form is not None:
            await self._form.close()
        self._log.close()
        self._log = AgentLog()

    def report(self) -> Facts:
        """What the agent's form counted."""
        return self._form.report() if self._form is not None else {}

    def _digest(self) -> str | None:
        file = calls.file_of(str(self.call).partition(":")[0])
        if file is None:
            return None
        digest = hashlib.sha256(file.read_bytes())
        return digest.hexdigest()
