"""`harness list tasks --textarena`."""

from __future__ import annotations

import argparse

from harness.api.printable import clean

from . import catalog


def textarena(options: argparse.Namespace) -> int:
    """Print the environments that the task `textarena` takes: name, players, and why one cannot be played."""
    lines = catalog.listed(options.textarena)
    width = max(len(name) for name, _, _ in lines)
    for name, players, note in lines:
        print(f"{clean(name):<{width}}  {players:<7}  {clean(note)}".rstrip())
    return 0
