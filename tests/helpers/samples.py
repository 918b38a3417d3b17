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
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

QUICK, LONG = 12, 100
FEWEST = 4
"""A property test draws no fewer examples."""


class Parameters(Protocol):
    """What pytest makes a test of, with its parameters."""

    @property
    def params(self) -> Mapping[str, Any]: ...

    @property
    def indices(self) -> Mapping[str, int]: ...


T = TypeVar("T", bound=Parameters)


def examples(most: int, profile: hypothesis.settings | None = None) -> int:
    """`most` in the long profile, as much less in the quick one as a property test has that says nothing."""
    share = (profile or hypothesis.settings()).max_examples / LONG
    return min(most, max(FEWEST, round(most * share)))


class Samples:
    """A plugin that loads the profile of property tests and marks what is left out by default."""

    def __init__(self) -> None:
        self._left_out: set[str] = set()

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
        expression = config.option.markexpr
        profile = os.environ.get("HYPOTHESIS_PROFILE", "long" if expression == "slow" else "quick")
        hypothesis.settings.load_profile(profile)
        if profile == "quick":
            # hypothesis draws constants from all of our modules that are loaded: other examples with each selection
            # of tests, and a tenth of their time.
            providers.is_local_module_file = lambda file: False  # type: ignore[attr-defined,assignment]
        if re.fullmatch(r"not \w+( and not \w+)*", expression) and not any("::" in name for name in config.args):
            self._left_out = {*expression.split()} - {"not", "and"}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Module | pytest.Class, obj: object) -> list[Any] | None:
        """Make no tests of a function whose marks deselect all of them: a third of the collection went there."""
        if not self._left_out:
            return None
        marks = [*getattr(obj, "pytestmark", ()), *collector.iter_markers()]
        return [] if any(mark.name in self._left_out for mark in marks) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> Iterator[None]:
        """Mark as slow what is not sampled, and make no tests of parameters that are left out."""
        yield
        calls, definition = metafunc._calls, metafunc.definition
        mark = definition.get_closest_marker("sampled")
        if mark is not None and definition.get_closest_marker("slow") is None:
            grid = [call for call in calls if not any(one.name == "slow" for one in call.marks)]
            kept = {id(call) for call in (spread(grid, *mark.args) if mark.args else covering(grid))}
            for call in grid:
                if id(call) not in kept:
                    call.marks.append(pytest.mark.slow.mark)
        wanted = [call for call in calls if not any(one.name in self._left_out for one in call.marks)]
        metafunc._calls = wanted or calls[:1]  # without any, pytest would make a test that has no parameters

    def pytest_collection_finish(self) -> None:
        """What was collected stays: no garbage collection need look at it, nor every 700 new objects at the others."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Mark every property test as slow in the slow group, and leave the part of it that is asked for."""
        if config.option.markexpr == "slow":
            for item in items:
                if isinstance(item, pytest.Function) and getattr(item.obj, "is_hypothesis_test", False):
                    item.add_marker("slow")
            # Slow tests of these run in their own groups, those of engines where their packages are installed.
            items[:] = [
                item for item in items if not any(map(item.get_closest_marker, ("vllm", "tiny", "docs", "agents")))
            ]
        if share := os.environ.get("SLOW_TESTS"):
            which, parts = map(int, share.split("/"))
            items[:] = [
                item for item in items if not is_slow(item) or zlib.crc32(item.nodeid.encode()) % parts == which - 1
            ]


def is_slow(item: pytest.Item) -> bool:
    """Whether the default run leaves it out."""
    return item.get_closest_marker("slow") is not None


def spread(grid: list[T], count: int) -> list[T]:
    """So many, evenly spread over all."""
    count = min(count, len(grid))
    return [grid[i * len(grid) // count] for i in range(count)]


def covering(grid: list[T]) -> list[T]:
    """Few that have each value of each parameter: always the first that has most of those still missing."""
    has = [set(map(value, call.params.items(), call.indices.values())) for call in grid]
    missing = set().union(*has)
    kept: list[T] = []
    while missing:
        best = max(range(len(grid)), key=lambda at: len(has[at] & missing))
        kept.append(grid[best])
        missing -= has[best]
    return kept


def value(parameter: tuple[str, object], index: int) -> tuple[str, object]:
    """What tells a parameter's value from its others: two of one index may have a name in common with other pairs."""
    name, given = parameter
    return name, given if isinstance(given, str | int | float | None) else f"#{index}"
