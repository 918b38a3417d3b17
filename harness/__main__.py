"""`python -m harness`, and the `harness` command: importing this module takes no time worth noticing."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run one command; returns the exit code. Ctrl-C shows no traceback, even while modules are still imported."""
    try:
        from harness.cli import main as command

        code = command()
        gate = sys.modules.get("harness.engines.gate")  # loaded only where engines were
        if gate is not None and gate.given_up:
            _end(code)
        return code
    except KeyboardInterrupt:
        print("\nstopped.", file=sys.stderr)
        return 130


def _end(code: int) -> None:
    """End the process here and now."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
