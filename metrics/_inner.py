"""Sums of what agents' programs asked their models, for metrics of inner calls."""

from __future__ import annotations

import math

from harness.api import Episode


def inner(episode: Episode, name: str) -> float | None:
    """The sum of a field of `InnerUsage` over all turns; None if no agent's program had a model to call, or none says
    it."""
    usages = [move.inner_calls for move in episode.moves() if move.inner_calls is not None]
    amounts = [float(amount) for usage in usages if (amount := getattr(usage, name)) is not None]
    return math.fsum(amounts) if amounts else None
