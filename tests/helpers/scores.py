"""What runs measured, as plain numbers."""

from collections.abc import Iterable
from typing import cast

from harness.tables.scores import EpisodeScore


def numbers(scores: Iterable[EpisodeScore], name: str) -> list[float]:
    """A metric of every episode, 0 where it has none."""
    return [cast(float, score.numbers[name] or 0) for score in scores]
