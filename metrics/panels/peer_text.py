from __future__ import annotations

from typing import Literal

from harness.api import Episode, plugin

from .._numbers import EpisodeTotal, calls, fact


@plugin
class PeerText(EpisodeTotal):
    """Communication: tokens, or characters, of other agents' texts that agents see.

    A text counts once for each agent that sees it. In DarkForest this is T_cross, the tokens of the evidence
    (Section 3.5). The tokenizer of the reading model counts. Missing if no engine counts tokens; a lower bound if only
    some do.

    Attributes:
        of: the unit.
    """

    of: Literal["tokens", "characters"] = "tokens"

    needs = ("peer_characters",)

    def measure(self, episode: Episode) -> float | None:
        characters = fact(episode, "peer_characters")
        if self.of == "characters" or not characters:
            return characters
        counts = [call.peer_tokens for call in calls(episode) if call.peer_tokens is not None]
        return float(sum(counts)) if counts else None
