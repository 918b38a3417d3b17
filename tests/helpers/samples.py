"""What runs by default of tests with many parameters or many examples; the group `slow` runs all of it.

`@pytest.mark.sampled` keeps of a test's parameters as few combinations as have each value of each parameter once,
`@pytest.mark.sampled(5)` keeps five, evenly spread. The others get the marker `slow`. Property tests draw `QUICK`
examples by default, the same ones each time, and `LONG` others in the group `slow`, in which all of them run again,
or with HYPOTHESIS_PROFILE=long; `examples(n)` is for those that want more or fewer.

`SLOW_TESTS=2/4` leaves the second fourth of the slow tests, in every group.
"""

from __future__ import annotations

import gc
import os
import zlib

import hypothesis
import pytest

QUICK, LONG = 12, 100
FEWEST = 4
"""A property test draws no fewer examples."""


def examples(most: int, profile: hypothesis.settings | None = None) -> int:
    """`most` in the long profile, as much less in the quick one as a property test has that says nothing."""
    share = (profile or hypothesis.settings()).max_examples / LONG
    return min(most, max(FEWEST, round(most * share)))


class Samples:
    """A plugin that loads the profile of property tests and marks what is left out by default."""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line(
            "markers", "sampled(n): of its parameters only some run by default (tests/helpers/samples.py)"
        )
        for name, count in (("quick", QUICK), ("long", LONG)):
            hypothesis.settings.register_profile(  # a busy machine is no bug
                name,
                deadline=None,
                max_examples=count,
                derandomize=name == "quick",  # the default run finds what it found before; the long one looks further
                suppress_health_check=[hypothesis.HealthCheck.too_slow],
            )
        gc.disable()  # collecting tests makes many objects and hardly any garbage
        usual = "long" if config.option.markexpr == "slow" else "quick"
        hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", usual))

    def pytest_collection_finish(self) -> None:
        """What was collected stays: no garbage collection need look at it, nor every 700 new objects at the others."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark as slow what is not sampled, and in the slow group every property test."""
        grids: dict[tuple[str, str], list[pytest.Function]] = {}
        for item in items:
            if not isinstance(item, pytest.Function):
                continue
            if config.option.markexpr == "slow" and getattr(item.obj, "is_hypothesis_test", False):
                item.add_marker("slow")
            if item.get_closest_marker("sampled") and item.get_closest_marker("slow") is None:
                grids.setdefault((item.path.as_posix(), item.originalname), []).append(item)
        for grid in grids.values():
            mark = grid[0].get_closest_marker("sampled")
            assert mark is not None
            kept = spread(grid, *mark.args) if mark.args else covering(grid)
            for item in grid:
                if item not in kept:
                    item.add_marker("slow")
        if config.option.markexpr == "slow":  # slow tests of the engine run in its own group, where vLLM is installed
            items[:] = [item for item in items if item.get_closest_marker("vllm") is None]
        if share := os.environ.get("SLOW_TESTS"):
            which, parts = map(int, share.split("/"))
            items[:] = [
                item for item in items if not is_slow(item) or zlib.crc32(item.nodeid.encode()) % parts == which - 1
            ]


def is_slow(item: pytest.Item) -> bool:
    """Whether the default run leaves it out."""
    return item.get_closest_marker("slow") is not None


def spread(grid: list[pytest.Function], count: int) -> list[pytest.Function]:
    """So many, evenly spread over all."""
    count = min(count, len(grid))
    return [grid[i * len(grid) // count] for i in range(count)]


def covering(grid: list[pytest.Function]) -> list[pytest.Function]:
    """Few that have each value of each parameter: always the first that has most of those still missing."""
    has = {item: set(map(value, item.callspec.params.items(), item.callspec.indices.values())) for item in grid}
    missing = set().union(*has.values())
    kept: list[pytest.Function] = []
    while missing:
        best = max(grid, key=lambda item: len(has[item] & missing))
        kept.append(best)
        missing -= has[best]
    return kept


def value(parameter: tuple[str, object], index: int) -> tuple[str, object]:
    """What tells a parameter's value from its others: two of one index may have a name in common with other pairs."""
    name, given = parameter
    return name, given if isinstance(given, str | int | float | None) else f"#{index}"
