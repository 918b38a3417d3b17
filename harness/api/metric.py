"""The interfaces of metrics: one number per episode, and how numbers become a statistic."""

from __future__ import annotations

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from .episode import Episode
from .plugin import UNBOUNDED, Bounds
from .reply import Facts
from .task import Statistic


class Metric(ABC):
    """One number per episode, and how the numbers become a statistic.

    A share of the events of all episodes together is a `RatioMetric`; any other number of all episodes together (F1,
    BLEU, perplexity) is a `CorpusMetric`.
    """

    bounds: ClassVar[Bounds] = UNBOUNDED  # of its numbers, such as (0, 1) of a share; intervals stay within
    results_of_contestants: ClassVar[bool] = False  # whether its records name the players and their results
    measured_by: ClassVar[str | None] = None  # the extension that computes its numbers after all episodes
    min_repeats: int = 1  # how many repeats of a case it takes to have a number
    needs: tuple[str, ...] = ()  # names among the task's grades, the protocol's facts, or the world's
    note: str = ""  # printed below tables that show its numbers

    @abstractmethod
    def measure(self, episode: Episode) -> Any:
        """Return the episode's number (a float; for a `RatioMetric` its parts, for a `CorpusMetric` its record), or
        None if it has none."""

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return mean and standard error of the mean with ddof = 1 (AgentsNet, Appendix C, eq. 1 and 2)."""
        n = len(numbers)
        stderr = statistics.stdev(numbers) / n**0.5 if n > 1 else None
        return Statistic(statistics.fmean(numbers) if n else None, stderr, n)

    def recall(self, name: str, meta: Facts) -> None:
        """Read from the run.json of a finished run what it records about this metric, which the spec calls `name`."""


Parts = tuple[float, float]
"""Numerator and denominator of one episode: 3 of 7 decisions."""


class RatioMetric(Metric):
    """One ratio over all events of all episodes: the sum of numerators over the sum of denominators.

    An episode with more events weighs more. The standard error treats episodes, and not events, as independent
    observations (`linearize`).
    """

    @abstractmethod
    def parts(self, episode: Episode) -> Parts | None:
        """Return (numerator, denominator) of the episode; None, or a denominator of 0, if there is nothing to count."""

    def measure(self, episode: Episode) -> Parts | None:
        """Return the parts; None if there is nothing to count. Raises `ValueError` for a negative denominator."""
        found = self.parts(episode)
        if found is not None and found[1] < 0:
            raise ValueError(f"the denominator is {found[1]!r}, below 0")
        return found if found is not None and found[1] else None

    def aggregate(self, numbers: Sequence[Parts]) -> Statistic:
        """Return Σ numerators / Σ denominators with the standard error of the linearized ratio; `n` counts episodes."""
        return super().aggregate(linearize(numbers))


class CorpusMetric(Metric):
    """A number of all episodes together that is not a mean of theirs: F1, BLEU, a perplexity.

    Each episode gives a record: whatever JSON value `aggregate` needs from it, such as [reference, prediction]. An
    episode has no number of its own, so tests and intervals that need one leave the metric out.
    """

    has_interval: ClassVar[bool] = False  # whether n counts independent observations: tables make intervals of stderr

    @abstractmethod
    def measure(self, episode: Episode) -> Any:
        """Return the episode's record, a JSON value; None if it has none."""

    @abstractmethod
    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """Return the statistic of these records, in the order of the plan; there is at least one."""


def linearize(parts: Sequence[Parts]) -> list[float]:
    """Return values zᵢ = r + (aᵢ − r·bᵢ)/b̄, whose mean is r = Σa/Σb and whose standard error of the mean is that of r.

    So all statistics of means (intervals, t tests) work for ratios, with each episode as one observation (Cochran,
    Sampling Techniques, 3rd ed. 1977, Section 2.11: variance Σ(aᵢ − r·bᵢ)²/(n − 1)/n/b̄²). Empty if Σb is 0.
    """
    below = math.fsum(b for _, b in parts)
    if not below:
        return []
    ratio, mean = math.fsum(a for a, _ in parts) / below, below / len(parts)
    return [ratio + (a - ratio * b) / mean for a, b in parts]
