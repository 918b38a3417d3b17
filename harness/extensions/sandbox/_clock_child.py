"""The process of `clock.py`: makes functions of code that is not ours, and lets copies of itself read texts with them.

A copy (a fork) reads one text after another until the system ends it for its processor time; then this process, which
has read none, makes the next copy. So a text that takes forever costs its own time and a few milliseconds.
"""

import contextlib
import functools
import importlib
import os
import pickle
import resource
import signal
import struct
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness.plugins import approvals

Made = tuple[str, Any, Callable[..., Any], tuple[Any, ...] | None]
"""(working directory, what may run, function, arguments of its first work)."""

SIZE = struct.Struct("<Q")
"""How many bytes follow; before it, in a request, stands one that says what to do: M (make) or R (read)."""
MAKE, DONE = 65, 66
"""How a copy ends when this process shall make a function, and when the harness is gone."""
MEMORY = 16 << 30
"""Bytes of data that a copy may have."""
WARMING = 600.0
"""Seconds of processor time for a function's first work, without a text of a model."""


def exactly(pipe: int, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = os.read(pipe, min(size - len(parts), 1 << 20))
        if not part:
            os._exit(DONE)
        parts += part
    return bytes(parts)


def message(pipe: int) -> bytes:
    return exactly(pipe, *SIZE.unpack(exactly(pipe, SIZE.size)))


def send(pipe: int, body: bytes) -> None:
    rest = memoryview(SIZE.pack(len(body)) + body)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def attempt(work: Callable[[], Any]) -> bytes:
    """The answer, pickled: (True, value, seconds of processor time) or (False, (error, traceback), 0)."""
    start = time.process_time()
    try:
        value = work()
        return pickle.dumps((True, value, time.process_time() - start))
    except (Exception, SystemExit) as error:
        return pickle.dumps((False, (portable(error), traceback.format_exc()[-20_000:]), 0.0))


def portable(error: BaseException) -> Exception:
    """The error, if it can be pickled; else one with the same message."""
    with contextlib.suppress(Exception):
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    return RuntimeError(f"{type(error).__name__}: {error}"[:2000])


def limit(kind: int, most: int) -> None:
    """Lower one of the system's limits, which programs that a reader starts may lower further."""
    with contextlib.suppress(ValueError, OSError):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def make(body: bytes, made: list[Made]) -> int:
    folder, granted, name, arguments, warm = pickle.loads(body)
    os.chdir(folder)
    module, _, function = name.partition(":")
    with approvals.under(granted):
        made.append((folder, granted, getattr(importlib.import_module(module), function)(*arguments), warm))
    return len(made) - 1


def read_texts(requests: int, answers: int, made: Sequence[Made]) -> None:
    """Answer until there is a function to make, or the harness is gone. SIGPROF, which is not caught, ends it."""
    limit(resource.RLIMIT_DATA, MEMORY)
    limit(resource.RLIMIT_CORE, 0)
    with contextlib.suppress(OSError):  # where memory runs out, this process ends and not the run
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    warmed: set[int] = set()
    while True:
        if exactly(requests, 1) == b"M":
            os._exit(MAKE)  # the rest of the request is for the process that made this copy
        place, arguments, seconds = pickle.loads(message(requests))
        folder, granted, function, warm = made[place]
        os.chdir(folder)
        with approvals.under(granted):
            if warm is not None and place not in warmed:
                signal.setitimer(signal.ITIMER_PROF, WARMING)
                attempt(functools.partial(function, *warm))
                warmed.add(place)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            answer = attempt(functools.partial(function, *arguments))
            signal.setitimer(signal.ITIMER_PROF, 0)
        send(answers, answer)


def main() -> None:
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # what packages print is not an answer
        os.dup2(nowhere, stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    made: list[Made] = []
    while True:
        copy = os.fork()
        if copy == 0:
            try:
                read_texts(requests, answers, made)
            finally:
                os._exit(DONE)
        code = os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
        if code == DONE:
            return
        if code == MAKE:
            recipe = message(requests)
            send(answers, attempt(functools.partial(make, recipe, made)))
        else:
            send(answers, pickle.dumps(None))


if __name__ == "__main__":
    main()
