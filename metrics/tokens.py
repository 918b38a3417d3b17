from __future__ import annotations

import math
from typing import Literal

from harness.api import Completion, Episode, plugin

from ._numbers import EpisodeTotal, calls


@plugin
class Tokens(EpisodeTotal):
    """Tokens of one kind, summed over the model calls of an episode. Missing if no call reports them.

    Policies make no calls, and not every server reports usage.

    Attributes:
        kind: "cached" tokens are part of "input", "reasoning" tokens part of "output"; "total" is input + output.
        over: "episode" averages over episodes (AgentsNet, Table 11); "run" sums them (DPBench, Table 5). The sum leaves
            out episodes that failed, never ran or have no count.
    """

    bounds = (0, math.inf)
    kind: Literal["input", "output", "total", "reasoning", "cached"] = "total"

    def measure(self, episode: Episode) -> float | None:
        counts = [count for call in calls(episode) if (count := self._count(call)) is not None]
        return float(sum(counts)) if counts else None

    def _count(self, call: Completion) -> int | None:
        match self.kind:
            case "input":
                return call.input_tokens
            case "output":
                return call.output_tokens
            case "reasoning":
                return call.reasoning_tokens
            case "cached":
                return call.cached_tokens
            case "total":
                reported = call.input_tokens is not None and call.output_tokens is not None
                return (call.input_tokens or 0) + (call.output_tokens or 0) if reported else None
