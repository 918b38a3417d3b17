"""Run programs that a model wrote, and grade them by execution. Every program is treated as hostile.

`check` grades a HumanEval-like program: it passes if the data set's own `check(candidate)` returns (Chen et al. 2021,
"Evaluating Large Language Models Trained on Code", section 2.1). `execute` runs a plain program.

Every program has processes of its own: no network, no new processes or threads, limits on wall and processor time,
memory, files and output, an empty environment, a folder of its own that is removed afterwards, and nothing else to read
but Python's standard library. Whatever the program does (exit, crash, loop, patch, lie) is data: a status, and never an
exception here. `report()` describes what this machine offers. If something is missing, nothing runs, unless you choose
bubblewrap or weaker protection (`using`).

The verdict is never the program's own. The program runs in one process and the data set's test in another; calls and
results cross as plain data (numbers, text, lists, dicts, …). So a program cannot exit early with success, patch the
test, return an object that equals everything, or swallow an assertion. Objects that are not plain data equal nothing.
The memory of the process that knows the expected results is closed before the program's first line runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._machine import Protections, Provider, report
    from ._parent import ProgramLimits
    from .confinement import provider, using, warning_of
    from .programs import Execution, ExecutionStatus, Status, Verdict, check, execute

__all__ = [
    "Execution",
    "ExecutionStatus",
    "ProgramLimits",
    "Protections",
    "Provider",
    "Status",
    "Verdict",
    "check",
    "execute",
    "provider",
    "report",
    "using",
    "warning_of",
]


def __getattr__(name: str) -> Any:
    """Load what runs programs with its first name: a task whose answers are numbers needs the clock alone."""
    if name in __all__:
        from . import _machine, _parent, confinement, programs

        module = next(one for one in (programs, confinement, _machine, _parent) if hasattr(one, name))
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
