from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from .._numbers import fact
from .._phases import moves


@plugin
class TokenConsumption(Metric):
    """C: output tokens of all agents per round (SILO-Bench, Section 3.3, equation 4). Missing if none are reported.

    Attributes:
        over: divide by the "limit" R_max, which fits the paper's results, or by the rounds "played", as its text says.
        inputs: add the input tokens, as the released code does.
    """

    over: Literal["limit", "played"] = "limit"
    inputs: bool = False

    needs = ("rounds", "max_rounds")

    def measure(self, episode: Episode) -> float | None:
        rounds = fact(episode, "max_rounds" if self.over == "limit" else "rounds")
        tokens = [
            output + (move.used("input_tokens") or 0 if self.inputs else 0)
            for move in moves(episode, "final")
            if (output := move.used("output_tokens")) is not None
        ]
        return sum(tokens) / rounds if tokens and rounds else None
