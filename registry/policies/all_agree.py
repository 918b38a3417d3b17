"""A deterministic floor: all agents say the same."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class AllAgree(Policy):
    """Takes the first legal option, so that all agents with the same options agree; otherwise does nothing."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """The first option, or the idle action."""
        return turn.reply.options[0] if turn.reply.options else turn.reply.noop
