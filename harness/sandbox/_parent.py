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
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from harness.errors import SetupError

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


@dataclass(slots=True)
class Fence:
    """A folder, the processes started in it, and their open descriptors; leaving it ends and removes them all."""

    folder: str
    files: int
    using: Protections
    processes: list[Process] = field(default_factory=list)
    open: set[int] = field(default_factory=set)

    def __enter__(self) -> Fence:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for fd in self.open:
            os.close(fd)
        self.open.clear()

    def pipe(self) -> tuple[int, int]:
        """The reading and the writing end, closed with the fence at the latest."""
        ends = os.pipe()
        self.open.update(ends)
        return ends

    def close(self, *fds: int) -> None:
        """Close these ends now."""
        for fd in fds:
            os.close(fd)
            self.open.discard(fd)

    def start(self, job: dict[str, Any], output: int, keeps: Iterable[int]) -> Process:
        """Start a process with a job; `output` is where it writes, `keeps` what it inherits."""
        reading, writing = self.pipe()
        walled = self.using.provider == "bwrap"
        if self.using.warning:
            close_memory(ctypes.CDLL(None, use_errno=True))  # of this process, which the program may be able to see
        whole = {**job, "using": self.using.job, "report": writing, "parent": 0 if walled else os.getpid()}
        stdin = os.memfd_create("job")
        self.open.add(stdin)
        with open(stdin, "wb", closefd=False) as file:
            file.write(json.dumps(whole).encode())
        os.lseek(stdin, 0, os.SEEK_SET)
        environment = {"PYTHONHASHSEED": "0"}  # sets are walked in the same order every time
        if "LD_LIBRARY_PATH" in os.environ:  # some Pythons do not start without
            environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        command = [sys.executable, *["-P", "-s", "-S", "-X", "utf8", "-W", "ignore"], "-c", _BOOT, _FOLDER]
        if sys.dont_write_bytecode:
            command.insert(1, "-B")
        if walled:
            command = _bwrap.command(self.using.bwrap, self.folder, command, _FOLDER)
        popen = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdin=stdin, stdout=output, stderr=output,
            pass_fds=[writing, *keeps], start_new_session=True,
        )  # fmt: skip
        process = Process(popen, reading)
        self.processes.append(process)
        self.close(writing, stdin)
        return process

    def await_ready(self) -> None:
        """Until every process has confined itself.

        Raises:
            SetupError: if one cannot. No line of the program has run in it then.
        """
        deadline = time.monotonic() + START
        for process in self.processes:
            output, _ = self.read(process.report, 10_000, deadline, watch=False)
            if output != b"ready":
                why = output.decode("utf-8", "replace") or "it ended, or took too long, before it was ready"
                raise SetupError(
                    f"a program cannot be confined here: {why}",
                    hint="print(harness.sandbox.report()) says what this machine offers; memory limits below 64 MiB "
                    "are too small for Python itself",
                )
            process.ready = time.monotonic()

    def read(self, fd: int, most: int, deadline: float, watch: bool = True) -> tuple[bytes, str]:
        """What is written to `fd`, and why no more: "" at its end, "output" when there is too much, or "timeout"."""
        got = bytearray()
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return bytes(got), "timeout"
            if watch and self.crowded():
                return bytes(got), "output"
            if poll.poll(1000 * min(left, TICK)):
                piece = os.read(fd, 65_536)
                if not piece:
                    return bytes(got), ""
                got += piece
                if len(got) > most:
                    return bytes(got[:most]), "output"

    def crowded(self) -> bool:
        """Whether there are more files in the folder than allowed."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            return sum(1 for _ in islice(entries, self.files + 1)) > self.files
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
        for process in self.processes:
            if process.popen.returncode is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.popen.pid, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.popen.pid, signal.SIGKILL)
        for process in self.processes:
            if process.popen.returncode is None:
                _, status, usage = os.wait4(process.popen.pid, 0)
                process.status = process.popen.returncode = os.waitstatus_to_exitcode(status)
                process.cpu = usage.ru_utime + usage.ru_stime
                if self.using.provider == "bwrap":
                    process.cpu = time.monotonic() - process.ready
                    if process.status > 128:  # as shells say that a signal ended it
                        process.status = 128 - process.status


def ended(process: Process, cpu: int) -> tuple[str, str]:
    """Status and words for a process that ended before it should have."""
    if process.status < 0:
        # The kernel's clock for the limit and the one in `cpu` differ by some per cent. A program that ignores SIGXCPU
        # is killed a second later, well past either.
        if process.status == -signal.SIGXCPU or process.cpu >= cpu:
            return "timeout", f"the program used its {cpu} s of processor time"
        name = signal.Signals(-process.status).name
        return "crashed", f"the program was ended by {name}, or closed its channel"
    return "crashed", f"the program ended its own process with exit status {process.status}"
