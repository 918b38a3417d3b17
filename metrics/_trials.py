"""What several repeats of a case say together: whether all, or any, of k succeed."""

from __future__ import annotations

import math
import statistics
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from harness.api import CorpusMetric, Episode, Range, Statistic

from ._numbers import grade

Convention = Literal["unbiased", "first", "power_of_case", "power_of_mean"]
_WORDS: dict[Convention, str] = {
    "unbiased": "the mean over cases of the share of all choices of {k} repeats",
    "first": "the share of cases, by their first {k} repeats",
    "power_of_case": "the mean over cases of what each case's own success rate gives for {k} independent repeats",
    "power_of_mean": "what the success rate over all cases gives for {k} independent repeats, as if cases were alike",
}


@dataclass
class Trials(CorpusMetric):
    """A number of the repeats of each case together. `docs/reference/tables.md` compares the conventions.

    Cases with fewer than k repeats that have the grade are left out. `n` counts cases.

    Attributes:
        of: the grade, such as `solved` or `score`.
        k: how many repeats.
        convention: how n ≥ k repeats of which c succeed are made a number.
        at_least: the grade from which a repeat has succeeded.
    """

    bounds = (0, 1)
    has_interval = True

    of: str = "solved"
    k: Annotated[int, Range(ge=1, le=1000)] = 2
    convention: Convention = "unbiased"
    at_least: float = 1.0

    def __post_init__(self) -> None:
        self.needs, self.min_repeats = (self.of,), self.k
        how = _WORDS[self.convention].format(k=self.k)
        self.note = f"{self.what(self.k)}: {how} ({self.convention}); cases with fewer repeats are left out."

    @abstractmethod
    def what(self, k: int) -> str:
        """What it is, in words."""

    @abstractmethod
    def chosen(self, n: int, c: int) -> float:
        """The share of all choices of k of n repeats, of which c succeeded, that count."""

    @abstractmethod
    def rate(self, p: float) -> float:
        """The probability with k independent repeats of a success rate p."""

    @abstractmethod
    def slope(self, p: float) -> float:
        """The derivative of `rate`."""

    def measure(self, episode: Episode) -> list[Any] | None:
        """[the case in its condition, the repeat's number, whether it succeeded]."""
        value = grade(episode, self.of)
        case, _, repeat = episode.id.rpartition("/")
        return None if value is None else [case, int(repeat), value >= self.at_least]

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """The number of these repeats, with the standard error over cases."""
        cases: dict[str, list[tuple[int, bool]]] = {}
        for case, repeat, succeeded in numbers:
            cases.setdefault(case, []).append((repeat, bool(succeeded)))
        trials = [[succeeded for _, succeeded in sorted(own)] for own in cases.values() if len(own) >= self.k]
        if not trials:
            return Statistic(None, None, 0)
        shares = [sum(own) / len(own) for own in trials]
        if self.convention == "unbiased":
            values = [self.chosen(len(own), sum(own)) for own in trials]
        elif self.convention == "first":
            values = [self.chosen(self.k, sum(own[: self.k])) for own in trials]
        elif self.convention == "power_of_case":
            values = [self.rate(share) for share in shares]
        else:
            mean = statistics.fmean(shares)
            error = _error(shares)
            return Statistic(self.rate(mean), None if error is None else abs(self.slope(mean)) * error, len(trials))
        return Statistic(statistics.fmean(values), _error(values), len(trials))


def _error(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
