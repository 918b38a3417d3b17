"""A floor of who_broke_it: whoever did something last."""

from __future__ import annotations

import random

from harness.api import Action, Policy, Turn, plugin


@plugin
class LastSpeaker(Policy):
    """Chooses the last of the options: in who_broke_it the agent of the last turn, and that turn."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the last option; nothing without options."""
        return turn.reply.options[-1] if turn.reply.options else turn.reply.noop
