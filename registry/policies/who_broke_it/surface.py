"""A floor of who_broke_it: what formats give away."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin
from harness.extensions.blame.who_broke_it.surface import FORMATS, guess


@plugin
class Surface(Policy):
    """Names a turn whose form stands out: a number that begins with 0, a key or a word that no other turn has.

    It knows nothing of the task; of several such turns it names one at random.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the agent and the number of such a turn; nothing in another task."""
        return guess(turn, rng, FORMATS)
