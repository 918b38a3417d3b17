"""Whether two mathematical answers are equal: by their normal forms, or by their meaning."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path

from harness.errors import SetupError

from .mathematics import MAX_CHARS, math_canonical

SECONDS = 5.0
"""Processor time for one comparison."""
_DIGITS = re.compile(r"\d{400}")


def math_equal(a: str, b: str, *, strict: bool = False, seconds: float = SECONDS) -> bool:
    r"""Whether two answers are equal. Symmetric; no text raises.

    Answers with the same normal form (`math_canonical`) are equal; with `strict`, only these. Otherwise the library
    `math-verify` decides whether they mean the same: `(x+1)^2` and `x^2+2x+1`, `1,2` and `2,1`, `30\%` and 0.3.

    The library interrupts itself by signals, which work only in the main thread and not within long arithmetic
    (`9^{9^9}`). So it runs in one process beside this one, which the system ends when a comparison takes more than
    `seconds` of processor time or two gigabytes; that pair is then unequal. Calls of several threads wait for one
    another, and a call waits for its comparison (usually milliseconds): do not call it on an event loop with hostile
    texts. Results are cached.

    Raises:
        SetupError: the extra `math` is not installed, it does not start, or the system has no processor-time limits
            (Windows).
    """
    if not strict:
        _check_setup()
    (one, text), (two, other) = sorted((math_canonical(text), text) for text in (a, b))
    if one == two:
        return bool(one)
    if strict or not one or max(len(one), len(two)) > MAX_CHARS or _DIGITS.search(f"{one} {two}"):
        return False
    return _verdict(_readings(one, text), _readings(two, other), seconds)


def _readings(canonical: str, text: str) -> tuple[str, ...]:
    """What an answer may mean: the normal form leaves out a percent sign, but 30% is 0.3 too."""
    return (canonical, f"{canonical}\\%") if "%" in text else (canonical,)


@cache
def _check_setup() -> None:
    if importlib.util.find_spec("math_verify") is None:
        raise SetupError(
            "comparing mathematical answers by meaning needs the package math-verify",
            hint='Install it: pip install "mas-eval-harness[math]"; or compare normal forms only (strict).',
        )
    if os.name != "posix":
        raise SetupError(
            f"comparing mathematical answers by meaning needs a POSIX system, this is {os.name}",
            hint="Compare normal forms only (strict).",
        )


@lru_cache(maxsize=100_000)
def _verdict(one: tuple[str, ...], two: tuple[str, ...], seconds: float) -> bool:
    return _WORKER.ask(one, two, seconds)


class _Worker:
    """The process that compares: started when first needed, again after it died, ended with this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0

    def ask(self, one: Sequence[str], two: Sequence[str], seconds: float) -> bool:
        with self._lock:
            process = self._running()
            assert process.stdin is not None and process.stdout is not None
            with contextlib.suppress(OSError):  # it is gone: no answer comes
                process.stdin.write(json.dumps([one, two, seconds]) + "\n")
                process.stdin.flush()
            answer = process.stdout.readline()
            if not answer:
                self._end()
            return answer.strip() == "true"

    def close(self) -> None:
        with self._lock:
            self._end()

    def _running(self) -> subprocess.Popen[str]:
        if self._owner != os.getpid():  # a fork has the parent's process, which it must not talk to
            self._process, self._owner = None, os.getpid()
        if self._process is None or self._process.poll() is not None:
            self._end()
            import_path = os.pathsep.join(path for path in sys.path if path)
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("_math_worker.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env={**os.environ, "PYTHONPATH": import_path},
            )
            assert self._process.stdout is not None
            if self._process.stdout.readline().strip() != "ready":
                self._end()
                raise SetupError(
                    "the process that compares mathematical answers does not start",
                    hint=f"See why: {sys.executable} -c 'import math_verify'",
                )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # a question that the process never read
                if pipe is not None:
                    pipe.close()


_WORKER = _Worker()
atexit.register(_WORKER.close)
