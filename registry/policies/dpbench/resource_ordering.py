"""The classical cure by convention: forks are taken in one order (Dijkstra's resource hierarchy)."""

from __future__ import annotations

import random

from harness.api import Turn, plugin

from ._philosopher import Philosopher, in_order, lower_first


@plugin
class ResourceOrdering(Philosopher):
    """Takes the fork with the lower number first and keeps it until it has eaten: a table of these never deadlocks.

    Fork i lies to the left of philosopher i, so only the last philosopher begins on the right. It can starve:
    in simultaneous order a fork that several want goes to the lower number.
    """

    def act(self, turn: Turn, rng: random.Random) -> str:
        """The lower fork, then the higher one; waits while the fork is taken."""
        return in_order(turn.observation, lower_first(turn))
