from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class IntentShare(RatioMetric):
    """Share of the messages sent beside an action that state an intent, by the keywords of `dpbench/consistency`.

    One share of the messages of all episodes, as consistency is one of all decisions. An episode in which no message
    stands beside an action has none.
    """

    bounds = (0, 1)
    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def parts(self, episode: Episode) -> Parts | None:
        """Messages that state an intent, of all messages."""
        intents = [intent(message, self._phrases) for message, _ in decisions(episode)]
        return sum(action is not None for action in intents), len(intents)
