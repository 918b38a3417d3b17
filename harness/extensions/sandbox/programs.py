"""`check` grades a program by a data set's test, `execute` runs a plain one. The package says what either may see."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Literal

from ._child import OUT_OF_MEMORY
from ._machine import Protections, report
from ._parent import TICK, Fence, Process, ProgramLimits, explain_end
from .confinement import provider

Status = Literal["passed", "failed", "error", "timeout", "memory", "output", "crashed", "refused"]
"""How a check ended.

    passed   check(candidate) returned            memory   the program ran out of memory
    failed   an assertion of the test failed      output   it wrote or returned too much, or too many files
    error    it does not load, or raised          crashed  its process ended, or did not keep to the form
    timeout  it took too long                     refused  it was not run: too long a text, or no test
"""
ExecutionStatus = Literal["ok", "error", "timeout", "memory", "output", "crashed", "refused"]

_USUAL = ProgramLimits()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a program is right, how its check ended, and why, in words (at most about 2,000 characters)."""

    passed: bool
    status: Status
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a program ended, and its bounded output."""

    status: ExecutionStatus
    output: str


def check(
    prompt: str,
    code: str,
    test: str,
    entry_point: str,
    limits: ProgramLimits = _USUAL,
    protections: Protections | None = None,
) -> Verdict:
    """Run `code` against `test`, which defines `check(candidate)`; safe to call from many threads.

    Args:
        prompt: the data set's own; its helper functions are there for the test, the program's are not.
        code: the whole program, e.g. `sandbox.code.assemble(prompt, completion, entry_point)`.
        test: the data set's own.
        entry_point: the function of `code` to test.
        limits: what it may use.
        protections: what to confine it with; if None, what this machine offers to the provider in use.

    Raises:
        SetupError: if this machine cannot confine programs. Nothing the program does raises.
    """
    with Fence(limits, protections or report(provider())) as fence:
        if max(map(len, (prompt, code, test))) > limits.source:
            return Verdict(False, "refused", f"a text has more than {limits.source} characters")
        requests_in, requests_out = fence.pipe()
        replies_in, replies_out = fence.pipe()
        verdict_in, verdict_out = fence.pipe()
        job = {"role": "solver", "entry_point": entry_point, "program": code}
        solver = fence.start(job, requests=requests_in, replies=replies_out)
        job = {"role": "checker", "entry_point": entry_point, "prompt": prompt, "test": test}
        checker = fence.start(job, requests=requests_out, replies=replies_in, verdict=verdict_out)
        fence.await_ready()
        output, reason = fence.read(verdict_in, 100_000, time.monotonic() + limits.wall)
        if output.startswith(b'["gone"'):  # bubblewrap says a little later how the process ended that it waits for
            fence.await_end(solver, time.monotonic() + TICK)
        fence.end()
        status, detail = _verdict(output, reason, solver, checker, limits)
    return Verdict(status == "passed", status, detail.encode("utf-8", "replace").decode())


def _verdict(output: bytes, reason: str, solver: Process, checker: Process, limits: ProgramLimits) -> tuple[Any, str]:
    if reason == "timeout":
        return "timeout", f"no verdict after {limits.wall} s"
    if reason == "output":
        return "output", f"the program made more than {limits.files} files"
    if not output:  # the test itself was ended: a loop, or too large a value
        status, detail = explain_end(checker, limits.cpu)
        return status, f"{detail} (in the test's process)"
    status, detail = json.loads(output)
    return explain_end(solver, limits.cpu) if status == "gone" else (status, detail)


def execute(program: str, limits: ProgramLimits = _USUAL, protections: Protections | None = None) -> Execution:
    """Run a plain program, as `python FILE` would, with empty standard input.

    Raises:
        SetupError: if this machine cannot confine programs. Nothing that the program does raises.
    """
    with Fence(limits, protections or report(provider())) as fence:
        if len(program) > limits.source:
            return Execution("refused", f"the program has more than {limits.source} characters")
        output_in, output_out = fence.pipe()
        process = fence.start({"role": "program", "program": program}, output_out)
        fence.await_ready()
        deadline = time.monotonic() + limits.wall
        output, reason = fence.read(output_in, limits.output, deadline)
        if not reason and not fence.await_end(process, deadline):
            reason = "output" if fence.crowded() else "timeout"
        fence.end()
    status: Any = reason
    if not reason and process.status < 0:
        status, _ = explain_end(process, limits.cpu)
    elif not reason:
        status = {0: "ok", OUT_OF_MEMORY: "memory"}.get(process.status, "error")
    return Execution(status, output.decode("utf-8", "replace"))
