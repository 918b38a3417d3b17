"""Wins that go round in a circle, which no rating can say: whether there are any, and α-rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

_EPSILON: Final = 0.01
"""How often the weaker of two takes over: the limit of strong selection, made connected."""


def shares_of_points(games: Iterable[Mapping[str, float]], names: Sequence[str]) -> tuple[Any, Any] | None:
    """[row, column]: the row's mean points against the column (a win is 1, a draw ½), and how many games these are;
    None if some two never met."""
    import numpy

    place = {name: i for i, name in enumerate(names)}
    points, counts = numpy.zeros((len(names),) * 2), numpy.zeros((len(names),) * 2)
    for standing in games:
        for one, own in standing.items():
            for other, theirs in standing.items():
                if one != other:
                    points[place[one], place[other]] += (1 + (own > theirs) - (own < theirs)) / 2
                    counts[place[one], place[other]] += 1
    apart = ~numpy.eye(len(names), dtype=bool)
    if not counts[apart].all():
        return None
    counts = numpy.where(apart, counts, 1)
    return numpy.where(apart, points / counts, 0.5), counts


def cycle(shares: Any, counts: Any) -> list[int] | None:
    """Three of whom each has significantly more than half of the points against the next (a normal test, p < 0.05);
    None if there are none."""
    beats = shares > 0.5 + 1.96 * 0.5 / counts**0.5
    for one in range(len(beats)):
        for other in beats[one].nonzero()[0]:
            for third in beats[other].nonzero()[0]:
                if beats[third, one]:
                    return [one, int(other), int(third)]
    return None


def alpha_rank(shares: Any) -> Any:
    """The share of time that each contestant is the one of a population that takes over from whom it beats.

    α-rank (Omidshafiei et al., 2019, "α-Rank: multi-agent evaluation by evolution") for one population, in the limit of
    strong selection.
    """
    import numpy

    count = len(shares)
    better = numpy.where(shares < shares.T, 1 - _EPSILON, numpy.where(numpy.isclose(shares.T, shares), 0.5, _EPSILON))
    step = better / (count - 1)
    numpy.fill_diagonal(step, 0.0)
    numpy.fill_diagonal(step, 1 - step.sum(axis=1))
    system = numpy.vstack([step.T - numpy.eye(count), numpy.ones(count)])
    return numpy.linalg.lstsq(system, numpy.append(numpy.zeros(count), 1.0), rcond=None)[0]
