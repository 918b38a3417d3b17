from __future__ import annotations

from collections import Counter

from harness.api import Episode, Metric, plugin

from .._phases import Phase, moves


@plugin
class Rounds(Metric):
    """R: the rounds of the agent that took most (Section 3.4, equation 5); a round is one reply.

    `phase: final` counts those of the last phase only, as the paper's tables seem to do; `all` those of both.
    """

    phase: Phase = "final"

    needs = ("final_from",)

    def measure(self, episode: Episode) -> float | None:
        turns_taken = Counter(move.agent for move in moves(episode, self.phase))
        return float(max(turns_taken.values())) if turns_taken else None
