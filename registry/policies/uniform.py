"""The floor of log-likelihoods."""

from __future__ import annotations

import math
import random

from harness.api import Action, Policy, Turn, plugin
from harness.engines.likelihoods import likelihoods_of


@plugin
class Uniform(Policy):
    """Knows nothing: every byte of a scored text is equally likely, 1/256. In other turns it does nothing.

    So options of equal length have equal shares, and a text has 8 bits per byte.
    """

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return log-likelihoods, or the no-op."""
        scored = likelihoods_of(turn.reply)
        if scored is None:
            return turn.reply.noop
        texts = [text.text.encode("utf-8", "surrogatepass") for text in scored.continuations]
        return [[-len(text) * math.log(256), False] for text in texts]
