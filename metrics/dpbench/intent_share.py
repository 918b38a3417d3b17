from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class IntentShare(Metric):
    """Share of the messages sent beside an action that state an intent, by the keywords of `dpbench/consistency`.

    Missing in an episode in which nobody said anything beside an action.
    """

    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def measure(self, episode: Episode) -> float | None:
        found = [intent(message, self._phrases) for message, _ in decisions(episode)]
        return sum(action is not None for action in found) / len(found) if found else None
