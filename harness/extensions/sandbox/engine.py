"""An engine that runs programs: a reply is the output of the program in the last message."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar

from harness.api import Completion, Engine, Range, Request, plugin
from harness.api.errors import EngineFatalError, SetupError
from harness.engines.priority import PriorityGate
from harness.plugins.approvals import NeedsApproval
from harness.plugins.needed_approval import NeededApproval

if TYPE_CHECKING:
    from harness.extensions.sandbox import Execution

_OURS = re.compile(
    r'(?:^  File "<string>", line 1, in <module>\n)?(?:^  File "[^"\n]*_child\.py", line \d+, in .*\n(?:    .*\n)*)+',
    re.MULTILINE,
)
"""The frames of a traceback that are those of the sandbox: paths of this machine."""
_NO_PROGRAM = "There is no Python program in the message. Write it in a fenced block that begins with ```python."


@plugin
class Sandbox(Engine, NeedsApproval):
    """Runs the Python program of the last message in the harness's sandbox; the reply is what it prints.

    The fenced Python blocks of the message are one program, in their order. The last line of the reply says how it
    ended: `exit: ok`, `exit: error`, `exit: timeout (after 10 s)`, `exit: memory`, `exit: output` (too much of it),
    `exit: crashed`, `exit: refused` (too long a program) or `exit: no program`. A program can print nothing behind it.

    Args:
        model: the name in tables.
        seconds: the time limit of a program; it may use as much processor time.
        memory: the memory that each of its processes may use, in MiB.
        characters: the longest output in a reply; of a longer one the middle is left out.
        concurrency: the most programs that run at once.
    """

    model: str = "sandbox"
    seconds: Annotated[float, Range(gt=0, le=600)] = 10.0
    memory: Annotated[int, Range(ge=64, le=65_536)] = 1024
    characters: Annotated[int, Range(ge=100, le=60_000)] = 4000
    concurrency: Annotated[int, Range(ge=1, le=256)] = 2

    incidental: ClassVar[frozenset[str]] = frozenset({"concurrency"})
    confined: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._queue = PriorityGate(lambda running: running < self.concurrency)

    def approvals(self) -> Iterable[NeededApproval]:
        """The programs, each another one: they can be allowed for one command only."""
        yield NeededApproval(f"programs that models write, in the sandbox, as {self.model!r} of the spec", "")

    async def complete(self, request: Request) -> Completion:
        """The output. Raises `EngineFatalError` if this machine cannot confine programs, and nothing else."""
        from .code import program_of

        program = program_of(request.thread.messages[-1]["content"])
        if program is None:
            return Completion(f"{_NO_PROGRAM}\nexit: no program", input_tokens=0, output_tokens=0)
        await self._queue.enter(request.thread.age)
        try:
            result = await asyncio.to_thread(self._run, program)
        except SetupError as error:
            raise EngineFatalError(str(error)) from None
        finally:
            self._queue.leave()
        return Completion(self._report(result), input_tokens=0, output_tokens=0)

    def count_tokens(self, text: str) -> int:
        """None of them costs a token."""
        return 0

    def _run(self, program: str) -> Execution:
        from harness.extensions.sandbox import ProgramLimits, execute

        limits = ProgramLimits(wall=self.seconds, cpu=max(1, int(self.seconds)), memory=self.memory << 20)
        return execute(program, limits)

    def _report(self, result: Execution) -> str:
        printed = _OURS.sub("", result.output).strip("\n")
        more = len(printed) - self.characters
        if more > 0:
            head = self.characters // 2
            printed = f"{printed[:head]}\n… {more:,} characters left out …\n{printed[head - self.characters :]}"
        said = f"The program printed:\n{printed}" if printed.strip() else "The program printed nothing."
        end = f" (after {self.seconds:g} s)" if result.status == "timeout" else ""
        return f"{said}\nexit: {result.status}{end}"
