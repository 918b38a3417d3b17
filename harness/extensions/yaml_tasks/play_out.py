"""Episodes that `validate` plays, within a bound on their time; none of their turns is kept."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from harness.api import Action, Case, Move, Outcome, Protocol, Task, Turn
from harness.runtime.steps import Steps

Choose = Callable[[Turn], Action]


class LateError(Exception):
    """An episode takes long; it is not played to its end."""


class Clock:
    """A bound on CPU time.

    Args:
        seconds: from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.late = time.process_time() + seconds

    def watching(self, choose: Choose) -> Choose:
        """The function, which raises `LateError` once the time is over."""

        def until_late(turn: Turn) -> Action:
            if time.process_time() > self.late:
                raise LateError
            return choose(turn)

        return until_late


def play_out(protocol: Protocol, task: Task, case: Case, answer: Choose, seed: int = 0) -> Outcome:
    """The outcome of one episode that a function plays for every agent. Raises as `Steps`, and what `answer` does."""
    with Steps(protocol, task, case, random.Random(seed)) as game:
        while (batch := game.batch) is not None:
            game.send([Move(turn.agent, turn.name, answer(turn)) for turn in batch])
        return game.result()
