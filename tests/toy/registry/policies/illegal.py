"""Says what nobody may say."""

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class Illegal(Policy):
    """Says what nobody may say."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        return "z"
