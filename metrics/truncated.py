from __future__ import annotations

from harness.api import Episode, Parts, RatioMetric, plugin

from ._numbers import calls


@plugin
class Truncated(RatioMetric):
    """Share of model calls whose reply was cut off at its token limit (finish_reason `length`).

    The share is taken over the calls of all episodes together. Calls without a finish reason are left out.
    """

    bounds = (0, 1)

    def parts(self, episode: Episode) -> Parts | None:
        """Return (calls that ended at the limit, calls with a finish reason)."""
        reasons = [call.finish_reason for call in calls(episode) if call.finish_reason is not None]
        return reasons.count("length"), len(reasons)
