"""The command line: `harness <command>`. Parses arguments, calls one short function, tells errors kindly.

Exit codes: 0 done · 1 the run stopped before its plan did, or every episode failed · 2 a mistake to mend ·
130 stopped with Ctrl-C.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from harness.cli.parser import parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        module, function = options.function.split(":")
        code: int = getattr(importlib.import_module(f"harness.cli.{module}"), function)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # e.g. `harness list tasks | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped.", file=sys.stderr)
        return 130
    except Exception as error:
        from harness.errors import UserError

        if not isinstance(error, UserError):
            raise
        print(f"error: {error}", file=sys.stderr)
        from harness.run import RunStoppedError

        return 1 if isinstance(error, RunStoppedError) else 2
