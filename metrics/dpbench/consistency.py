from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class Consistency(Metric):
    """Share of messages with a stated intent whose own reply also acts on it (DPBench, Section 3.2).

    Message and action of the same reply are compared, every decision once. Messages in which no keyword stands are
    left out (`dpbench/intent_share` says how many are not); an episode without any intent has no number. The number
    depends much on the list: the published 28.9 % of sim5c is 18.5 % of the same messages with the other one.

    Attributes:
        keywords: "kw-0.1", the list behind the paper's figures; "kw-0.2", that of the release 0.2.1; or one's own:
            action → phrases. Actions are tried in the order GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT; a phrase counts
            wherever it stands, in any case.
    """

    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def measure(self, episode: Episode) -> float | None:
        stated = [(found, act) for message, act in decisions(episode) if (found := intent(message, self._phrases))]
        return sum(found == act for found, act in stated) / len(stated) if stated else None
