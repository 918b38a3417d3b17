from __future__ import annotations

from math import comb
from typing import Annotated

from harness.api import Episode, Metric, Range, plugin

from ._numbers import grade


@plugin
class PassAtK(Metric):
    """pass@k: the probability that one of k answers is right, from n answers (Chen et al., 2021, equation 1).

    Missing if there are fewer than k answers.
    """

    bounds = (0, 1)

    k: Annotated[int, Range(ge=1)] = 1

    needs = ("samples", "correct")

    def measure(self, episode: Episode) -> float | None:
        n, c = grade(episode, "samples"), grade(episode, "correct")
        if n is None or c is None or n < self.k:
            return None
        return 1 - comb(int(n - c), self.k) / comb(int(n), self.k)
