"""Answers beside the right ones, as metrics of a whole data set take them."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from harness.api import Episode, Statistic, derive_seed

Pair = tuple[str, list[str]]
"""A prediction ("" if there is no answer) and the right answers."""


def grade_name(filter: str | None) -> str:
    """The grade with an episode's pairs, behind one of several filters."""
    return "pairs" if filter is None else f"pairs,{filter}"


def pairs(episode: Episode, filter: str | None) -> Any:
    """The episode's pairs, one for each answer that counts; None if it has none."""
    return episode.grade.get(grade_name(filter)) or None


def statistic(records: Sequence[Sequence[Any]], number: Callable[[list[Pair]], float], bootstrap: int) -> Statistic:
    """A number of all pairs, with a bootstrapped standard error.

    Args:
        records: the pairs of each episode; whole episodes are resampled (Efron, 1979).
        number: pairs → the number.
        bootstrap: how many draws; 0: no error.
    """

    def of(drawn: Sequence[Sequence[Any]]) -> float:
        return float(number([(str(prediction), list(right)) for record in drawn for prediction, right in record]))

    rng = random.Random(derive_seed("bootstrap", len(records), bootstrap))
    draws = [of(rng.choices(records, k=len(records))) for _ in range(bootstrap if len(records) > 1 else 0)]
    return Statistic(of(records), statistics.stdev(draws) if draws else None, len(records))
