"""Which sizes to play next, so that the size at which half is solved is known with few episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from .curve import Posterior, Threshold

FIRST: Final = 12
"""No interval is believed before so many episodes."""
_ROUND: Final = 2
"""Episodes of the smallest round."""


def next_sizes(posterior: Posterior, left: Sequence[int], played: int, within: float) -> list[int]:
    """Indices of sizes for the next round, in the order in which they were chosen; none where no episode is left.

    Each is the size whose episode is expected to leave the least entropy in the size solved by half, as in QUEST+ (see
    `curve`), if the episodes before it turn out as expected. A round has a third as many episodes as are likely to be
    needed still, since intervals shrink with the square root of their number, but at most an eighth of those played
    and at least 2: so several can be played at once, and few are played beyond those that were needed.

    Args:
        posterior: what is known.
        left: how many episodes of each size are not played.
        played: how many episodes are.
        within: how many times its lower end the upper end of the interval may be in the end.
    """
    room, chosen = list(left), list[int]()
    size = posterior.threshold()
    needed = played * ((math.log(size.high / size.low) / math.log(within)) ** 2 - 1)
    count = max(_ROUND, int(min(played / 8, needed / 3)))
    while len(chosen) < count and any(room):
        expected = posterior.expected_entropies()
        level = min((i for i, number in enumerate(room) if number), key=lambda i: expected[i])
        room[level] -= 1
        chosen.append(level)
        posterior = posterior.expecting(level)
    return chosen


def is_known(threshold: Threshold, played: int, within: float) -> bool:
    """Whether a size is known well enough: the upper end of its interval is at most `within` times the lower one, or
    all of it lies beyond the sizes there are."""
    narrow = threshold.high <= within * threshold.low
    return played >= FIRST and (narrow or threshold.is_beyond_surely)
