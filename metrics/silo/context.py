from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from harness.api import Completion, Episode, Metric, Range, Statistic, plugin

from .._phases import characters_per_token, moves
from ._run import facts


@plugin
class Context(Metric):
    """Tokens in an agent's context: the mean of an episode's agents, or one of them (SILO-Bench, Appendix D).

    The engine counts first prompts, contexts and replies. Data and communication are counted in characters and
    converted at the episode's own ratio of characters to tokens. Missing if the engine reports no tokens.

    Attributes:
        part: "base", the first prompt without the shard; "data", the shard; "communication", what the agent sent,
            wrote, received and read, each once; "utilization", all three divided by `window`; "peak", the agent's
            longest context divided by `window`.
        of: the "mean" over agents, or that of the agent with the least ("min") or the most ("max").
        window: the model's context window, in tokens.
        quantile: a quantile over episodes instead of the mean: 0.95 for the 95th percentile (Table 8), 0 for the
            smallest, 1 for the largest. Between two episodes it is interpolated linearly. So `of: min, quantile: 0` is
            the smallest agent of all episodes, and `of: max, quantile: 1` the largest (Tables 6 and 7).
    """

    part: Literal["base", "data", "communication", "utilization", "peak"] = "utilization"
    of: Literal["mean", "min", "max"] = "mean"
    window: Annotated[int, Range(ge=1)] = 128_000
    quantile: Annotated[float, Range(ge=0, le=1)] | None = None

    needs = ("sent", "received", "data_characters")

    def measure(self, episode: Episode) -> float | None:
        run_facts, data = facts(episode), episode.grade.get("data_characters")
        if run_facts is None or not data or (per_token := characters_per_token(episode)) is None:
            return None
        calls: dict[str, list[Completion]] = {}
        for move in moves(episode, "final"):
            for call in move.calls:
                if call.input_tokens is not None:
                    calls.setdefault(move.agent, []).append(call)
        usual = sum(data.values()) / len(data)  # of members of a panel, which all have the whole input
        parts = [
            self._tokens_of(run_facts, agent, agent_calls, data.get(agent, usual) / per_token, per_token)
            for agent, agent_calls in calls.items()
        ]
        if self.of == "mean":
            return statistics.fmean(parts)
        return min(parts) if self.of == "min" else max(parts)

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        if self.quantile is None or not numbers:
            return super().aggregate(numbers)
        ordered = sorted(numbers)
        at = self.quantile * (len(ordered) - 1)
        low, high = ordered[math.floor(at)], ordered[math.ceil(at)]
        return Statistic(low + (high - low) * (at % 1), None, len(ordered))

    def _tokens_of(
        self, run_facts: Mapping[str, Any], agent: str, calls: list[Completion], data: float, per_token: float
    ) -> float:
        first = calls[0].input_tokens or 0
        sent = sum(length for _, length in run_facts["sent"].get(agent, {}).values())
        communication: float = (sent + run_facts["received"][agent][1]) / per_token
        match self.part:
            case "base":
                return max(0.0, first - data)
            case "data":
                return min(data, float(first))
            case "communication":
                return communication
            case "peak":
                longest = max((call.input_tokens or 0) + (call.output_tokens or 0) for call in calls)
                return longest / self.window
            case "utilization":
                return (first + communication) / self.window
