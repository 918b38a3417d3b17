"""Whether all agreed."""

from harness.api import Episode, Metric, plugin


@plugin
class Agreed(Metric):
    """1 if everybody named the same letter."""

    needs = ("agreed",)

    def measure(self, episode: Episode) -> float | None:
        return episode.grade.get("agreed")
