from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from harness.api import Episode, Metric, Statistic, plugin

from .._numbers import calls, fact, total


@plugin
class PeerText(Metric):
    """Communication: tokens, or characters, of others' texts that agents see.

    Each text counts once for every agent that is shown it, when it is shown first; in DarkForest that is T_cross, the
    tokens of the evidence (Section 3.5). `over: run` adds episodes up instead of averaging them.

    Tokens are counted by the tokenizer of the model that reads them. Missing where no engine could
    count them; where only some of the models can, it is a lower bound.
    """

    of: Literal["tokens", "characters"] = "tokens"
    over: Literal["episode", "run"] = "episode"

    needs = ("peer_characters",)

    def measure(self, episode: Episode) -> float | None:
        characters = fact(episode, "peer_characters")
        if self.of == "characters" or not characters:
            return characters
        counts = [call.peer_tokens for call in calls(episode) if call.peer_tokens is not None]
        return float(sum(counts)) if counts else None

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)
