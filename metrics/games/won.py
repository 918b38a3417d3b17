from __future__ import annotations

import statistics

from harness.api import Episode, Metric, plugin


@plugin
class Won(Metric):
    """The share of players that won (their return is above 0): of all, of a group, or of a secret role.

    Games without returns, and those in which no player is meant, have no number.

    Attributes:
        role: a secret role, in games that give some, or several: `[Villager, Doctor, Detective]`.
        group: only players of this group of the spec's `agents:`, such as one contestant.
    """

    role: str | list[str] | None = None
    group: str | None = None

    bounds = (0, 1)

    def __post_init__(self) -> None:
        self.needs = ("returns",) if self.role is None else ("returns", "secret_roles")

    def measure(self, episode: Episode) -> float | None:
        returns = episode.grade.get("returns")
        roles = episode.outcome.facts.get("secret_roles", {}) if episode.outcome else {}
        wanted = [self.role] if isinstance(self.role, str) else self.role
        won = [
            float(number > 0)
            for agent, number in (returns or {}).items()
            if (wanted is None or roles.get(agent) in wanted)
            and (self.group is None or episode.roles.get(agent, "default") == self.group)
        ]
        return statistics.fmean(won) if won else None
