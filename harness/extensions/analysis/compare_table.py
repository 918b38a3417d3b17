"""`compare:`, a table of tests: does a number differ between the episodes of two conditions?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, NotRequired, TypedDict

from harness.api import Metric
from harness.api.errors import SpecError, near
from harness.tables import TableKind
from harness.tables.axis import Axis, Key
from harness.tables.entry import LabelValue, LabelValues, Name, Names
from harness.tables.notes import clusters_in_words, left_out, limited, who_played, without_number
from harness.tables.scores import EpisodeScore, bounds_of, numbers
from harness.tables.spec import TableSpec, as_tuple, beside
from harness.tables.table import Cell, Row, Table, text

from . import paired
from .amount import Amount
from .paired_table import PairedRow, cells, columns, equivalence_in_words, in_words, is_clustered

BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "tests are shown as a table",
    "hide_empty": "its columns are statistics, the same for every row",
    "published": "published figures are not tested",
    "uncertainty": "the tests say how sure a difference is",
}
"""Keys that make no sense beside those of a table of statistics → why."""

_Margin = Annotated[
    str | float, "the largest difference that does not matter: '3%' of a metric's range, or a number in its unit"
]
_Sides = TypedDict(
    "_Sides",
    {
        "label": Name,
        "base": LabelValue,
        "with": LabelValues,
        "paired_by": NotRequired[Names],
        "margin": NotRequired[_Margin],
    },
)


class CompareEntry(TypedDict, total=False):
    """The key of a comparison."""

    compare: Annotated[
        _Sides,
        "a mapping with label, base, with (a value or a list of values of the label) and perhaps paired_by (labels in "
        "which the episodes of a pair agree; else the case) and margin (for tests of equivalence): exact sign-flip "
        "tests of pairs, instead of columns",
    ]


@dataclass(frozen=True, slots=True)
class Compare(TableKind):
    """Which values of a label are compared with which one, and what makes pairs: labels, or else the case."""

    entry: ClassVar[Any] = CompareEntry
    needs: ClassVar[tuple[str, ...]] = ("compare", "rows", "metrics")

    label: str
    base: str
    others: tuple[str, ...]
    paired_by: tuple[str, ...] = ()
    margin: str | None = None

    @property
    def amount(self) -> Amount | None:
        """The margin. Raises `SpecError` for one that is none."""
        return None if self.margin is None else Amount.read(self.margin, "compare: margin:")

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Compare:
        """Read `compare:`."""
        sides = entry["compare"]
        others = tuple(map(text, as_tuple(sides["with"])))
        margin = None if "margin" not in sides else text(sides["margin"])
        return cls(sides["label"], text(sides["base"]), others, as_tuple(sides.get("paired_by", ())), margin)

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The compared label with its values, and those that make pairs."""
        pairs: dict[str, Sequence[str]] = dict.fromkeys(self.paired_by, ())
        yield "compare", {self.label: (self.base, *self.others), **pairs}

    def placed(self) -> Sequence[str]:
        """The compared label."""
        return (self.label,)

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of differences."""
        label, base, mistakes = self.label, self.base, beside(table, "compare", BESIDE)
        if label in table.rows:
            mistakes.append(f"compare: rows must not have {label!r}: a row holds both sides of a comparison")
        if "metric" in (label, *self.paired_by):
            mistakes.append("compare: use metrics: to choose metrics, each is compared with itself")
        if label in self.paired_by:
            mistakes.append(f"compare: no pair can agree in {label!r}, which distinguishes its two sides")
        if base in self.others:
            mistakes.append(f"compare: {base!r} is compared with itself")
        try:
            _ = self.amount
        except SpecError as error:
            mistakes.append(error.message)
        mistakes += [f"compare: with has {x!r} twice" for x, n in Counter(self.others).items() if n > 1]
        allowed = table.where.get(label, (base, *self.others))
        mistakes += [f"compare: where leaves out {label} {x!r}" for x in (base, *self.others) if x not in allowed]
        return mistakes

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `compare`."""
        return compare(table, self, scores, metrics)


@dataclass(frozen=True, slots=True)
class _Test:
    """One row: the episodes of both sides, and the test of what makes pairs.

    Attributes:
        keys: how many values of `paired_by` have numbers, on one side or both.
    """

    key: Key
    metric: str
    base: Sequence[EpisodeScore]
    other: Sequence[EpisodeScore]
    keys: int
    row: PairedRow


def compare(
    table: TableSpec, comparison: Compare, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]
) -> Table:
    """One row for each row key, metric and value compared; one column for each statistic of `paired_table`.

    A pair is the episodes of both sides that agree in the labels of `comparison.paired_by`; several of one side count
    with their mean. Differences are value − base. What has no p-value is left empty, and a note says why.

    Args:
        table: what to show; its `rows` do not name `comparison.label`.
        comparison: its `compare`.
        scores: the episodes that its `where` lets through.
        metrics: those of the spec, by name.
    """
    sides = (comparison.base, *comparison.others)
    selected = [score for score in scores if text(score.labels.get(comparison.label)) in sides]
    table = replace(table, order={**table.order, comparison.label: comparison.others})
    rows = Axis(_row_labels(table, comparison, selected), table)
    tests = _tests(table, comparison, rows, selected, metrics)
    filled_cells = cells([test.row for test in tests], margin=comparison.margin is not None)
    rows_filled = [
        Row(rows.values(test.key), tuple(map(rows.title, test.key)), _counted(test, filled), test.metric)
        for test, filled in zip(tests, filled_cells, strict=True)
    ]
    other = rows.title(comparison.others[0]) if len(comparison.others) == 1 else rows.title("with")
    return Table(
        title=table.title,
        row_labels=rows.labels,
        column_labels=("statistic",),
        columns=columns(
            ("base", rows.title(comparison.base)),
            ("with", other),
            rows.title("difference"),
            margin=comparison.margin is not None,
        ),
        rows=tuple(rows_filled),
        row_names=tuple(rows.title(label) for label in rows.labels),
        error="interval",
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


def _tests(
    table: TableSpec,
    comparison: Compare,
    rows: Axis,
    scores: Sequence[EpisodeScore],
    named: Mapping[str, Metric],
) -> list[_Test]:
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
    bounds = {name: bounds_of(named[name], scores, name) for name in table.cells}
    margin, found = comparison.amount, []
    for key in rows.sorted(sides):
        first, second = sides[key]
        metric, paired_by = metrics[key], comparison.paired_by
        before, after = _by_pair(first, metric, paired_by), _by_pair(second, metric, paired_by)
        both = [(before[pair], after[pair]) for pair in before if pair in after]
        width = bounds[metric][1] - bounds[metric][0]
        fits = margin is not None and (math.isfinite(width) or not margin.is_share)
        largest = margin.of(width, metric) if margin is not None and fits else None
        row = PairedRow.of(both, metric, table.cluster, bounds[metric], margin=largest)
        found.append(_Test(key, metric, first, second, len(before.keys() | after.keys()), row))
    return found


def _by_pair(scores: Iterable[EpisodeScore], metric: str, paired_by: Sequence[str]) -> dict[Key, list[EpisodeScore]]:
    """Values of these labels, the case if there are none → episodes, where some have a number."""
    groups: dict[Key, list[EpisodeScore]] = {}
    for score in scores:
        key = tuple(text(score.labels.get(label)) for label in paired_by) or (score.case,)
        groups.setdefault(key, []).append(score)
    return {key: group for key, group in groups.items() if paired.number(group, metric) is not None}


def _counted(test: _Test, filled: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of a row with the episodes that are in no number: those of a side, then of both."""
    informed = any(score.uses_ground_truth for score in (*test.base, *test.other))
    counts = []
    for side in (test.base, test.other):
        failed = sum(score.failed for score in side)
        counts.append((failed, len(side) - failed - len(numbers(side, test.metric))))
    counts.append((counts[0][0] + counts[1][0], counts[0][1] + counts[1][1]))
    return tuple(
        replace(cell, failed=counts[min(i, 2)][0], missing=counts[min(i, 2)][1], uses_ground_truth=informed)
        for i, cell in enumerate(filled)
    )


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
    keys = ", ".join(comparison.paired_by or ("case",))
    yield (
        f"{', '.join(comparison.others)} against {comparison.base}. A pair has the same {keys}, and the mean of its "
        "episodes where a side has several."
    )
    yield from in_words([test.row for test in tests])
    if is_clustered(test.row for test in tests):
        yield f"Standard errors treat {clusters_in_words(table, scores)} as one observation (clustered)."
    if (margin := comparison.amount) is not None:
        names = {" ".join(test.key): test for test in tests}
        yield from equivalence_in_words({name: one.row.test.equivalence for name, one in names.items()}, str(margin))
    if alone := sum(test.keys - test.row.test.n for test in tests):
        every = sum(test.keys for test in tests)
        yield f"{alone} of {every} combinations of {keys} have numbers on one side only and are in no pair."
