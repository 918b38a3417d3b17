from __future__ import annotations

import math
from typing import Literal

from harness.api import Episode, plugin

from ._numbers import EpisodeTotal


@plugin
class Tokens(EpisodeTotal):
    """Tokens of one kind, summed over the model calls of an episode. Missing if no call reports them.

    Policies make no calls, and not every server reports usage. Where an agent's program calls a model of the run
    (`inner`), its calls count, those of turns that failed too.

    Attributes:
        kind: "cached" tokens are part of "input", "reasoning" tokens part of "output"; "total" is input + output.
        over: "episode" averages over episodes (AgentsNet, Table 11); "run" sums them (DPBench, Table 5). The sum leaves
            out episodes that failed, never ran or have no count.
    """

    bounds = (0, math.inf)
    kind: Literal["input", "output", "total", "reasoning", "cached"] = "total"

    def measure(self, episode: Episode) -> float | None:
        kinds = ("input_tokens", "output_tokens") if self.kind == "total" else (f"{self.kind}_tokens",)
        counts = [count for move in episode.moves() if (count := move.used(*kinds)) is not None]
        return float(sum(counts)) if counts else None
