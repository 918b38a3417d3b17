"""The classical solution by convention: take forks in a global order (Dijkstra's resource hierarchy)."""

from __future__ import annotations

import random

from harness.api import Turn, plugin

from ._philosopher import Philosopher, in_order, lower_first


@plugin
class ResourceOrdering(Philosopher):
    """Takes the fork with the lower number first and keeps it until it has eaten. A group of these never deadlocks.

    Fork i is to the left of philosopher i, so only the last philosopher starts on the right. It can starve: in
    simultaneous order a contested fork goes to the lower number.
    """

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take the lower fork, then the higher one; wait while the fork is taken."""
        return in_order(turn.observation, lower_first(turn))
