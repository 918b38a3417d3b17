"""The floor of every finite choice."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class Random(Policy):
    """Chooses uniformly among the legal options; does nothing if they are not finitely many."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """One of the options, or the idle action."""
        return rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop
