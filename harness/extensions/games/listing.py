"""`harness list tasks --openspiel`."""

from __future__ import annotations

import argparse
from typing import Any

from harness.config.project import find
from harness.printable import clean


def openspiel(options: argparse.Namespace) -> int:
    """Print the games that the task `openspiel` takes: name, players, what is seen, rules, whether there is a ceiling;
    why one cannot be played.
    """
    task: Any = find().load("tasks", "openspiel")
    lines = task.games(options.openspiel)
    width = max(len(line[0]) for line in lines)
    for name, players, sees, rules, ceiling, note in lines:
        print(f"{clean(name):<{width}}  {players:<7}  {sees:<6}  {rules:<5}  {ceiling:<7}  {clean(note)}".rstrip())
    return 0
