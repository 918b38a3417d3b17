from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.api import Episode, plugin
from harness.extensions.games.tournaments.results import ResultsMetric

from ._actions import turns_of


@plugin
class Results(ResultsMetric):
    """What each contestant of a game got, for ratings; as a number the share of games with one winner.

    Tables of kind `rating`, `cross_play` and `self_play` are made of it.
    A contestant is a group of the spec's `agents:`. A failed episode is not a game, and neither is one in which some
    agent has no return.

    Attributes:
        of: the grade that maps agents to their returns.
    """

    of: str = "returns"

    def __post_init__(self) -> None:
        self.needs = (self.of,)

    def measure(self, episode: Episode) -> list[list[Any]] | None:
        """[contestant, return, turns] of each seat; turns as `turns_of` counts them."""
        returns = episode.grade.get(self.of)
        if returns is None:
            return None
        if not isinstance(returns, Mapping):
            raise ValueError(f"grade {self.of!r} must map agents to numbers, found {returns!r:.80}")
        numbers = {agent: number for agent, number in returns.items() if _is_number(number)}
        if not numbers or len(numbers) < len(returns):
            return None
        turns = turns_of(episode)
        return [
            [episode.roles.get(agent, "default"), float(number), *([turns[agent]] if agent in turns else [])]
            for agent, number in numbers.items()
        ]


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)
