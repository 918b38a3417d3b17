"""Statistics against hand computation, scipy and the paper's own equations."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Statistic
from harness.tables import stats

numbers = st.lists(st.floats(-1e6, 1e6), min_size=0, max_size=30)
samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)
rates = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def near(x: Any) -> Any:
    return pytest.approx(x, rel=1e-9, abs=1e-9)


def test_six_of_nine_is_the_papers_067_plus_minus_017() -> None:
    stat = stats.mean([1.0] * 6 + [0.0] * 3)
    assert (f"{stat.value:.2f}", f"{stat.stderr:.2f}", stat.n) == ("0.67", "0.17", 9)


@pytest.mark.parametrize(
    ("data", "expected"), [([], (None, None, 0)), ([3.0], (3.0, None, 1)), ([2, 2], (2.0, 0.0, 2))]
)
def test_mean_of_few_numbers(data: list[float], expected: tuple[object, ...]) -> None:
    stat = stats.mean(data)
    assert (stat.value, stat.stderr, stat.n) == expected


@given(numbers)
def test_std_is_numpys_own_over_n(data: list[float]) -> None:
    assert stats.std(data) == (near(numpy.std(data)) if data else None)


def test_std_by_hand() -> None:
    assert (stats.std([2, 4, 4, 4, 5, 5, 7, 9]), stats.std([3.0]), stats.std([])) == (2.0, 0.0, None)


@given(samples)
def test_mean_is_numpys_mean_and_scipys_sem(data: list[float]) -> None:
    stat = stats.mean(data)
    assert stat.value == near(numpy.mean(data))
    assert stat.stderr == near(numpy.std(data, ddof=1) / math.sqrt(len(data)))


@given(numbers, st.randoms())
def test_the_order_of_the_numbers_never_shows(data: list[float], random: object) -> None:
    shuffled = list(data)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert stats.mean(shuffled) == stats.mean(data)


def test_mean_of_conditions_by_hand() -> None:
    conditions = [Statistic(0.5, 0.3, 3), Statistic(1.0, 0.4, 5)]
    stat = stats.mean_of_conditions(conditions)
    assert stat == Statistic(0.75, near(0.25), 8)  # √(0.09 + 0.16) / 2


def test_the_haiku_row_of_table_2_follows_from_its_cells() -> None:
    cells = [(0.14, 0.04), (0.69, 0.05), (0.19, 0.03), (0.18, 0.03), (0.08, 0.03)]
    stat = stats.mean_of_conditions(Statistic(value, stderr, 27) for value, stderr in cells)
    assert (f"{stat.value:.2f}", f"{stat.stderr:.2f}") == ("0.26", "0.02")


def test_conditions_without_value_are_left_out_and_an_unknown_error_is_not_guessed() -> None:
    empty = Statistic(None, None, 0)
    assert stats.mean_of_conditions([empty]) == empty
    assert stats.mean_of_conditions([empty, Statistic(1.0, 0.2, 2)]) == Statistic(1.0, 0.2, 2)
    assert stats.mean_of_conditions([Statistic(0.0, None, 1), Statistic(1.0, 0.2, 2)]) == Statistic(0.5, None, 3)


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=6))
def test_with_equal_counts_both_means_agree_in_value(groups: list[list[float]]) -> None:
    pooled = stats.mean([x for group in groups for x in group])
    assert pooled.value == near(stats.mean_of_conditions(map(stats.mean, groups)).value)


# --------------------------------------------------------------------------------------- intervals


@given(rates, st.floats(0.5, 0.999))
def test_wilson_is_scipys(rate: tuple[int, int], level: float) -> None:
    ours = stats.wilson(*rate, level)
    theirs = scipy.stats.binomtest(*rate).proportion_ci(level, method="wilson")
    assert ours is not None
    low, high = ours
    assert ours == (near(theirs.low), near(theirs.high))
    assert 0 <= low <= rate[0] / rate[1] <= high <= 1


def test_wilson_says_something_where_the_standard_error_is_zero() -> None:
    interval = stats.wilson(9, 9)
    assert interval is not None
    assert (round(interval[0], 4), interval[1]) == (0.7009, 1.0)  # 9 / (9 + 1.96²)
    assert stats.wilson(0, 0) is None


@pytest.mark.parametrize("call", [(5, 4), (-1, 4)])
def test_wilson_refuses_what_is_no_rate(call: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="successes"):
        stats.wilson(*call)


def alone(*values: float) -> list[list[tuple[int, float]]]:
    """One stratum in which every number is a cluster."""
    return [list(enumerate(values))]


def test_unbounded_numbers_have_students_interval() -> None:
    half = 4.302652729911275 / math.sqrt(3)  # t(0.975, 2 degrees of freedom) × 1/√3
    assert stats.interval(alone(1.0, 2.0, 3.0)) == (near(2 - half), near(2 + half))
    assert stats.interval(alone(1.0, 2.0, 3.0), (0, math.inf)) == (0, near(2 + half))
    assert stats.interval(alone(1.0)) is None
    assert stats.interval(alone(2.0)) is None
    assert stats.interval([]) is None


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_shares_have_wilsons_interval(values: list[bool]) -> None:
    expected = stats.wilson(sum(values), len(values))
    assert stats.interval(alone(*map(float, values)), (0, 1)) == expected


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_intervals_of_bounded_means_stay_within_the_bounds_and_move_with_them(values: list[float]) -> None:
    interval = stats.interval(alone(*values), (0, 1))
    if interval is None:
        assert numpy.std(values) < 1e-9
        return
    assert 0 <= interval[0] <= numpy.mean(values) + 1e-12 and numpy.mean(values) - 1e-12 <= interval[1] <= 1
    moved = stats.interval(alone(*(10 + 5 * x for x in values)), (10, 15))
    if not all(x in (0, 1) for x in values):
        assert moved is None or moved == pytest.approx([10 + 5 * end for end in interval], rel=1e-6, abs=1e-6)


def test_a_bounded_mean_by_hand() -> None:
    # Mean 0.9, SE 0.1: 9 effective observations; Wilson's formula with t(0.975, 2) = 4.3027.
    low, high = stats.interval(alone(0.7, 1.0, 1.0), (0, 1))
    q, p, n = 4.302652729911275, 0.9, 0.9 * 0.1 / 0.1**2
    roots = numpy.roots([1 + q * q / n, -(2 * p + q * q / n), p * p])  # (p − x)² = q²·x(1 − x)/n
    assert (low, high) == (near(min(roots)), near(max(roots)))
    assert (round(low, 2), round(high, 2)) == (0.27, 1.0)  # a t interval would end at 1.33


def test_equal_numbers_have_no_interval_and_equal_shares_have_wilsons() -> None:
    assert stats.interval(alone(0.5, 0.5, 0.5), (0, 1)) is None
    assert stats.interval(alone(2.0, 2.0)) is None
    assert stats.interval(alone(1.0, 1.0, 1.0), (0, 1)) == stats.wilson(3, 3)
    assert stats.interval(alone(1.0, 1.0, 1.0)) is None


# ---------------------------------------------------------------------------------------- clusters


@given(st.integers(1, 4), st.data())
def test_clustered_errors_are_those_of_the_sandwich_estimator(size: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(-100, 100), min_size=2, max_size=30).filter(lambda xs: not len(xs) % size))
    stratum = [(i // size, x) for i, x in enumerate(values)]
    stat = stats.clustered([stratum])
    groups = sorted({cluster for cluster, _ in stratum})
    if len(groups) == 1:
        assert stat.stderr is None
        return
    # Ordinary least squares on a constant, the meat summed by cluster, G/(G − 1): Liang and Zeger (1986).
    y = numpy.array([x for _, x in stratum])
    design = numpy.array([[float(cluster == g) for g in groups] for cluster, _ in stratum])
    meat = float(((design.T @ (y - y.mean())) ** 2).sum())
    expected = math.sqrt(len(groups) / (len(groups) - 1) * meat) / len(y)
    assert (stat.value, stat.stderr) == (pytest.approx(y.mean(), abs=1e-9), pytest.approx(expected, rel=1e-6, abs=1e-9))
    assert (stat.n, stat.clusters, stat.df) == (len(y), len(groups), len(groups) - 1)


@given(samples)
def test_one_observation_a_cluster_is_the_plain_standard_error(data: list[float]) -> None:
    assert stats.clustered(alone(*data)).stderr == near(stats.mean(data).stderr)


@given(st.integers(2, 4), st.data())
def test_conditions_of_one_size_give_errors_in_quadrature(size: int, data: st.DataObject) -> None:
    condition = st.lists(st.floats(0, 1), min_size=size, max_size=size)
    groups = data.draw(st.lists(condition, min_size=1, max_size=5))
    strata = [[((i, j), x) for j, x in enumerate(group)] for i, group in enumerate(groups)]
    plain, ours = stats.mean_of_conditions(map(stats.mean, groups)), stats.clustered(strata)
    assert (ours.value, ours.stderr) == (near(plain.value), near(plain.stderr))


@given(samples, st.integers(2, 4))
def test_repeating_every_number_makes_no_estimate_surer(data: list[float], times: int) -> None:
    repeated = [(i, x) for i, x in enumerate(data) for _ in range(times)]
    assert stats.clustered([repeated]).stderr == pytest.approx(stats.mean(data).stderr, rel=1e-6, abs=1e-9)


def test_a_cluster_that_spans_conditions_adds_up_before_it_is_squared() -> None:
    same = [[("a", 0.0), ("b", 1.0)], [("a", 0.0), ("b", 1.0)]]
    opposed = [[("a", 0.0), ("b", 1.0)], [("a", 1.0), ("b", 0.0)]]
    assert stats.clustered(same).stderr == near(stats.mean([0.0, 1.0]).stderr)
    assert stats.clustered(opposed).stderr == near(0)


def test_clustered_shares_are_less_sure_than_as_many_independent_ones() -> None:
    values = [1.0] * 12 + [0.0] * 6
    low, high = stats.wilson(12, 18)
    clustered = stats.interval([[(i // 3, x) for i, x in enumerate(values)]], (0, 1))
    assert 0 <= clustered[0] < low < high < clustered[1] <= 1
    agreeing = stats.interval([[(i % 2, x) for i, x in enumerate([1.0, 1.0, 0.0, 0.0] * 3)]], (0, 1))
    assert agreeing[0] < stats.wilson(6, 12)[0]  # two clusters that agree are no proof
    assert stats.interval([[("one", 1.0), ("one", 0.0)]], (0, 1)) is None


# ------------------------------------------------------------------------------------------- tests


def test_holm_by_hand() -> None:
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == [near(0.03), near(0.06), near(0.06), near(0.02)]
    assert stats.holm([]) == []
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        stats.holm([1.2])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_raw_and_bonferroni(pvalues: list[float]) -> None:
    adjusted = stats.holm(pvalues)
    for p, q in zip(pvalues, adjusted, strict=True):
        assert p <= q <= min(1.0, max(len(pvalues) * r for r in pvalues))
    ranked = [q for _, q in sorted(zip(pvalues, adjusted, strict=True))]
    assert ranked == sorted(ranked)


def test_intervals_of_rates_end_at_0_and_1_exactly() -> None:
    for n in range(1, 200):
        assert stats.wilson(0, n)[0] == 0.0 and stats.wilson(n, n)[1] == 1.0
        assert all(0 <= end <= 1 for k in range(n + 1) for end in stats.wilson(k, n, 0.999))


def test_what_is_no_p_value_is_refused() -> None:
    for wrong in (-0.01, 1.01, math.nan):
        with pytest.raises(ValueError, match=r"^p-values lie in \[0, 1\]$"):
            stats.holm([0.2, wrong])


@pytest.mark.parametrize(
    ("sizes", "df"),
    [
        ([("ab", "cd")], 1),  # two clusters of two observations
        ([("a", "b", "c"), ("d", "e", "f")], 4),  # of each stratum one is spent on its mean
        ([("a", "b", "c"), ("a", "b", "c")], 2),  # the same clusters in both: no more than there are, less one
        ([("a",), ("b",)], 1),  # never below one
    ],
)
def test_degrees_of_freedom_are_those_of_clusters(sizes: list[tuple[str, ...]], df: int) -> None:
    strata = [[(cluster[0], float(i)) for i, cluster in enumerate(stratum) for _ in cluster] for stratum in sizes]
    found = stats.clustered(strata)
    assert (found.df, found.n) == (df, sum(map(len, strata)))
    assert found.clusters == len({cluster for stratum in strata for cluster, _ in stratum})


def test_without_observations_there_is_nothing() -> None:
    assert stats.clustered([[], []]) == stats.ClusteredMean(None, None, 0, 0, 0)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_clusters_that_are_all_right_or_all_wrong_count_as_one_observation_each(share: float) -> None:
    strata = [[(cluster, share) for cluster in "abcde" for _ in range(3)]]
    assert stats.interval(strata, (0, 1)) == stats.wilson(round(share) * 5, 5)
    unequal = [*strata[0], *[("a", share)] * 12]  # one cluster has 15 of 27: as 3 of equal weight
    size, square = 27 * 27 / (15**2 + 4 * 3**2), 1.959963984540054**2
    low, high = stats.interval([unequal], (0, 1))
    assert (low, high) == (near(share * size / (size + square)), near((share * size + square) / (size + square)))


def test_numbers_with_one_bound_have_students_interval() -> None:
    sample = [[(i, float(x)) for i, x in enumerate((1, 5, 6))]]
    low, high = stats.interval(sample, (-math.inf, 7))
    assert high == 7 and low < 1


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=9), st.integers(1, 3))
def test_conditions_of_one_case_each_are_one_sample(values: list[float], repeats: int) -> None:
    strata = [[(i, x)] * repeats for i, x in enumerate(values)]
    pooled = [pair for stratum in strata for pair in stratum]
    assert stats.clustered(strata).stderr == pytest.approx(stats.clustered([pooled]).stderr, abs=1e-9)
    assert stats.interval(strata, (0, 1)) == pytest.approx(stats.interval([pooled], (0, 1)), abs=1e-6)


def test_conditions_of_one_size_that_share_clusters_keep_the_clustered_error() -> None:
    generator = numpy.random.default_rng(5)
    groups = [[[((g, i), float(x)) for i, x in enumerate(generator.random(3))] for _ in range(5)] for g in range(9)]
    found = stats.clustered([stratum for group in groups for stratum in group])
    # Nine groups of five conditions with the same three cases: a case's mean over the five is one observation.
    means = [statistics.fmean(s[i][1] for s in group) for group in groups for i in range(3)]
    plain = stats.mean_of_conditions(stats.mean(means[k : k + 3]) for k in range(0, 27, 3))
    assert (found.value, found.stderr) == (near(plain.value), near(plain.stderr))


def _drawn(sizes: Sequence[int], draw: Callable[[int], Any]) -> list[list[tuple[Hashable, float]]]:
    """A stratum for each size, each with clusters of its own."""
    return [[((k, i), float(x)) for i, x in enumerate(draw(n))] for k, n in enumerate(sizes)]


UNEQUAL = [[2, 30, 100], [3, 100], [1, 40], [5, 100], [5, 30, 100], [10, 100]]


@pytest.mark.parametrize("sizes", UNEQUAL)
def test_intervals_cover_means_of_conditions_of_unequal_sizes(sizes: list[int]) -> None:
    generator = numpy.random.default_rng(1)
    shares = [stats.interval(_drawn(sizes, lambda n: generator.random(n) < 0.7), (0, 1)) for _ in range(150)]
    assert sum(low <= 0.7 <= high for low, high in shares) >= 0.9 * 150
    amounts = [stats.interval(_drawn(sizes, generator.standard_normal)) for _ in range(150)]
    assert sum(low <= 0 <= high for low, high in amounts) >= 0.9 * 150


@pytest.mark.parametrize("sizes", [[1, 1, 1, 1, 1, 50], [5] * 8 + [100], [1] * 20 + [20] * 2])
def test_intervals_cover_a_mean_where_one_cluster_outweighs_the_others(sizes: list[int]) -> None:
    generator, hits = numpy.random.default_rng(3), 0
    for _ in range(150):
        chances = generator.beta(1.6, 0.7, len(sizes))
        drawn = [
            (i, float(generator.random() < p))
            for i, (n, p) in enumerate(zip(sizes, chances, strict=True))
            for _ in range(n)
        ]
        low, high = stats.interval([drawn], (0, 1))
        hits += low <= 1.6 / 2.3 <= high
    assert hits >= 0.9 * 150


def test_a_small_condition_that_happens_to_agree_is_not_certain() -> None:
    large = [float(i % 10 < 7) for i in range(100)]
    agreeing = _drawn([2, 100], lambda n: [1.0, 1.0] if n == 2 else large)
    found = stats.clustered(agreeing)
    alone = numpy.var(large, ddof=1)
    # The small condition: 1 degree of freedom with variance 0, 3 with that of the large one; this has 99 and 3.
    assert found.stderr == pytest.approx(math.sqrt(alone * (0.75 / 2 + 1 / 100)) / 2, rel=0.02)
    assert found.borrowed and found.df == 100 and found.effective_n == near(4 / (1 / 2 + 1 / 100))
    equal = stats.clustered([agreeing[0], agreeing[0]])
    assert (equal.stderr, equal.borrowed) == (0, False)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.tuples(st.floats(-5, 0), st.floats(1, 5)))
def test_no_interval_leaves_the_bounds_and_each_contains_its_mean(
    values: list[float], bounds: tuple[float, float]
) -> None:
    for strata in (alone(*values), [[(i % 3, x)] for i, x in enumerate(values)]):
        if (found := stats.interval_by(strata, bounds)) is not None:
            (low, high), method = found
            assert bounds[0] <= low <= statistics.fmean(values) + 1e-9 and high <= bounds[1]
            assert high >= statistics.fmean(values) - 1e-9 and method in ("wilson", "effective")
