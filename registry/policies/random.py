"""The random baseline."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class Random(Policy):
    """Chooses uniformly among the legal options. Without finite options it does nothing."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return one of the options, or the no-op."""
        return rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop
