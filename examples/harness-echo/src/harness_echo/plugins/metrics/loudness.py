"""The metric `loudness`."""

from __future__ import annotations

from harness.api import Episode, Metric, plugin


@plugin
class Loudness(Metric):
    """How loud an episode was, as the extension says afterwards."""

    measured_by = "echo"

    def measure(self, episode: Episode) -> float | None:
        """No number from the episode itself."""
        return None
