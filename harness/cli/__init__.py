"""The command line: `harness <command>`. Parses arguments, calls one short function, tells errors kindly.

Exit codes: 0 done · 1 the run stopped before its plan did (an engine, the disk, what it may spend), or every episode
failed · 2 a mistake to mend · 130 stopped with Ctrl-C.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence

from harness.cli.parser import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _usable_streams()
    options = parser().parse_args(arguments)
    try:
        module, function = options.function.split(":")
        code: int = getattr(importlib.import_module(f"harness.cli.{module}"), function)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # e.g. `harness list tasks | head`
        _give_up_stdout()
        return 0
    except KeyboardInterrupt:
        print("\nstopped.", file=sys.stderr)
        return 130
    except (Exception, SystemExit) as error:
        return _told(error)


def _told(error: BaseException) -> int:
    """Tell a mistake without a traceback; returns the exit code. A bug of the harness itself is raised again."""
    from harness.errors import UserError
    from harness.project import MOUNT
    from harness.run import BudgetReachedError, RunStoppedError

    if isinstance(error, UserError):
        print(f"{'stopped' if isinstance(error, BudgetReachedError) else 'error'}: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunStoppedError) else 2
    lines = list(traceback.walk_tb(error.__traceback__))
    own = [(f.f_code.co_filename, line) for f, line in lines if str(f.f_globals.get("__name__")).startswith(MOUNT)]
    if own:
        file, line = own[-1]
        print(f"error: {file}:{line}: the plugin fails: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    if isinstance(error, OSError):  # a full disk, a file that may not be read
        _give_up_stdout()
        print(f"error: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return 2
    raise error


def _usable_streams() -> None:
    """Let nothing that is printed raise: on a terminal without "±", or with its streams closed (`>&-`)."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123 - open as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _give_up_stdout() -> None:
    """Python flushes stdout once more at its end; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
