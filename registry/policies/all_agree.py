"""A deterministic baseline: all agents choose the same."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class AllAgree(Policy):
    """Chooses the first legal option, so agents with the same options agree. Without finite options it does nothing."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the first option, or the no-op."""
        return turn.reply.options[0] if turn.reply.options else turn.reply.noop
