"""`harness list tasks --openspiel`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.api.errors import DataError
from harness.api.printable import clean
from harness.config.project import find
from harness.evaluation.load_run import load_run


def openspiel(options: argparse.Namespace) -> int:
    """Print the games that the task `openspiel` takes: name, players, what is seen, rules, whether there is a ceiling;
    how many questions about its rules a model answered; why one cannot be played.

    Raises:
        DataError: a folder of `--understood` has no run of questions about games.
    """
    task: Any = find().load("tasks", "openspiel")
    lines = task.games(options.openspiel)
    answered = understood([Path(folder).expanduser() for folder in options.understood])
    width = max(len(line[0]) for line in lines)
    for name, players, sees, rules, ceiling, note in lines:
        right, asked = answered.get(name, (0, 0))
        mark = f"{f'{right} of {asked} right' if asked else '':<14}{'  fails' if right < asked else '       '}  "
        known = f"{players:<7}  {sees:<6}  {rules:<5}  {ceiling:<7}  {mark if options.understood else ''}{clean(note)}"
        print(f"{clean(name):<{width}}  {known}".rstrip())
    return 0


def understood(folders: list[Path]) -> dict[str, tuple[int, int]]:
    """Game → how many questions about its rules were answered right in these runs, and how many were asked.

    Raises:
        DataError: a folder has no run, or one of something else.
    """
    counts: dict[str, tuple[int, int]] = {}
    for folder in folders:
        scores = [score for score in load_run(folder).scores if score.error is None]
        if not any("game" in score.labels and "kind" in score.labels for score in scores):
            raise DataError(f"{folder} is not a run of games_understood", hint="harness eval --spec games_understood")
        for score in scores:
            right, asked = counts.get(str(score.labels.get("game")), (0, 0))
            counts[str(score.labels.get("game"))] = (right + (score.numbers.get("score") == 1), asked + 1)
    return counts
