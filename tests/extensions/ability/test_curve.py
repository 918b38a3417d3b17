"""The posterior of the size at which half is solved, on groups whose true size is known."""

import math

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.ability.curve import Observed, Posterior
from harness.extensions.ability.next_sizes import FIRST, is_known, next_sizes

SIZES = tuple(2.0 * 1.5**k for k in range(16))


def share(size: float, half: float, slope: float, floor: float = 0.0) -> float:
    return floor + (1 - floor) / (1 + (size / half) ** slope)


@pytest.mark.parametrize("floor", [0.0, 0.25])
def test_the_size_solved_by_half_is_found_whatever_chance_solves(floor: float) -> None:
    one = Posterior(SIZES, floor)
    for level, size in enumerate(SIZES):
        solved = 300 * share(size, 40, 4, floor)
        one.count(level, solved, 300 - solved)
    found = one.threshold()
    assert found.value == pytest.approx(40, rel=0.03) and found.low < 40 < found.high < 1.2 * found.low
    assert found.beyond is None


@pytest.mark.parametrize(("half", "beyond"), [(5000, "above"), (0.3, "below")])
def test_a_size_beyond_those_played_is_no_number(half: float, beyond: str) -> None:
    one = Posterior(SIZES)
    for level, size in enumerate(SIZES):
        solved = 30 * share(size, half, 6)
        one.count(level, solved, 30 - solved)
    found = one.threshold()
    assert found.beyond == beyond and found.is_beyond_surely and is_known(found, FIRST, 1.5)
    assert all(SIZES[0] <= x <= SIZES[-1] for x in found.within)


def test_intervals_cover_and_few_episodes_are_enough() -> None:
    """`benchmarks/run.py ability` has 1,000 groups; the seed is fixed."""
    generator, covered, played, errors = numpy.random.default_rng(3), 0, 0, []
    for _ in range(8):
        half = math.exp(generator.uniform(math.log(4), math.log(400)))
        shares = [share(size, half, 5) for size in SIZES]
        whole, one, count = Posterior(SIZES), Posterior(SIZES), 0
        for level, solved in enumerate(generator.binomial(20, shares)):
            whole.count(level, float(solved), float(20 - solved))
        wanted = whole.threshold().high / whole.threshold().low
        while not is_known(one.threshold(), count, wanted):
            for level in next_sizes(one, [100] * len(SIZES), count, wanted):
                solved = float(generator.random() < shares[level])
                one.count(level, solved, 1 - solved)
                count += 1
        found = one.threshold()
        covered += found.low <= half <= found.high
        errors.append(abs(found.value / half - 1))
        played += count
    assert covered >= 6 and sorted(errors)[4] < 0.1
    assert played < 0.28 * 8 * 20 * len(SIZES)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(0, 30), st.floats(1.01, 100))
def test_a_round_takes_only_episodes_that_are_left(left: list[int], played: int, within: float) -> None:
    chosen = next_sizes(Posterior((4.0, 8.0, 16.0, 32.0)), left, played, within)
    assert all(chosen.count(level) <= count for level, count in enumerate(left))
    assert min(sum(left), 2) <= len(chosen) <= min(sum(left), max(2, played // 8))


def test_repeats_of_a_case_that_agree_count_as_one_episode() -> None:
    generator = numpy.random.default_rng(0)
    cases = [(level, float(generator.random() < share(size, 40, 4))) for level, size in enumerate(SIZES) for _ in "ab"]
    once = Posterior.of(SIZES, 0.0, [Observed(level, x, i) for i, (level, x) in enumerate(cases)])
    ten = Posterior.of(SIZES, 0.0, [Observed(level, x, i) for i, (level, x) in enumerate(cases) for _ in range(10)])
    apart = [Observed(level, x, (i, k)) for i, (level, x) in enumerate(cases) for k in range(10)]
    widths = [one.threshold().high / one.threshold().low for one in (once, ten, Posterior.of(SIZES, 0.0, apart))]
    assert widths[1] == pytest.approx(widths[0], rel=0.15) and widths[2] < 0.7 * widths[1]


@pytest.mark.parametrize(("sizes", "floor"), [((4.0,), 0), ((0.0, 4.0), 0), ((8.0, 4.0), 0), ((4.0, 8.0), 1)])
def test_what_is_no_curve_is_refused(sizes: tuple[float, ...], floor: float) -> None:
    with pytest.raises(ValueError, match=r"sizes above 0, ascending|\[0, 1\)"):
        Posterior(sizes, floor)
