"""The classical cure by asymmetry: neighbors begin on different sides."""

from __future__ import annotations

import random

from harness.api import Turn, plugin

from ._philosopher import LEFT, RIGHT, Philosopher, in_order, number


@plugin
class OddEven(Philosopher):
    """Even numbers take the left fork first, odd ones the right one, and keep it: a table of these never deadlocks.

    In a deadlock all hold the fork on the same side. P0's first is the left one and P1's the right one.
    """

    def act(self, turn: Turn, rng: random.Random) -> str:
        """The fork of its parity, then the other one; waits while the fork is taken."""
        return in_order(turn.observation, RIGHT if number(turn.context["name"]) % 2 else LEFT)
