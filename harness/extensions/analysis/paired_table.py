"""What tables show of paired tests: those that a spec's `compare:` asks for, and those of `harness compare`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.tables import Cell, Column, NumberForm, stats
from harness.tables.scores import finite

from . import paired
from .equivalence import Equivalence

_STATISTICS: Final[dict[str, tuple[str, NumberForm]]] = {
    "difference": ("difference", "quantity"),
    "p": ("p", "pvalue"),
    "p_holm": ("p (Holm)", "pvalue"),
    "detectable": ("detectable", "quantity"),
    "pairs": ("pairs", "count"),
}

_WITH_MARGIN: Final[dict[str, tuple[str, NumberForm]]] = {"p_tost": ("p (TOST)", "pvalue")}


@dataclass(frozen=True, slots=True)
class PairedRow:
    """One row: the means of both sides over the pairs, and the test of what differs.

    Attributes:
        first, second: the means; None without pairs.
        test: of second − first.
        is_binary: whether all numbers of both sides are zeros and ones.
    """

    first: float | None
    second: float | None
    test: paired.PairedTest
    is_binary: bool = False

    @classmethod
    def of(
        cls,
        pairs: Iterable[tuple[paired.Group, paired.Group]],
        metric: str,
        cluster: Sequence[str] = (),
        bounds: tuple[float, float] = (-math.inf, math.inf),
        *,
        conditions: bool = False,
        margin: float | None = None,
    ) -> PairedRow:
        """The row of a metric, over the pairs in which both sides have a number. Arguments as in `paired.test`."""
        numbers: dict[str, list[tuple[paired.Number, paired.Number]]] = {}
        there = []
        for pair in pairs:
            one, other = (paired.number(side, metric) for side in pair)
            if one is not None and other is not None:
                numbers.setdefault(pair[0][0].condition if conditions else "", []).append((one, other))
                there.append(pair)
        means = [
            [statistics.fmean(paired.values([pair[side] for pair in group])) for side in (0, 1)]
            for group in numbers.values()
        ]
        first, second = (statistics.fmean(mean[side] for mean in means) if means else None for side in (0, 1))
        is_binary = all(number in (0, 1) for group in numbers.values() for pair in group for number in pair)
        test = paired.test(there, metric, cluster, bounds, conditions=conditions, margin=margin)
        return cls(first, second, test, is_binary)


def columns(
    first: tuple[str, str], second: tuple[str, str], difference: str = "difference", *, margin: bool = False
) -> tuple[Column, ...]:
    """The columns of `cells`, given (key, title) of both sides and what the difference is called.

    `margin`: whether equivalence is tested.
    """
    names: dict[str, tuple[str, NumberForm]] = {key: (title, "quantity") for key, title in (first, second)}
    names |= _STATISTICS | {"difference": (difference, "quantity")} | (_WITH_MARGIN if margin else {})
    return tuple(Column({"statistic": key}, (title,), form=form) for key, (title, form) in names.items())


def cells(rows: Sequence[PairedRow], *, margin: bool = False) -> list[tuple[Cell, ...]]:
    """The cells of all rows of a table, in the order of `columns`. Holm's correction runs over all of them."""
    corrected = iter(stats.holm([row.test.pvalue for row in rows if row.test.pvalue is not None]))
    filled = []
    for row in rows:
        test, n = row.test, row.test.n
        holm = None if test.pvalue is None else next(corrected)
        numbers = (row.first, row.second, test.difference, test.pvalue, holm, test.detectable, n)
        shown = [Cell(finite(number), n=n) for number in numbers]
        if test.interval:
            shown[2] = replace(shown[2], low=test.interval[0], high=test.interval[1])
        if margin:
            shown.append(Cell(test.equivalence.pvalue if test.equivalence else None, n=n))
        filled.append(tuple(shown))
    return filled


def equivalence_in_words(found: Mapping[str, Equivalence | None], margin: str) -> Iterable[str]:
    """Which of several differences, by name, are within a margin."""
    words = {"same": f"within ±{margin}", "other": f"beyond ±{margin} (by the 90 % interval)", "open": "not decided"}
    lines = [
        f"{text}: {_few(named)}"
        for verdict, text in words.items()
        if (named := [name for name, one in found.items() if one is not None and one.verdict == verdict])
    ]
    if lines:
        yield (
            f"Equivalence at a margin of {margin}, by two one-sided tests: where p (TOST) is below 0.05, the "
            f"difference is smaller. {'; '.join(lines)}."
        )
    if lacking := [name for name, one in found.items() if one is None]:
        yield f"Equivalence is not tested, since no margin fits or the numbers do not vary: {_few(lacking)}."


def _few(names: Sequence[str], most: int = 8) -> str:
    return ", ".join([*names[:most], *([f"{len(names) - most} more"] if len(names) > most else [])])


def in_words(rows: Sequence[PairedRow]) -> Iterable[str]:
    """What a reader must know of the rows' intervals and tests."""
    tests = [row.test for row in rows]
    clustered = is_clustered(rows)
    if any(test.interval for test in tests):
        yield "In brackets: the 95 % interval of the difference; it holds 0 where p is 0.05 or more."
    if count := sum(test.pvalue is not None for test in tests):
        every = "the one test" if count == 1 else f"all {count} tests"
        mcnemar = " (of zeros and ones McNemar's exact test)" * any(row.is_binary and row.test.n for row in rows)
        what = "clusters" if clustered else f"pairs{mcnemar}"
        yield f"p: exact two-sided sign-flip test of {what}; p (Holm): after Holm's correction for {every}."
    if any(test.pvalue is None and test.clusters > 1 for test in tests):
        yield "No p: the sides differ in no pair."
    if few := {test.clusters for test in tests if 0 < test.clusters < paired.MIN_PAIRS}:
        number = max(few)
        what = f"{'cluster' if clustered else 'pair'}{'' if number == 1 else 's'}"
        yield f"{number} {what} cannot show a difference: {paired.MIN_PAIRS} must differ before p can be below 0.05."
    if any(test.detectable is not None for test in tests):
        yield "detectable: the smallest difference that a t test finds with 80 % power at 0.05, at as many pairs."
    if any(test.detectable is None and test.interval for test in tests):
        yield "detectable –: at as many pairs no difference that is possible is found so, or the numbers do not vary."


def is_clustered(rows: Iterable[PairedRow]) -> bool:
    """Whether some pairs are not observations of their own."""
    return any(row.test.clusters < row.test.n for row in rows)
