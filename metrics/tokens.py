from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Completion, Episode, Metric, Statistic, plugin

from ._numbers import calls, total


@plugin
class Tokens(Metric):
    """Tokens of one kind per episode, summed over all model calls, or of all episodes together.

    Per episode as in AgentsNet, Table 11; `over: run` adds up the episodes that a number stands for (DPBench,
    Table 5) instead of averaging them; episodes that failed, never ran or have no count are not in the sum.

    Missing where no call reported the kind: a policy's agent makes no calls, and not every server reports usage.
    `cached` input tokens are part of `input`, `reasoning` tokens part of `output`; `total` is input + output.
    """

    kind: Literal["input", "output", "total", "reasoning", "cached"] = "total"
    over: Literal["episode", "run"] = "episode"

    def measure(self, episode: Episode) -> float | None:
        counts = [count for call in calls(episode) if (count := self._count(call)) is not None]
        return float(sum(counts)) if counts else None

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)

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
                known = call.input_tokens is not None and call.output_tokens is not None
                return (call.input_tokens or 0) + (call.output_tokens or 0) if known else None
