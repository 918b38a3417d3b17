from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from .._numbers import total as summed
from .._phases import Phase, characters_per_token, facts, total_tokens


@plugin
class Communication(Metric):
    """CR: the share of all tokens that is communication (MAS-Bench, Section 3.4, equation 7; Appendix C).

    Communication is the text of commands that send, receive, list, read, write or delete, what they return, and what a
    submission announces by itself. Each counts once. The submitted list and reasoning do not count. The protocol counts
    characters; they are converted at the episode's own ratio of characters to tokens. Missing if no call reports
    tokens.

    Attributes:
        of: the "share", or the "tokens" themselves.
        phase: "all" phases, or the "final" one.
        over: "episode" averages over episodes; "run" sums them.
    """

    of: Literal["share", "tokens"] = "share"
    phase: Phase = "all"
    over: Literal["episode", "run"] = "episode"

    needs = ("communication", "first", "final_from")

    def measure(self, episode: Episode) -> float | None:
        run_facts = facts(episode)
        characters = run_facts.get("communication")
        if characters is None:
            return None
        if self.phase == "all" and run_facts.get("first"):
            characters += run_facts["first"]["facts"]["communication"]
        total, per_token = total_tokens(episode, self.phase), characters_per_token(episode)
        if not total or per_token is None:
            return None
        communication: float = characters / per_token
        return communication if self.of == "tokens" else communication / total

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return summed(numbers) if self.over == "run" else super().aggregate(numbers)
