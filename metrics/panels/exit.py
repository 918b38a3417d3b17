from __future__ import annotations

from harness.api import Episode, Metric, PluginError, plugin


@plugin
class Exit(Metric):
    """Share of episodes that ended in one of the named ways (the protocol's fact `exit`).

    Attributes:
        ways: values of `exit`, at least one.
        other: count the episodes that ended in any other way instead. List the regular ways to count degenerate ends.
    """

    bounds = (0, 1)

    ways: list[str]
    other: bool = False

    needs = ("exit",)

    def __post_init__(self) -> None:
        if not self.ways:
            raise PluginError("ways is empty", hint="Name at least one: vote, tie, no candidate, …", at=("ways",))

    def measure(self, episode: Episode) -> float | None:
        exit_fact = episode.outcome.facts.get("exit") if episode.outcome else None
        return None if exit_fact is None else float((exit_fact in self.ways) != self.other)
