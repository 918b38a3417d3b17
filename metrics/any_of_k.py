from __future__ import annotations

from math import comb

from harness.api import plugin

from ._trials import Trials


@plugin
class AnyOfK(Trials):
    """pass@k over repeats: the probability that one of k repeats of a case succeeds (Chen et al., 2021, equation 1).

    `pass_at_k` is the same of the samples of one episode, such as programs.

    Attributes:
        of: the grade, such as `solved` or `score`.
        k: how many repeats.
        convention: `unbiased`: 1 − C(n − c, k) / C(n, k) for c of n repeats; `first`: by the first k repeats alone;
            `power_of_case`: 1 − (1 − c / n)^k, too small on average; `power_of_mean`: the same of the mean over all
            cases, too large where cases differ.
        at_least: the grade from which a repeat has succeeded.
    """

    def what(self, k: int) -> str:
        return f"one of {k} repeats succeeds"

    def chosen(self, n: int, c: int) -> float:
        return 1 - comb(n - c, self.k) / comb(n, self.k)

    def rate(self, p: float) -> float:
        return float(1 - (1 - p) ** self.k)

    def slope(self, p: float) -> float:
        return float(self.k * (1 - p) ** (self.k - 1))
