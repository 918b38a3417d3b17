"""Episodes that `validate` plays, within a bound on their time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from harness.api import Action, Case, Episode, Move, Turn
from harness.checks.trial_episodes import trial_episode
from harness.config.plan import Condition, Plan
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


def play_out(plan: Plan, condition: Condition, case: Case, answer: Choose, seed: int = 0) -> Episode:
    """One episode that a function plays for every agent, without grades. Raises as `Steps`, and what `answer` does."""
    batches: list[list[Move]] = []
    with Steps(condition.protocol, condition.task, case, random.Random(seed)) as game:
        while (batch := game.batch) is not None:
            batches.append([Move(turn.agent, turn.name, answer(turn)) for turn in batch])
            game.send(batches[-1])
        return trial_episode(plan, condition, case, batches, game.result())
