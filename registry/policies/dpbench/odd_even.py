"""The classical solution by asymmetry: neighbors start on different sides."""

from __future__ import annotations

import random

from harness.api import Turn, plugin

from ._philosopher import LEFT, RIGHT, Philosopher, in_order, number


@plugin
class OddEven(Philosopher):
    """Even numbers take the left fork first, odd ones the right one, and keep it. A group of these never deadlocks.

    In a deadlock all hold the fork on the same side, but P0 takes the left one first and P1 the right one.
    """

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take the fork by parity, then the other one; wait while the fork is taken."""
        return in_order(turn.observation, RIGHT if number(turn.context["name"]) % 2 else LEFT)
