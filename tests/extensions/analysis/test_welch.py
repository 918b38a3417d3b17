"""Welch's test against scipy, and the smallest difference that a test finds."""

from typing import Any

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.analysis import paired
from harness.extensions.analysis.welch import welch_test

samples = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)


def near(x: Any) -> Any:
    return pytest.approx(x, rel=1e-9, abs=1e-9)


def alone(*values: float) -> list[list[tuple[int, float]]]:
    """One stratum in which every number is a cluster."""
    return [list(enumerate(values))]


@given(samples, samples)
def test_welch_is_scipys(a: list[float], b: list[float]) -> None:
    ours = welch_test(alone(*a), alone(*b))
    if min(numpy.std(a), numpy.std(b)) < 1e-6:  # scipy warns there; ours is tested by hand below
        return
    theirs = scipy.stats.ttest_ind(a, b, equal_var=False)
    results = (ours.statistic, ours.pvalue, ours.df)
    assert results == pytest.approx((theirs.statistic, theirs.pvalue, theirs.df), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("a", "b"), [([1.0, 1.0], [0.0, 0.0]), ([1.0], [0.0, 1.0])])
def test_a_t_test_without_variance_has_no_pvalue(a: list[float], b: list[float]) -> None:
    result = welch_test(alone(*a), alone(*b))
    assert (result.statistic, result.pvalue) == (None, None)
    assert result.difference is not None
    assert welch_test([], alone(1.0)).difference is None


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e9])
def test_what_varies_by_rounding_only_has_no_pvalue(scale: float) -> None:
    b = [0.1 * scale, 0.2 * scale]
    flat = [(0.1 + 0.2) * scale, 0.3 * scale]
    assert welch_test(alone(*flat), alone(*[0.5 * scale] * 2)).pvalue is None
    assert welch_test(alone(*flat), alone(*b)).pvalue is not None


@pytest.mark.parametrize("df", [1, 4, 200])
@pytest.mark.parametrize("power", [0.5, 0.9])
def test_the_difference_that_a_test_finds_with_a_power(df: int, power: float) -> None:
    t = scipy.stats.t(df)
    assert paired.detectable(0.3, df, power) == near(0.3 * (t.ppf(0.975) + t.ppf(power)))
    assert paired.detectable(0.3, df) == near(0.3 * (t.ppf(0.975) + t.ppf(0.8)))
    assert paired.detectable(None, df) is None
