from __future__ import annotations

from harness.api import Episode, Metric, plugin
from harness.errors import PluginError


@plugin
class Exit(Metric):
    """Share of episodes that ended in one of the given ways: the protocol's fact `exit`.

    With `other: true` those that came to it in any other way: name the regular ways and what remains is degenerate.
    """

    bounds = (0, 1)

    ways: list[str]
    other: bool = False

    needs = ("exit",)

    def __post_init__(self) -> None:
        if not self.ways:
            raise PluginError("ways is empty", hint="Name one at least: vote, tie, no candidate, …", at=("ways",))

    def measure(self, episode: Episode) -> float | None:
        exit_fact = episode.outcome.facts.get("exit") if episode.outcome else None
        return None if exit_fact is None else float((exit_fact in self.ways) != self.other)
