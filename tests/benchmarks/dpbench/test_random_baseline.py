"""The floor of DPBench: uniform random choice, against long-run values; the published runs are in test_profiles.py.

The long-run values are from 2,000 to 4,000 episodes each, with the released code and with a table of its own that
follows the paper. Throughput is DPBench's equation 2, fairness
one minus the normalized Gini coefficient, 1 for a table without meals; the limit is 30 timesteps.
"""

from functools import lru_cache
from math import sqrt
from statistics import fmean, stdev

import pytest

from tests.benchmarks.dpbench.dining_kit import dine, fairness, player, steps, table, throughput

RANDOM = player("random")
Key = tuple[str, int, str]
EPISODES = {3: 800, 5: 700, 10: 220}
REFERENCE = 2000
"""Episodes behind a long-run value, at least."""
LONG_RUN: dict[Key, tuple[float, float, float]] = {  # deadlock rate, throughput, fairness
    ("simultaneous", 3, "paper"): (0.716, 0.144, 0.544),
    ("simultaneous", 5, "paper"): (0.164, 0.289, 0.590),
    ("simultaneous", 10, "paper"): (0.001, 0.595, 0.628),
    ("simultaneous", 3, "dpbench-0.1"): (0.72, 0.138, 0.544),
    ("simultaneous", 5, "dpbench-0.1"): (0.165, 0.273, 0.578),
    ("simultaneous", 10, "dpbench-0.1"): (0.001, 0.564, 0.616),
    ("simultaneous", 3, "dpbench-0.2"): (0.714, 0.146, 0.547),
    ("simultaneous", 5, "dpbench-0.2"): (0.164, 0.292, 0.592),
    ("simultaneous", 10, "dpbench-0.2"): (0.001, 0.601, 0.630),
    ("sequential", 3, "paper"): (0.360, 0.051, 0.453),
    ("sequential", 5, "paper"): (0.029, 0.055, 0.279),
    ("sequential", 10, "paper"): (0.0, 0.046, 0.250),
}


@lru_cache
def figures(key: Key, part: int) -> tuple[list[float], list[float], list[float]]:
    """Per episode: deadlock, throughput, fairness."""
    order, n, rules = key
    task, protocol = table(n, rules), steps(order, ends="turn")
    played = [dine(protocol, task, RANDOM, seed) for seed in range(EPISODES[n] // part)]
    deadlocks = [float(episode.outcome.facts["end"] == "deadlock") for episode in played]
    return deadlocks, [throughput(episode) for episode in played], [fairness(episode) for episode in played]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", [5, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("key", LONG_RUN, ids=str)
def test_random_philosophers_in_the_long_run(key: Key, part: int) -> None:
    """With a part of the episodes the bounds are wider."""
    (rate, *means), (deadlocks, *others) = LONG_RUN[key], figures(key, part)
    n = len(deadlocks)
    both = (sum(deadlocks) + rate * REFERENCE) / (n + REFERENCE)  # of 0 deadlocks the deviation would be 0
    spread = [sqrt(both * (1 - both)), *map(stdev, others)]
    for value, numbers, deviation in zip((rate, *means), (deadlocks, *others), spread, strict=True):
        error = deviation * sqrt(1 / n + 1 / REFERENCE)
        assert abs(fmean(numbers) - value) <= 4 * error + 0.0005, (value, fmean(numbers))  # and half a last digit


def test_random_philosophers_keep_silent_so_that_talk_changes_nothing() -> None:
    for seed in range(20):
        with_talk, without = (dine(steps("simultaneous", talk), table(5), RANDOM, seed) for talk in (1, 0))
        assert {**with_talk.outcome.facts, "messages": 0} == without.outcome.facts
        assert with_talk.outcome.facts["messages"] == 0
