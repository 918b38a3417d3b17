from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class IntentShare(RatioMetric):
    """Share of the messages sent with an action that state an intent.

    The share is taken over the messages of all episodes together. An episode without such a message has no number.

    Attributes:
        keywords: as in `dpbench/consistency`.
    """

    bounds = (0, 1)
    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def parts(self, episode: Episode) -> Parts | None:
        """Return (messages that state an intent, all messages)."""
        intents = [intent(message, self._phrases) for message, _ in decisions(episode)]
        return sum(action is not None for action in intents), len(intents)
