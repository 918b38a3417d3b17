"""Says a random letter."""

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class Coin(Policy):
    """Says a random letter."""

    bias: float = 0.5

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        options = turn.reply.options or ("a",)
        return options[0] if rng.random() < self.bias else options[-1]
