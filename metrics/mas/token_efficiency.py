from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade
from .._phases import Phase, total_tokens


@plugin
class TokenEfficiency(Metric):
    """TE: numbers of the input per 100,000 tokens (MAS-Bench, Section 3.4, equation 6). Higher is better.

    Tokens are all input and output tokens; each call counts its whole history again. Missing if no call reports tokens.

    Attributes:
        phase: the tokens of the "final" phase, as the paper's tables seem to do, or of "all".
    """

    phase: Phase = "final"

    needs = ("elements", "final_from")

    def measure(self, episode: Episode) -> float | None:
        elements, tokens = grade(episode, "elements"), total_tokens(episode, self.phase)
        return elements / tokens * 1e5 if elements is not None and tokens else None
