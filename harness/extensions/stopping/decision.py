"""Which of two sides is better, decided while both play: the confidence sequence of their paired difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from harness.tables import EpisodeScore

from .balanced_order import Blocks
from .confidence_sequences import Interval
from .covered_mean import Covered
from .estimates import Mean, MeanEstimate

_SIDES: Final = ("A", "B")


@dataclass(frozen=True)
class Decision:
    """What a comparison has come to.

    Attributes:
        interval: of B − A, at 95 % however often one looks; None before there is one.
        means: of A and of B.
        pairs: how many episodes both sides have with a number.
        blocks: after how many blocks of episodes.
        better: which side has the larger numbers: "A", "B", or None.
        is_equivalent: whether the difference lies within the margin.
    """

    interval: Interval | None
    means: tuple[float | None, float | None]
    pairs: int
    blocks: int
    better: str | None
    is_equivalent: bool

    @property
    def is_decided(self) -> bool:
        """Whether more episodes could only say the same more precisely."""
        return self.better is not None or self.is_equivalent


class PairedDifference:
    """B − A of a mean, block by block.

    Args:
        covered: which mean.
        blocks: the blocks of both sides.
        ids: id of an episode that counts → its condition.
        margin: differences up to this are none; None: none is.
    """

    def __init__(self, covered: Covered, blocks: Blocks, ids: Mapping[str, str], margin: float | None) -> None:
        low, high = covered.bounds
        width = high - low
        # Which difference there is, is not known before; that there is none is to be known within the margin.
        distances = (None,) if margin is None or margin >= width else (None, margin)
        self.covered, self.blocks, self.margin = covered, blocks, margin
        self._mean = covered.mean(ids)
        self._estimate = MeanEstimate(
            Mean(covered.title, self._mean.weights, (-width, width)), blocks.ids, blocks.scale, distances
        )
        self._sums = [0.0, 0.0, 0.0]
        self._pairs = 0
        self.lacks = False

    def add(self, a: Mapping[str, EpisodeScore], b: Mapping[str, EpisodeScore]) -> Decision:
        """Take the next block, in which the sides have these scores, by id."""
        differences: dict[str, float] = {}
        for name in self.blocks.ids[self._estimate.n]:
            one, other = (side[name].number(self.covered.metric) for side in (a, b))
            weight = self._mean.weights.get(name, 0.0)
            if one is None or other is None:
                self.lacks = self.lacks or (bool(weight) and self.covered.of_conditions)
            elif weight:
                differences[name] = other - one
                self._sums = [total + weight * x for total, x in zip(self._sums, (1.0, one, other), strict=True)]
                self._pairs += 1
        self._estimate.add(differences)
        return self.decision

    @property
    def decision(self) -> Decision:
        """What the blocks so far have come to."""
        interval = None if self.lacks else self._estimate.interval
        weight, one, other = self._sums
        means = (one / weight, other / weight) if weight else (None, None)
        better, within = None, False
        if interval is not None:
            better = "B" if interval[0] > 0 else "A" if interval[1] < 0 else None
            within = self.margin is not None and max(abs(end) for end in interval) <= self.margin
        return Decision(interval, means, self._pairs, self._estimate.n, better, within)

    @property
    def is_asymptotic(self) -> bool:
        """Whether the interval relies on the central limit theorem."""
        return self._estimate.method == "asymptotic"

    def in_words(self, names: Sequence[str], better: Literal["higher", "lower"] | None) -> str:
        """The result as one sentence, without its end. `better`: which numbers are; None: that is not known."""
        found = self.decision
        what = (
            f"{self.covered.title} of B − A is in {_ends(found.interval)}" if found.interval else "there is no interval"
        )
        sides = dict(zip(_SIDES, names, strict=True))
        within = f" lies within ±{self.margin:g}" if self.margin is not None else ""
        if found.is_equivalent and found.better is None:
            return f"{sides['A']} and {sides['B']} are equivalent: the difference{within} ({what})"
        if found.better is None:
            return f"not decided between {sides['A']} and {sides['B']}: {what}"
        other = next(side for side in _SIDES if side != found.better)
        ahead = other if better == "lower" else found.better
        says = "is better" if better else f"has the higher {self.covered.title}"
        small = f", by less than {self.margin:g}" if found.is_equivalent else ""
        return f"{ahead} ({sides[ahead]}) {says}{small}: {what}"


def _ends(interval: Interval) -> str:
    return f"[{interval[0]:.4g}, {interval[1]:.4g}]"
