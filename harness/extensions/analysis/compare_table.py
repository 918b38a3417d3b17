"""A table of tests: does a number differ between the episodes of two conditions?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from harness.api.errors import near
from harness.tables import stats
from harness.tables.axis import Axis, Key
from harness.tables.notes import clusters_in_words, left_out, limited, who_played, without_number
from harness.tables.scores import EpisodeScore, finite, numbers, observations
from harness.tables.spec import TableSpec
from harness.tables.table import Cell, Column, NumberForm, Row, Table, text

from . import paired
from .kinds import Compare
from .welch import Comparison, welch_test

_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "base": ("base", "quantity"),
    "with": ("with", "quantity"),
    "difference": ("difference", "quantity"),
    "t": ("t", "plain"),
    "df": ("df", "plain"),
    "p": ("p", "pvalue"),
    "p_holm": ("p (Holm)", "pvalue"),
    "pairs": ("pairs", "count"),
    "paired_difference": ("paired difference", "quantity"),
    "paired_p": ("paired p", "pvalue"),
    "paired_p_holm": ("paired p (Holm)", "pvalue"),
}
"""Statistic → its column's title and form. Those from "pairs" on are only there with `paired_by`."""


@dataclass(frozen=True, slots=True)
class _Test:
    """One row: the episodes of both sides, Welch's test, and the paired one over what makes pairs."""

    key: Key
    metric: str
    base: Sequence[EpisodeScore]
    other: Sequence[EpisodeScore]
    welch: Comparison
    pairs: int
    keys: int
    paired: paired.PairedTest
    cluster: tuple[str, ...]

    @property
    def observations(self) -> tuple[int, int]:
        """How many independent observations each side has."""
        base, other = (
            len({cluster for cluster, _ in observations(side, self.metric, self.cluster)})
            for side in (self.base, self.other)
        )
        return base, other

    @property
    def counts(self) -> tuple[int, int]:
        """How many numbers each side has."""
        return len(numbers(self.base, self.metric)), len(numbers(self.other, self.metric))


def compare(table: TableSpec, comparison: Compare, scores: Sequence[EpisodeScore]) -> Table:
    """One row for each row key, metric and value compared; one column for each statistic.

    Means and Welch's t test are over the numbers of all episodes of a side; the paired test (`paired.sign_flip`) is
    over the means of those that agree in the labels of `comparison.paired_by`. All tests are two-sided; differences are
    value − base. Holm's correction runs over all of Welch's tests in the table, and over all the paired ones. What has
    no p-value (fewer than two numbers or pairs, no variance) is left empty, and a note says why.

    Args:
        table: what to show; its `rows` do not name `comparison.label`.
        comparison: its `compare`.
        scores: the episodes that its `where` lets through.
    """
    sides = (comparison.base, *comparison.others)
    selected = [score for score in scores if text(score.labels.get(comparison.label)) in sides]
    table = replace(table, order={**table.order, comparison.label: comparison.others})
    rows = Axis(_row_labels(table, comparison, selected), table)
    tests = _tests(table, comparison, rows, selected)
    names = list(_COLUMNS) if comparison.paired_by else [name for name in _COLUMNS if "pair" not in name]
    adjusted = _holm([test.welch for test in tests]), _holm([test.paired for test in tests])
    rows_filled = []
    for test, welch, both in zip(tests, *adjusted, strict=True):
        cells = _cells(test, welch, both)
        values = tuple(cells[name] for name in names)
        rows_filled.append(Row(rows.values(test.key), tuple(map(rows.title, test.key)), values, test.metric))
    titles = {"base": rows.title(comparison.base)}
    if len(comparison.others) == 1:
        titles["with"] = rows.title(comparison.others[0])
    return Table(
        title=table.title,
        row_labels=rows.labels,
        column_labels=("statistic",),
        columns=tuple(
            Column({"statistic": name}, (titles.get(name) or rows.title(_COLUMNS[name][0]),), form=_COLUMNS[name][1])
            for name in names
        ),
        rows=tuple(rows_filled),
        row_names=tuple(rows.title(label) for label in rows.labels),
        digits=table.digits,
        unit=table.unit,
        notes=tuple(_notes(table, comparison, tests, selected, scores)),
    )


def _row_labels(table: TableSpec, comparison: Compare, scores: Sequence[EpisodeScore]) -> tuple[str, ...]:
    """The entry's, and what else distinguishes tests: several models, metrics, values compared with the base."""
    labels = table.rows
    if len({score.model for score in scores}) > 1 and "model" not in (*labels, comparison.label):
        labels = ("model", *labels)
    if len(table.cells) > 1 and "metric" not in labels:
        labels = (*labels, "metric")
    return (*labels, comparison.label) if len(comparison.others) > 1 else labels


def _tests(table: TableSpec, comparison: Compare, rows: Axis, scores: Sequence[EpisodeScore]) -> list[_Test]:
    """Every test of the table, in the order of its rows."""
    raw = {text(value): value for score in scores if (value := score.labels.get(comparison.label)) is not None}
    sides: dict[Key, tuple[list[EpisodeScore], list[EpisodeScore]]] = {}
    metrics: dict[Key, str] = {}
    for score in scores:
        side = text(score.labels.get(comparison.label))
        for metric in table.cells:
            for other in comparison.others:
                key = rows.key({**score.labels, "metric": metric, comparison.label: raw.get(other, other)})
                pair = sides.setdefault(key, ([], []))
                metrics[key] = metric
                if side in (comparison.base, other):
                    pair[side == other].append(score)
    return [_test(key, metrics[key], *sides[key], comparison.paired_by, table.cluster) for key in rows.sorted(sides)]


def _test(
    key: Key,
    metric: str,
    base: Sequence[EpisodeScore],
    other: Sequence[EpisodeScore],
    paired_by: Sequence[str],
    cluster: tuple[str, ...],
) -> _Test:
    before, after = _by_pair(base, metric, paired_by), _by_pair(other, metric, paired_by)
    both = [pair for pair in before if pair in after]
    return _Test(
        key,
        metric,
        base,
        other,
        welch_test([observations(other, metric, cluster)], [observations(base, metric, cluster)]),
        len(both),
        len(before.keys() | after.keys()),
        paired.test([(before[pair], after[pair]) for pair in both], metric, cluster),
        cluster,
    )


def _by_pair(scores: Iterable[EpisodeScore], metric: str, paired_by: Sequence[str]) -> dict[Key, list[EpisodeScore]]:
    """Pairing key → its episodes, where some have a number."""
    groups: dict[Key, list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(tuple(text(score.labels.get(label)) for label in paired_by), []).append(score)
    return {key: group for key, group in groups.items() if paired.number(group, metric) is not None}


def _holm(tests: Sequence[Comparison | paired.PairedTest]) -> list[float | None]:
    """The corrected p-values, None for what has none and so was not a test."""
    adjusted = iter(stats.holm([test.pvalue for test in tests if test.pvalue is not None]))
    return [None if test.pvalue is None else next(adjusted) for test in tests]


def _cells(test: _Test, holm: float | None, paired_holm: float | None) -> Mapping[str, Cell]:
    base, other = _mean(test.base, test.metric), _mean(test.other, test.metric)
    welch, pairs, n = test.welch, test.paired, sum(test.counts)
    values = {
        "difference": (welch.difference, n),
        "t": (welch.statistic, n),
        "df": (welch.df, n),
        "p": (welch.pvalue, n),
        "p_holm": (holm, n),
        "pairs": (test.pairs if all(test.counts) else None, test.pairs),
        "paired_difference": (pairs.difference, test.pairs),
        "paired_p": (pairs.pvalue, test.pairs),
        "paired_p_holm": (paired_holm, test.pairs),
    }
    failed, missing = base.failed + other.failed, base.missing + other.missing
    cells = {name: Cell(finite(value), None, count, failed, missing) for name, (value, count) in values.items()}
    informed = any(score.uses_ground_truth for score in (*test.base, *test.other))
    cells |= {"base": base, "with": other}
    return {name: replace(cell, uses_ground_truth=informed) for name, cell in cells.items()}


def _mean(scores: Sequence[EpisodeScore], metric: str) -> Cell:
    stat = stats.mean(numbers(scores, metric))
    failed = sum(score.failed for score in scores)
    return Cell(finite(stat.value), finite(stat.stderr), stat.n, failed, len(scores) - failed - stat.n)


# ------------------------------------------------------------------------------------------- notes


def _notes(
    table: TableSpec,
    comparison: Compare,
    tests: Sequence[_Test],
    selected: Sequence[EpisodeScore],
    scores: Sequence[EpisodeScore],
) -> Iterable[str]:
    if table.note:
        yield table.note
    yield from who_played(selected)
    if not scores:
        yield "There are no episodes to show."
        return
    there = {text(score.labels[comparison.label]) for score in scores if comparison.label in score.labels}
    for value in (comparison.base, *comparison.others):
        if value not in there:
            yield f"No episode has {comparison.label} {value!r}. {near(value, there)}"
    yield from left_out(selected)
    yield from limited(selected)
    for metric in table.cells:
        yield from without_number(table, selected, metric)
    others = ", ".join(comparison.others)
    base, other = (_range([test.counts[side] for test in tests]) for side in (0, 1))
    yield (
        f"p: two-sided Welch t tests over episodes, {others} against {comparison.base} (n = {other} and {base}); "
        f"difference: the former − {comparison.base}."
    )
    if any(test.observations != test.counts for test in tests):
        yield f"p treats {clusters_in_words(table)} as one observation (clustered)."
    few = sum(min(test.observations) < 2 for test in tests)
    yield from _undefined(
        "p", [test.welch for test in tests], few, "observations on a side", "numbers of neither side vary"
    )
    if not comparison.paired_by:
        return
    keys = ", ".join(comparison.paired_by)
    yield (
        f"paired p: exact two-sided sign-flip tests (n = {_range([test.pairs for test in tests])} pairs); a pair has "
        f"equal {keys}, and the mean of its episodes where a side has several."
    )
    if any(test.paired.clusters < test.pairs for test in tests):
        yield f"paired p treats {clusters_in_words(table)} as one observation (clustered)."
    if alone := sum(test.keys - test.pairs for test in tests):
        every = sum(test.keys for test in tests)
        yield f"{alone} of {every} combinations of {keys} have numbers on one side only and are in no pair."
    few = sum(test.paired.clusters < 2 for test in tests)
    lacking = "clusters of pairs" if any(test.paired.clusters < test.pairs for test in tests) else "pairs"
    yield from _undefined("paired p", [test.paired for test in tests], few, lacking, "sides do not differ in any pair")


def _undefined(
    name: str, tests: Sequence[Comparison | paired.PairedTest], few: int, lacking: str, flat: str
) -> Iterable[str]:
    """What Holm's correction runs over, and why rows have no p-value."""
    tested = sum(test.pvalue is not None for test in tests)
    if tested:
        listed = "the one such test" if tested == 1 else f"all {tested} such tests"
        yield f"{name} (Holm): {name} after Holm's correction for {listed} in this table."
    if few:
        yield f"{few} of {len(tests)} rows have no {name}: fewer than two {lacking}."
    if constant := len(tests) - tested - few:
        yield f"{constant} of {len(tests)} rows have no {name}: the {flat}."


def _range(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return f"{low}" if low == high else f"{low} to {high}"
