from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from .._numbers import total as summed
from ._phases import Phase, calls, facts, total_tokens


@plugin
class Communication(Metric):
    """CR: the share of all tokens that belongs to communication (Section 3.4, equation 7; Appendix C).

    Communication is the text of commands that send, receive, list, read, write or delete, what they return, and what a
    submission makes known by itself, each counted once; not the submitted list, and no reasoning. The protocol counts
    it in characters; they are converted by the characters a token of the run's own replies and reasoning has.
    `of: tokens` gives the tokens instead of their share, `over: run` with it those of all episodes together.
    `phase: final` looks at the last phase only. Missing where no call reported tokens.
    """

    of: Literal["share", "tokens"] = "share"
    phase: Phase = "all"
    over: Literal["episode", "run"] = "episode"

    needs = ("communication", "first", "final_from")

    def measure(self, episode: Episode) -> float | None:
        found = facts(episode)
        characters = found.get("communication")
        if characters is None:
            return None
        if self.phase == "all" and found.get("first"):
            characters += found["first"]["facts"]["communication"]
        written = [call for call in calls(episode, "all") if call.output_tokens]
        tokens = sum(call.output_tokens or 0 for call in written)
        length = sum(len(call.text) + len(call.reasoning or "") for call in written)
        total = total_tokens(episode, self.phase)
        if not tokens or not length or not total:
            return None
        communication: float = characters * tokens / length
        return communication if self.of == "tokens" else communication / total

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return summed(numbers) if self.over == "run" else super().aggregate(numbers)
