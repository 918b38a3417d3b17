"""Who has won a game, in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import cast

_MAX_SCORE = 1e300
_YOU = re.compile(r"You are [^.\n]{0,60}\.")


def winners(returns: object) -> str:
    """Who has got most. Where all returns add up to nothing, that is who has won.

    "" for a single player, and for what is no mapping from players to finite numbers.

    >>> winners({"Player-0": 1, "Player-1": -1}), winners({"Player-0": 3, "Player-1": 3})
    ('Player-0 has won.', 'All have got the same.')
    """
    if not isinstance(returns, Mapping) or len(returns) < 2 or not all(map(is_number, returns.values())):
        return ""
    most = max(returns.values())
    best = [str(agent) for agent, value in returns.items() if value == most]
    if len(best) == len(returns):
        return "All have got the same."
    won = math.isclose(math.fsum(returns.values()), 0, abs_tol=1e-6)
    return f"{_listed(best)} {'has' if len(best) == 1 else 'have'} {'won' if won else 'got most'}."


def alike(texts: Mapping[str, str]) -> dict[tuple[str, ...], str]:
    """Players → what they see, each text once, also where it differs in nothing but who the reader is."""
    readers: dict[str, list[str]] = {}
    for player, text in texts.items():
        if text.strip():
            readers.setdefault(_YOU.sub("", text), []).append(player)
    return {tuple(players): texts[players[0]] for players in readers.values()}


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def is_number(value: object) -> bool:
    """Whether it is a number whose sums and texts raise nothing: no NaN, nothing near the largest float."""
    return isinstance(value, Real) and not isinstance(value, bool) and -_MAX_SCORE < cast(float, value) < _MAX_SCORE
