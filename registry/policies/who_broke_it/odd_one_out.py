"""A floor of who_broke_it: whoever differs."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin
from harness.extensions.blame.who_broke_it.surface import ODD, guess


@plugin
class OddOneOut(Policy):
    """Names a turn in which an agent differs from all others, or from what it says before and after.

    It knows nothing of the task; of several such turns it names one at random.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the agent and the number of such a turn; nothing in another task."""
        return guess(turn, rng, ODD)
