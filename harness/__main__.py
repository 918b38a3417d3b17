"""`python -m harness`, and the `harness` command: importing this module takes no time worth noticing."""

from __future__ import annotations

import sys


def main() -> int:
    """Run one command; returns the exit code. Ctrl-C shows no traceback, also while modules are still imported."""
    try:
        from harness.cli import main as command

        code = command()
        background = sys.modules.get("harness.engines.background")  # loaded only where something may be left of it
        return code if background is None else int(background.leave(code))
    except KeyboardInterrupt:
        print("\nstopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
