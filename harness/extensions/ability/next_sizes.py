"""Which sizes to play next, so that the size at which half is solved is known with few episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .curve import Posterior, Threshold

FIRST: Final = 12
"""No interval is believed before so many episodes."""


def next_sizes(posterior: Posterior, left: Sequence[int], played: int) -> list[int]:
    """Indices of sizes for the next round, in the order in which they were chosen; none where no episode is left.

    Each has the least expected variance of the log size solved by half, if those before it turn out as expected. A
    round has a sixth as many episodes as were played, at least 3, so that several can be played at once.

    Args:
        posterior: what is known.
        left: how many episodes of each size are not played.
        played: how many episodes are.
    """
    room, chosen = list(left), list[int]()
    while len(chosen) < max(3, played // 6) and any(room):
        expected = posterior.expected_variances()
        level = min((i for i, count in enumerate(room) if count), key=lambda i: expected[i])
        room[level] -= 1
        chosen.append(level)
        posterior = posterior.expecting(level)
    return chosen


def is_known(threshold: Threshold, played: int, within: float) -> bool:
    """Whether a size is known well enough: the upper end of its interval is at most `within` times the lower one, or
    all of it lies beyond the sizes there are."""
    narrow = threshold.high <= within * threshold.low
    return played >= FIRST and (narrow or threshold.is_beyond_surely)
