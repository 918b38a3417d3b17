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
    """Draws which fork to take first. If the other fork is taken, it releases its fork and draws again.

    No philosopher waits with a fork in hand, so none is stuck forever. But DPBench counts a deadlock as soon as all
    hold one fork, which happens if all draw the same side and take it at once. Three philosophers without hesitation do
    so in one of four first timesteps.

    Attributes:
        hesitation: the probability to wait a turn although the first fork is free, which makes such collisions rarer.
    """

    hesitation: Annotated[float, Range(ge=0, lt=1)] = 0.5
    _first: str | None = field(init=False, default=None, repr=False)

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take the drawn fork, complete the pair, or release the fork."""
        observation, needed = turn.observation, missing(turn.observation)
        if not needed:
            return WAIT
        if len(needed) == 1:
            self._first = None  # the next draw is a new one
            return GRAB[needed[0]] if observation[f"{needed[0]}_available"] else RELEASE
        self._first = self._first or rng.choice(SIDES)
        free = observation[f"{self._first}_available"]
        return GRAB[self._first] if free and rng.random() >= self.hesitation else WAIT
