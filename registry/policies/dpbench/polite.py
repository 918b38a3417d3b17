"""Courteous and random philosophers (Lehmann & Rabin, 1981)."""

from __future__ import annotations

import random
from dataclasses import field
from typing import Annotated

from harness.api import Range, Turn, plugin

from ...tasks.dpbench._table import RELEASE, WAIT
from ._philosopher import GRAB, SIDES, Philosopher, missing


@plugin
class Polite(Philosopher):
    """Draws which fork to take first; if the other fork is taken, it releases its fork and draws again.

    None waits with a fork in its hand, so none is stuck for ever. Yet DPBench calls it a deadlock as soon as
    all hold one fork: all may draw the same side and reach for it at once, with 3 philosophers and no
    hesitation in one of four first timesteps.

    Attributes:
        hesitation: how likely it is to wait a turn, each time its first fork is free; makes it rarer that all
            reaches out at once.
    """

    hesitation: Annotated[float, Range(ge=0, lt=1)] = 0.5
    _first: str | None = field(init=False, default=None, repr=False)

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Reach for the drawn fork, complete the pair, or give way."""
        observation, wanted = turn.observation, missing(turn.observation)
        if not wanted:
            return WAIT
        if len(wanted) == 1:
            self._first = None  # the next draw is a new one
            return GRAB[wanted[0]] if observation[f"{wanted[0]}_available"] else RELEASE
        self._first = self._first or rng.choice(SIDES)
        free = observation[f"{self._first}_available"]
        return GRAB[self._first] if free and rng.random() >= self.hesitation else WAIT
