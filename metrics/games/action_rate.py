from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._actions import actions_of, matches


@plugin
class ActionRate(RatioMetric):
    """Which share of a group's actions are these, such as Cooperate: of all that could be read.

    Attributes:
        actions: names of actions; `Play*` stands for all that begin so.
        group: a group of the spec's `agents:`; by default all players.
    """

    actions: list[str]
    group: str | None = None

    bounds = (0, 1)

    def parts(self, episode: Episode) -> Parts | None:
        read = actions_of(episode, self.group)
        return float(sum(matches(action, self.actions) for action in read)), float(len(read))
