from __future__ import annotations

from harness.api import Episode, Metric, plugin

from ._actions import actions_of, matches


@plugin
class Ever(Metric):
    """1 if a player chose one of these actions in the game, such as Agree, else 0.

    Attributes:
        actions: names of actions; `Play*` stands for all that begin so.
        group: a group of the spec's `agents:`; by default all players.
    """

    actions: list[str]
    group: str | None = None

    bounds = (0, 1)

    def measure(self, episode: Episode) -> float | None:
        return float(any(matches(action, self.actions) for action in actions_of(episode, self.group)))
