from __future__ import annotations

import statistics
from collections.abc import Mapping

from harness.api import Episode, Metric, plugin


@plugin
class Won(Metric):
    """The share of players that won (their return is above 0): of all, of a group, or of a secret role.

    Games without returns, and those in which no player is meant, have no number.

    Attributes:
        role: a secret role, in games that give some, or several: `[Villager, Doctor, Detective]`.
        group: only players of this group of the spec's `agents:`, such as one contestant.
        unforced: whether a game counts as won only if none of those who lost it sent an invalid action: in text games a
            side that says nothing loses, so that a mute table has a winner.
    """

    role: str | list[str] | None = None
    group: str | None = None
    unforced: bool = False

    bounds = (0, 1)

    def __post_init__(self) -> None:
        self.needs = ("returns",) if self.role is None else ("returns", "secret_roles")

    def measure(self, episode: Episode) -> float | None:
        returns = episode.grade.get("returns")
        forced = self.unforced and _forced(episode, returns or {})
        roles = episode.outcome.facts.get("secret_roles", {}) if episode.outcome else {}
        wanted = [self.role] if isinstance(self.role, str) else self.role
        won = [
            float(number > 0 and not forced)
            for agent, number in (returns or {}).items()
            if (wanted is None or roles.get(agent) in wanted)
            and (self.group is None or episode.roles.get(agent, "default") == self.group)
        ]
        return statistics.fmean(won) if won else None


def _forced(episode: Episode, returns: Mapping[str, float]) -> bool:
    """Whether some player that did not win sent an invalid action."""
    invalid = (episode.outcome.facts.get("invalid") if episode.outcome else None) or {}
    return any(invalid.get(agent, 0) for agent, number in returns.items() if number <= 0)
