from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._intent import ListName, intent, phrases
from ._table import decisions


@plugin
class Consistency(RatioMetric):
    """Share of messages with a stated intent whose own reply also acts on it (DPBench, Section 3.2).

    The share is taken over the decisions of all episodes together, as published (Table 4): an episode with more
    messages weighs more. Each decision compares the message and the action of one reply. Messages without a keyword
    are left out (`dpbench/intent_share` is the share of the others). An episode without any intent has no number.
    The share depends strongly on the list: the published 28.9 % of sim5c becomes 18.5 % with the other list.

    Attributes:
        keywords: "kw-0.1", the list behind the paper's results; "kw-0.2", the list of release 0.2.1; or your own:
            action → phrases. Actions are tried in the order GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT. A phrase counts
            anywhere in the message, in any case.
    """

    bounds = (0, 1)
    keywords: ListName | dict[str, list[str]] = "kw-0.1"

    def __post_init__(self) -> None:
        self._phrases = phrases(self.keywords)

    def parts(self, episode: Episode) -> Parts | None:
        """Return (decisions that act on the intent stated beside them, decisions beside a stated intent)."""
        stated = [
            (intended, act) for message, act in decisions(episode) if (intended := intent(message, self._phrases))
        ]
        return sum(intended == act for intended, act in stated), len(stated)
