"""Convergent reasoning, which makes models deadlock (DPBench, Section 5 and Figure 5)."""

from __future__ import annotations

import random

from harness.api import Turn, plugin

from ._philosopher import LEFT, Philosopher, in_order


@plugin
class AlwaysLeft(Philosopher):
    """Takes the left fork first, then the right one, and never releases one. A group of these deadlocks at once."""

    def act(self, turn: Turn, rng: random.Random) -> str:
        """Take the left fork, then the right one; wait while the fork is taken."""
        return in_order(turn.observation, LEFT)
