from __future__ import annotations

from collections import Counter

from harness.api import Episode, Metric, plugin

from .._phases import Phase, moves


@plugin
class Rounds(Metric):
    """R: the most rounds that any agent took (MAS-Bench, Section 3.4, equation 5). A round is one reply.

    Attributes:
        phase: the "final" phase, as the paper's tables seem to do, or "all".
    """

    phase: Phase = "final"

    needs = ("final_from",)

    def measure(self, episode: Episode) -> float | None:
        turns_taken = Counter(move.agent for move in moves(episode, self.phase))
        return float(max(turns_taken.values())) if turns_taken else None
