from __future__ import annotations

import math

from harness.api import Episode, plugin

from ._inner import inner
from ._numbers import EpisodeTotal


@plugin
class InnerOutputTokens(EpisodeTotal):
    """Tokens of the answers to inner calls (`inner_calls`)."""

    bounds = (0, math.inf)

    def measure(self, episode: Episode) -> float | None:
        return inner(episode, "output_tokens")
