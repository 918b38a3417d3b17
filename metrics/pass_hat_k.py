from __future__ import annotations

from math import comb

from harness.api import plugin

from ._trials import Trials


@plugin
class PassHatK(Trials):
    """pass^k: the probability that all of k repeats of a case succeed (Yao et al., 2024, "τ-bench").

    The default is their estimator, C(c, k) / C(n, k) for c of n repeats, which is unbiased (as is `first`).

    Attributes:
        of: the grade, such as `solved` or `score`.
        k: how many repeats.
        convention: `unbiased`; `first`: by the first k repeats alone; `power_of_case`: (c / n)^k, too large on average;
            `power_of_mean`: the mean over all cases to the power k, too small where cases differ.
        at_least: the grade from which a repeat has succeeded.
    """

    def what(self, k: int) -> str:
        return f"all of {k} repeats succeed"

    def chosen(self, n: int, c: int) -> float:
        return comb(c, self.k) / comb(n, self.k)

    def rate(self, p: float) -> float:
        return float(p**self.k)

    def slope(self, p: float) -> float:
        return float(self.k * p ** (self.k - 1))
