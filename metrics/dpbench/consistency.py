from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class Consistency(RatioMetric):
    """Share of messages with a stated intent whose own reply also acts on it (DPBench, Section 3.2).

    One share of the decisions of all episodes together, as published (Table 4): an episode with more messages weighs
    more. Message and action of the same reply are compared, every decision once. Messages in which no keyword stands
    are left out (`dpbench/intent_share` says how many are not); an episode without any intent has no number. The share
    depends much on the list: the published 28.9 % of sim5c is 18.5 % of the same messages with the other one.

    Attributes:
        keywords: "kw-0.1", the list behind the paper's figures; "kw-0.2", that of the release 0.2.1; or one's own:
            action → phrases. Actions are tried in the order GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT; a phrase counts
            wherever it stands, in any case.
    """

    bounds = (0, 1)
    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def parts(self, episode: Episode) -> Parts | None:
        """Decisions that act on the intent stated beside them, of all that stand beside one."""
        stated = [
            (intended, act) for message, act in decisions(episode) if (intended := intent(message, self._phrases))
        ]
        return sum(intended == act for intended, act in stated), len(stated)
