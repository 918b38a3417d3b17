"""SILO-Bench III-25 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin
from harness.extensions.networks.answers import ROWS, AnswerForm
from harness.extensions.networks.sharded import Items, ShardedTask

_CENTROIDS = 3


@plugin
class KMeansIteration(ShardedTask):
    """III-25 K-Means Iteration: the centroids after one step of Lloyd's algorithm, from three known ones.

    Points and centroids are uniform in the square from 0 to 100, with two decimals.
    """

    items: Items = 20

    problem = "III-25"
    level = "III"
    question = (
        "Perform one iteration of K-means clustering on points of the plane distributed among the agents. Each agent "
        "holds {items} points [x, y]. The current centroids, numbered from 0, are {centroids}. Every point belongs to "
        "the centroid at the smallest Euclidean distance; at equal distances to the one of lowest number. Each new "
        "centroid is the mean of x and the mean of y over all points, whoever holds them, that belong to the old one; "
        "a centroid to which no point belongs stays where it is. The answer is the list of the new centroids, in the "
        "same order. You may combine partial results rather than points."
    )
    form = AnswerForm("a JSON list of pairs [x, y], one for each centroid", ROWS.schema)
    digits = 2
    credit = "entries"

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[list[list[float]]], Facts]:
        """Uniform points."""

        def points(count: int) -> list[list[float]]:
            return [[rng.randint(0, 10_000) / 100, rng.randint(0, 10_000) / 100] for _ in range(count)]

        return [points(self.items) for _ in range(n)], {"centroids": points(_CENTROIDS)}

    def solve(self, shards: Sequence[Sequence[Sequence[float]]], public: Facts) -> list[list[float]]:
        """The new centroids, computed in whole hundredths, so that distances and sums are exact."""
        old = [(round(100 * x), round(100 * y)) for x, y in public["centroids"]]
        clusters: list[list[tuple[int, int]]] = [[] for _ in old]
        for point in chain.from_iterable(shards):
            x, y = (round(100 * value) for value in point)
            distances = [(x - a) ** 2 + (y - b) ** 2 for a, b in old]
            clusters[distances.index(min(distances))].append((x, y))
        means = [cluster or [centroid] for cluster, centroid in zip(clusters, old, strict=True)]
        return [[sum(axis) / (100 * len(axis)) for axis in zip(*cluster, strict=True)] for cluster in means]
