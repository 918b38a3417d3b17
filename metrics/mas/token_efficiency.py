from __future__ import annotations

from harness.api import Episode, Metric, plugin

from .._numbers import grade
from .._phases import Phase, total_tokens


@plugin
class TokenEfficiency(Metric):
    """TE: numbers of the input per token, times 100,000 (Section 3.4, equation 6): higher is better.

    Tokens are all input and output tokens, the history counted anew with every call; `phase: final` takes those of the
    last phase only, as the paper's tables seem to do, `all` those of both. Missing where no call reported tokens.
    """

    phase: Phase = "final"

    needs = ("elements", "final_from")

    def measure(self, episode: Episode) -> float | None:
        elements, tokens = grade(episode, "elements"), total_tokens(episode, self.phase)
        return elements / tokens * 1e5 if elements is not None and tokens else None
