"""Tests of paired differences: exact, of the level they promise, and with intervals that agree with them."""

from __future__ import annotations

import itertools

import numpy
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from harness.extensions.analysis import paired
from harness.tables import EpisodeScore

Pvalue = float | None


def p(differences: list[float], cluster: int = 1) -> Pvalue:
    """Of differences of which so many in turn are a cluster."""
    return paired.sign_flip([[(i // cluster, x) for i, x in enumerate(differences)]])


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=2, max_size=60))
def test_of_zeros_and_ones_it_is_mcnemars_exact_test(differences: list[float]) -> None:
    above, below = differences.count(1.0), differences.count(-1.0)
    expected = scipy.stats.binomtest(above, above + below).pvalue if above + below else None
    assert p(differences) == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.floats(-5, 5).map(lambda x: round(x, 2)), min_size=2, max_size=9))
def test_every_sign_counts_once(differences: list[float]) -> None:
    if not any(differences):
        assert p(differences) is None
        return
    sums = [
        abs(sum(map(lambda s, x: s * x, signs, differences)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    assert p(differences) == pytest.approx(sum(x >= abs(sum(differences)) - 1e-9 for x in sums) / len(sums))


def test_it_is_scipys() -> None:
    differences = numpy.random.default_rng(4).normal(0.6, 1, 12)
    theirs = scipy.stats.permutation_test(
        (differences, numpy.zeros(12)), lambda x, y: (x - y).sum(), permutation_type="samples"
    )
    assert p(differences.tolist()) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("n", [30, 200, 6000])
def test_many_clusters_have_nearly_the_p_of_a_t_test(n: int) -> None:
    differences = numpy.random.default_rng(n).normal(2.4 / n**0.5, 1, n)
    assert p(differences.tolist()) == pytest.approx(scipy.stats.ttest_1samp(differences, 0).pvalue, rel=0.15)


@given(st.lists(st.floats(-1, 1), min_size=4, max_size=8), st.integers(2, 4))
@example([0.0, 0.0, -0.25, -9.033753721380585e-09], 2)
def test_identical_repeats_add_no_certainty(differences: list[float], repeats: int) -> None:
    again = [x for x in differences for _ in range(repeats)]
    once, more = p(differences), p(again, repeats)
    assert more == (None if once is None else pytest.approx(once))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("clusters", [4, 8, 20])
def test_the_level_holds_however_few_clusters_there_are(clusters: int) -> None:
    generator = numpy.random.default_rng(clusters)
    wrong = 0
    for _ in range(1000):
        sizes, rates = generator.integers(1, 6, clusters), generator.beta(2, 2, clusters)
        stratum = [
            (g, float(a) - float(b)) for g in range(clusters) for a, b in generator.random((sizes[g], 2)) < rates[g]
        ]
        found = paired.sign_flip([stratum])
        wrong += found is not None and found < 0.05
    assert wrong <= 65  # 5 % and two standard errors


def test_rounding_is_no_difference() -> None:
    noise = [paired.minus(0.1 + 0.2, 0.3)] * 8
    assert noise == [0.0] * 8 and p(noise) is None
    assert p([paired.minus(0.3, 0.1), paired.minus(0.4, 0.2)] * 4) == pytest.approx(2 / 2**8)
    assert paired.minus(1e9 + 1, 1e9) == 1


@pytest.mark.parametrize(
    ("differences", "expected"), [([], None), ([1.0], None), ([0.0, 0.0], None), ([1.0, 0.0], 1.0)]
)
def test_what_has_no_p(differences: list[float], expected: Pvalue) -> None:
    assert p(differences) == expected


def test_conditions_have_the_same_weight() -> None:
    strata = [[(("a", i), 1.0) for i in range(2)], [(("b", i), -0.25) for i in range(8)]]
    assert paired.paired(strata).difference == 0.375
    assert paired.paired([[x for stratum in strata for x in stratum]]).difference == 0.0


# ----------------------------------------------------------------------------------- the interval


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 1)), min_size=2, max_size=12), st.booleans())
def test_interval_and_test_agree_and_neither_leaves_what_is_possible(differences: list[float], signs: bool) -> None:
    numbers = [float(numpy.sign(x)) for x in differences] if signs else differences
    found = paired.paired([[*enumerate(numbers)]], 1.0, binary=signs)
    assert found.interval is not None and found.difference is not None
    low, high = found.interval
    assert -1 <= low <= found.difference + 1e-12 and found.difference - 1e-12 <= high <= 1
    if found.pvalue is not None and found.pvalue >= 0.05:
        assert low <= 0 <= high
    elif found.pvalue is not None:
        assert low >= 0 or high <= 0
    assert found.detectable is None or 0 < found.detectable <= 1


def pairs(n: int, repeats: int, first: float, second: float) -> list[tuple[list[EpisodeScore], list[EpisodeScore]]]:
    def side(value: float, case: int) -> list[EpisodeScore]:
        return [EpisodeScore(f"c/{case}/{i}", "c", {}, {"x": value}) for i in range(repeats)]

    return [(side(first, case), side(second, case)) for case in range(n)]


def test_a_constant_difference_has_an_interval_where_numbers_have_bounds() -> None:
    narrow, wide = (paired.test(pairs(n, 1, 0.0, 1.0), "x", (), (0, 1)).interval for n in (40, 6))
    assert narrow is not None and wide is not None
    assert 0 <= wide[0] < narrow[0] < 1 == narrow[1] == wide[1]
    assert paired.test(pairs(6, 1, 0.5, 0.75), "x", (), (0, 1)).interval is not None
    assert paired.test(pairs(6, 1, 5.0, 7.5), "x").interval is None


def test_repeats_that_are_no_pairs_count_with_their_mean() -> None:
    found = paired.test(pairs(7, 3, 0.25, 0.5), "x", (), (0, 1))
    assert (found.n, found.clusters, found.difference, found.pvalue) == (7, 7, 0.25, pytest.approx(2 / 2**7))


def test_five_clusters_can_detect_nothing() -> None:
    values = [0.5, 0.4, 0.6, 0.45, 0.55, 0.5]
    assert paired.paired([[*enumerate(values[:5])]], 1.0).detectable is None
    assert paired.paired([[*enumerate(values)]], 1.0).detectable == pytest.approx(
        paired.detectable(float(scipy.stats.sem(values)), 5)
    )


@pytest.mark.parametrize("n", [5, 10, 20])
def test_intervals_of_differences_of_shares_cover_what_they_promise(n: int) -> None:
    generator = numpy.random.default_rng(n)
    for first, second in ((0.6, 0.8), (0.9, 0.9), (0.05, 0.95)):
        covered = 0
        for _ in range(400):
            level = generator.random((n, 2))
            level[:, 1] = numpy.where(generator.random(n) < 0.5, level[:, 0], level[:, 1])
            differences = [float(y < second) - float(x < first) for x, y in level]
            interval = paired.paired([[*enumerate(differences)]], 1.0, binary=True).interval
            assert interval is not None
            covered += interval[0] <= second - first <= interval[1]
        assert covered >= 0.93 * 400


def test_a_small_condition_does_not_make_a_difference_certain() -> None:
    generator, covered, same = numpy.random.default_rng(4), 0, 0
    for _ in range(150):
        sides = [(generator.random(n) < 0.5, generator.random(n) < 0.7) for n in (2, 200)]
        drawn = [
            [((k, i), float(b) - float(a)) for i, (a, b) in enumerate(zip(*x, strict=True))]
            for k, x in enumerate(sides)
        ]
        found = paired.paired(drawn, 1.0, binary=True, margin=0.2)
        assert found.interval is not None and found.equivalence is not None
        covered += found.interval[0] <= 0.2 <= found.interval[1]
        same += found.equivalence.verdict == "same"
    assert covered >= 0.93 * 150 and same <= 0.08 * 150


@pytest.mark.slow
def test_the_detectable_difference_is_found_in_four_of_five_comparisons() -> None:
    n, generator = 30, numpy.random.default_rng(3)
    found = 0
    smallest = paired.detectable(1 / n**0.5, n - 1)
    for sample in generator.normal(smallest, 1, (2000, n)):
        found += scipy.stats.ttest_1samp(sample, 0).pvalue < 0.05
    assert found / 2000 == pytest.approx(0.8, abs=0.03)
    assert paired.detectable(None, 3) is None


@pytest.mark.parametrize("df", [1, 4, 200])
@pytest.mark.parametrize("power", [0.5, 0.9])
def test_the_difference_that_a_test_finds_with_a_power(df: int, power: float) -> None:
    t = scipy.stats.t(df)
    assert paired.detectable(0.3, df, power) == pytest.approx(0.3 * (t.ppf(0.975) + t.ppf(power)))
    assert paired.detectable(0.3, df) == pytest.approx(0.3 * (t.ppf(0.975) + t.ppf(0.8)))
    assert paired.detectable(None, df) is None
