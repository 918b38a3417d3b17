from __future__ import annotations

from typing import Literal

from harness.api import Episode, Metric, plugin

from ._table import meals


@plugin
class Fairness(Metric):
    """1 minus the normalized Gini coefficient of the meals: 1 all eat equally, 0 one eats all (DPBench, eq. 3).

    Attributes:
        no_meals: an episode without a meal has no Gini coefficient. "one" counts it as fair, as the released code
            does, which raises the mean where deadlocks come early; "missing" gives it no number.
    """

    bounds = (0, 1)

    no_meals: Literal["one", "missing"] = "one"

    needs = ("eaten",)

    def measure(self, episode: Episode) -> float | None:
        eaten = meals(episode)
        if eaten is None or len(eaten) < 2:
            return None
        n, total = len(eaten), sum(eaten)
        if not total:
            return 1.0 if self.no_meals == "one" else None
        # G · N/(N − 1) as one fraction of integers: exactly 0 for equal meals, exactly 1 if one philosopher eats all.
        gini = 2 * sum(i * m for i, m in enumerate(sorted(eaten), 1)) - (n + 1) * total
        scale = (n - 1) * total
        return min(1.0, max(0.0, (scale - gini) / scale))
