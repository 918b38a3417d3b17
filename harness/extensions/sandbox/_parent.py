"""The near side of the fence: starts the confined processes, watches clock and output, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from harness.api.errors import SetupError

from . import _bwrap
from ._confine import close_memory
from ._machine import Protections

START = 120.0
"""Seconds a process may take to confine itself, before the program's own clock runs."""
TICK = 0.1
"""Seconds between two looks at the program's folder."""

# A package of that folder alone: nothing else of the harness is loaded, or can be found, over there.
_BOOT = (
    "import sys, types; p = types.ModuleType('fence'); p.__path__ = [sys.argv.pop()]; sys.modules['fence'] = p; "
    "from fence._child import main; main()"
)
_FOLDER = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class ProgramLimits:
    """What a program may use.

    Attributes:
        wall: seconds, from when its processes are set up.
        cpu: whole seconds of processor time, of each process.
        memory: bytes of address space, of each process; at least 64 MiB.
        output: bytes written to standard output and error by `execute`; `check` throws them away.
        value: bytes of one call's arguments or result.
        file: bytes of one file.
        files: files in its folder.
        source: characters of a program, prompt or test.
    """

    wall: float = 10.0
    cpu: int = 5
    memory: int = 1 << 30
    output: int = 64 << 10
    value: int = 8 << 20
    file: int = 1 << 20
    files: int = 64
    source: int = 1 << 20

    def __post_init__(self) -> None:
        least = {"cpu": 1, "memory": 64 << 20, "value": 1024}
        for name, value in asdict(self).items():
            if not value >= least.get(name, 0):
                raise ValueError(f"{name} must be at least {least.get(name, 0)}, got {value!r}")


@dataclass(slots=True)
class Process:
    """A confined process and what became of it.

    Attributes:
        popen: the process, or bubblewrap's, which waits for it.
        report: where it says that it is ready.
        ready: when it said so (`time.monotonic`).
        status: as `os.waitstatus_to_exitcode` has it.
        cpu: seconds of processor time; behind bubblewrap, which does not say it, the seconds since it was ready.
    """

    popen: subprocess.Popen[bytes]
    report: int
    ready: float = 0.0
    status: int = 0
    cpu: float = 0.0


class Fence:
    """A folder of its own, the processes started in it, and their open descriptors; leaving it ends and removes all.

    Raises:
        SetupError: if something is missing that the provider needs.
    """

    def __init__(self, limits: ProgramLimits, protections: Protections) -> None:
        protections.require()
        self._limits, self._protections = limits, protections
        self._directory = tempfile.TemporaryDirectory(prefix="harness-sandbox-", ignore_cleanup_errors=True)
        self._processes: list[Process] = []
        self._open: set[int] = set()

    def __enter__(self) -> Fence:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._close(*self._open)
        self._directory.cleanup()

    def pipe(self) -> tuple[int, int]:
        """The reading and the writing end, closed with the fence at the latest."""
        ends = os.pipe()
        self._open.update(ends)
        return ends

    def start(self, job: dict[str, Any], output: int = subprocess.DEVNULL, **ends: int) -> Process:
        """Start a process with a job.

        Args:
            job: what it does.
            output: where it writes.
            ends: ends of pipes that it alone keeps, by their names in the job.
        """
        reading, writing = self.pipe()
        in_bwrap = self._protections.provider == "bwrap"
        folder = self._directory.name
        if self._protections.warning:
            close_memory(ctypes.CDLL(None, use_errno=True))  # of this process, which the program may be able to see
        confinement = {"limits": asdict(self._limits), "using": self._protections.job}
        job = {**job, **ends, **confinement, "report": writing, "parent": 0 if in_bwrap else os.getpid()}
        stdin = os.memfd_create("job")
        self._open.add(stdin)
        with open(stdin, "wb", closefd=False) as file:
            file.write(json.dumps(job).encode())
        os.lseek(stdin, 0, os.SEEK_SET)
        environment = {"PYTHONHASHSEED": "0"}  # sets are walked in the same order every time
        if "LD_LIBRARY_PATH" in os.environ:  # some Pythons do not start without
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        command = [sys.executable, *["-P", "-s", "-S", "-X", "utf8", "-W", "ignore"], "-c", _BOOT, _FOLDER]
        if sys.dont_write_bytecode:
            command.insert(1, "-B")
        if in_bwrap:
            command = _bwrap.command(self._protections.bwrap, folder, command, _FOLDER)
        popen = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=stdin, stdout=output, stderr=output,
            pass_fds=[writing, *ends.values()], start_new_session=True,
        )  # fmt: skip
        process = Process(popen, reading)
        self._processes.append(process)
        self._close(writing, stdin, *ends.values(), *({output} & self._open))
        return process

    def await_ready(self) -> None:
        """Wait until every process has confined itself.

        Raises:
            SetupError: if one cannot. Then no line of the program has run.
        """
        deadline = time.monotonic() + START
        for process in self._processes:
            output, _ = self.read(process.report, 10_000, deadline, watch=False)
            if output != b"ready":
                why = output.decode("utf-8", "replace") or "it ended, or took too long, before it was ready"
                raise SetupError(
                    f"a program cannot be confined here: {why}",
                    hint="harness.extensions.sandbox.report() says what this machine offers; memory limits below "
                    "64 MiB are too small for Python itself",
                )
            process.ready = time.monotonic()

    def read(self, fd: int, most: int, deadline: float, watch: bool = True) -> tuple[bytes, str]:
        """What is written to `fd`, and why no more: "" at its end, "output" when there is too much, or "timeout"."""
        output = bytearray()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(output), "timeout"
            if watch and self.crowded():
                return bytes(output), "output"
            if poll.poll(1000 * min(left, TICK)):
                piece = os.read(fd, 65_536)
                if not piece:
                    return bytes(output), ""
                output += piece
                if len(output) > most:
                    return bytes(output[:most]), "output"

    def crowded(self) -> bool:
        """Whether there are more files in the folder than allowed."""
        with contextlib.suppress(OSError), os.scandir(self._directory.name) as entries:
            return sum(1 for _ in islice(entries, self._limits.files + 1)) > self._limits.files
        return False

    def await_end(self, process: Process, deadline: float) -> bool:
        """Whether `process` ended by itself in time and within its folder."""
        pause = 0.001
        while os.waitid(os.P_PID, process.popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > deadline or self.crowded():
                return False
            time.sleep(pause)
            pause = min(2 * pause, TICK)
        return True

    def end(self) -> None:
        """Kill what still runs, and take in how each ended."""
        for process in self._processes:
            if process.popen.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.popen.pid, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.popen.pid, signal.SIGKILL)
        for process in self._processes:
            if process.popen.returncode is None:
                _, status, usage = os.wait4(process.popen.pid, 0)
                process.status = process.popen.returncode = os.waitstatus_to_exitcode(status)
                process.cpu = usage.ru_utime + usage.ru_stime
                if self._protections.provider == "bwrap":
                    process.cpu = time.monotonic() - process.ready
                    if process.status > 128:  # as shells say that a signal ended it
                        process.status = 128 - process.status

    def _close(self, *fds: int) -> None:
        for fd in fds:
            os.close(fd)
            self._open.discard(fd)


def explain_end(process: Process, cpu: int) -> tuple[str, str]:
    """Status and words for a process that ended before it should have."""
    if process.status < 0:
        # The kernel's clock for the limit and the one in `cpu` differ by some per cent. A program that ignores SIGXCPU
        # is killed a second later, well past either.
        if process.status == -signal.SIGXCPU or process.cpu >= cpu:
            return "timeout", f"the program used its {cpu} s of processor time"
        name = signal.Signals(-process.status).name
        return "crashed", f"the program was ended by {name}, or closed its channel"
    return "crashed", f"the program ended its own process with exit status {process.status}"
