"""`ability:`, a table of the sizes at which half is solved: comparable across tasks, and never saturated."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, NotRequired, TypedDict

from harness.api import CorpusMetric, Metric, Range
from harness.api.errors import SpecError
from harness.tables import TableKind
from harness.tables.axis import Axis, Key, meets
from harness.tables.entry import Name
from harness.tables.notes import clusters_in_words, of_statistics
from harness.tables.scores import EpisodeScore, bounds_of, cluster_of
from harness.tables.spec import TableSpec, beside
from harness.tables.table import Cell, Column, Table

from .curve import Observed, Posterior, Threshold

WITHIN: Final = 1.5
"""By default `--adaptive` stops where the upper end of an interval is at most so many times the lower one."""
_BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "`harness plot --kind ability` draws the curves",
    "hide_empty": "its columns are statistics, the same for every row",
    "published": "no published figure is a size at which half is solved",
    "uncertainty": "its numbers have their intervals",
}
_DISAGREE: Final = 0.001
"""Below this p-value of a goodness-of-fit test a note says that the curve does not fit."""


class _Knob(TypedDict):
    """What grows, and what solved means."""

    over: Annotated[Name, "the label that says how large a task is: numbers above 0, harder as they grow"]
    floor: NotRequired[Annotated[float, Range(ge=0, le=0.99), "the share that chance solves at every size (0)"]]
    solved_from: NotRequired[
        Annotated[float, "from which number of the metric on an episode is solved; without it the number is the share"]
    ]
    within: NotRequired[
        Annotated[
            float,
            Range(ge=1.01, le=100),
            f"--adaptive stops where an interval's upper end is at most so many times its lower end ({WITHIN:g})",
        ]
    ]


class AbilityEntry(TypedDict, total=False):
    """The key of a table of abilities."""

    ability: Annotated[
        _Knob,
        "a mapping with over, and perhaps floor, solved_from, within: the size at which half is solved, instead of "
        "columns",
    ]


@dataclass(frozen=True, slots=True)
class AbilityTable(TableKind):
    """By which label tasks grow, what chance solves, and from where on an episode is solved."""

    entry: ClassVar[Any] = AbilityEntry
    needs: ClassVar[tuple[str, ...]] = ("ability", "metrics")

    over: str
    floor: float = 0.0
    solved_from: float | None = None
    within: float = WITHIN

    @classmethod
    def complete(cls, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sizes have one decimal where the entry says nothing else."""
        return {"digits": 1, **entry}

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> AbilityTable:
        """Read `ability:`."""
        return cls(**entry["ability"])

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The label of sizes."""
        yield "ability", {self.over: ()}

    def placed(self) -> Sequence[str]:
        """The label of sizes."""
        return (self.over,)

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of abilities."""
        mistakes = beside(table, "ability", _BESIDE)
        if self.over in table.rows:
            mistakes.append(f"ability: rows must not have {self.over!r}: a row has a curve over its values")
        if len(table.cells) > 1:
            mistakes.append("ability: a table is about one metric: make one entry of each")
        return mistakes

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """Sizes that are no numbers above 0, or fewer than two; a metric whose numbers are no shares."""
        values, mistakes = labels.get(self.over, ()), list[str]()
        wanted = table.where.get(self.over)
        values = [value for value in values if wanted is None or value in wanted]
        wrong = [value for value in values if size_of(value) is None]
        if wrong:
            mistakes.append(f"ability: {self.over} is to be a number above 0, found {wrong[0]!r}")
        elif 0 < len(values) < 2:
            mistakes.append(f"ability: {self.over} has one value, {values[0]}: a curve needs at least two")
        if isinstance(metrics, Mapping) and (metric := metrics.get(table.cells[0])) is not None:
            if isinstance(metric, CorpusMetric):
                mistakes.append(f"metrics: no episode has a number of its own of {table.cells[0]!r}")
            elif self.solved_from is None and not (metric.bounds[0] >= 0 and metric.bounds[1] <= 1):
                what = f"metrics: {table.cells[0]!r} is no share from 0 to 1"
                mistakes.append(f"{what}: `solved_from` says from which number on an episode is solved")
        return mistakes

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `abilities`."""
        return abilities(table, self, scores, metrics)

    def solved(self, score: EpisodeScore, metric: str) -> float | None:
        """What an episode solved, from 0 to 1; None if that is not known."""
        number = score.number(metric)
        if number is None or self.solved_from is None:
            return number if number is None else min(1.0, max(0.0, number))
        return float(number >= self.solved_from)


def size_of(value: Any) -> float | None:
    """A label's value as a size; None if it is no number above 0."""
    try:
        number = math.nan if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 < number < math.inf else None


# ------------------------------------------------------------------------------------------- curves


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one row.

    Attributes:
        key: values of the row's labels, as text.
        scores: its episodes.
        levels: their sizes, ascending.
        observed: those that have a number.
        posterior: what is known; None with fewer than two sizes.
    """

    key: Key
    scores: Sequence[EpisodeScore]
    levels: tuple[float, ...]
    observed: Sequence[Observed]
    posterior: Posterior | None

    @property
    def threshold(self) -> Threshold | None:
        """The size at which half is solved; None with fewer than two sizes."""
        return None if self.posterior is None else self.posterior.threshold()

    @property
    def cell(self) -> Cell:
        """The size as a table shows it: never beyond the sizes there are."""
        failed = sum(score.failed for score in self.scores)
        counted = Cell(
            n=len(self.observed),
            failed=failed,
            missing=len(self.scores) - failed - len(self.observed),
            uses_ground_truth=any(score.uses_ground_truth for score in self.scores),
        )
        if (found := self.threshold) is None:
            return counted
        value, low, high = found.within
        return replace(counted, value=value, low=low, high=high, beyond=found.beyond)

    @property
    def misfit(self) -> float:
        """The p-value of Pearson's test of the curve: small where shares do not fall as it does."""
        by_level: dict[int, list[float]] = {}
        for level, solved, _ in self.observed:
            by_level.setdefault(level, []).append(solved)
        if self.posterior is None or len(by_level) < 3:
            return 1.0
        from scipy.special import chdtrc

        shares, total = self.posterior.shares(), 0.0
        for level, values in by_level.items():
            expected = min(max(shares[level], 0.5 / len(values)), 1 - 0.5 / len(values))  # of few episodes none is rare
            total += (sum(values) - len(values) * shares[level]) ** 2 / (len(values) * expected * (1 - expected))
        counts = {each.cluster for each in self.observed}
        return float(chdtrc(len(by_level) - 2, total * len(counts) / len(self.observed)))


def curve_of(kind: AbilityTable, table: TableSpec, key: Key, scores: Sequence[EpisodeScore]) -> Curve:
    """The curve of these episodes. Raises `SpecError` for a size that is no number above 0."""
    sizes = [size_of(score.labels.get(kind.over)) for score in scores]
    for score, size in zip(scores, sizes, strict=True):
        if size is None:
            found = score.labels.get(kind.over)
            raise SpecError(f"table {table.title!r}: {kind.over} of {score.id} is {found!r:.40}, no number above 0")
    levels = tuple(sorted({size for size in sizes if size is not None}))
    places = {size: i for i, size in enumerate(levels)}
    observed = [
        Observed(places[size], solved, cluster(score, table))
        for score, size in zip(scores, sizes, strict=True)
        if size is not None and (solved := kind.solved(score, table.cells[0])) is not None
    ]
    enough = len(levels) > 1 and bool(observed)
    return Curve(key, scores, levels, observed, Posterior.of(levels, kind.floor, observed) if enough else None)


def cluster(score: EpisodeScore, table: TableSpec) -> Hashable:
    """What makes episodes one observation of a curve."""
    return cluster_of(score, table.cluster)


def curves(table: TableSpec, scores: Sequence[EpisodeScore], axis: Axis | None = None) -> list[Curve]:
    """The curves of a table's rows; each model has its own."""
    kind = table.kind
    assert isinstance(kind, AbilityTable)
    axis = axis or Axis(row_labels(table, {score.model for score in scores}), table)
    groups: dict[Key, list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(axis.key(score.labels), []).append(score)
    return [curve_of(kind, table, key, groups[key]) for key in axis.sorted(groups)]


def row_labels(table: TableSpec, models: Iterable[str]) -> tuple[str, ...]:
    """The entry's row labels; models have rows of their own."""
    rows = tuple(label for label in table.rows if label != "metric")
    return rows if "model" in rows or (rows and len([*models]) < 2) else ("model", *rows)


def first_ability(tables: Iterable[TableSpec]) -> TableSpec | None:
    """The first table of abilities among a spec's: boards, charts and `--adaptive` are about it."""
    return next((table for table in tables if isinstance(table.kind, AbilityTable)), None)


def of_models(table: TableSpec, scores: Sequence[EpisodeScore]) -> dict[str, Curve]:
    """Model → its curve over all its episodes that the table is about, whatever rows divide them."""
    for key in table.added:
        scores = [replace(score, labels=key.relabelled(score.labels)) for score in scores]
    selected = [score for score in scores if meets(score.labels, table.where)]
    whole = replace(table, rows=("model",))
    return {curve.key[0]: curve for curve in curves(whole, selected)}


# ------------------------------------------------------------------------------------------- table


def abilities(
    table: TableSpec, kind: AbilityTable, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]
) -> Table:
    """A row for each value of the row labels: the size at which half is solved, with its 95 % interval.

    Args:
        table: what to show.
        kind: its `ability:`.
        scores: the episodes that its `where` lets through.
        metrics: name → metric.

    Raises:
        SpecError: for a size that is no number above 0, or a number that is no share from 0 to 1.
    """
    metric = table.cells[0]
    if kind.solved_from is None and not (bounds_of(metrics[metric], scores, metric)[0] >= 0):
        raise SpecError(
            f"table {table.title!r}: {metric} has numbers that are no share from 0 to 1",
            hint="`solved_from` says from which number on an episode is solved.",
        )
    axis = Axis(row_labels(table, {score.model for score in scores}), table)
    found = curves(table, scores, axis)
    columns = (
        Column({"statistic": "half"}, (f"{axis.title(kind.over)} solved by half",), "half"),
        Column({"statistic": "factor"}, ("to / from",), form="plain"),
        Column({"statistic": "n"}, ("n",), form="count"),
        Column({"statistic": "sizes"}, ("values played",), form="count"),
    )
    rows = []
    for curve in found:
        cell = curve.cell
        size = curve.threshold
        factor = size.high / size.low if size is not None and size.beyond is None and _is_inside(size) else None
        played = len({each.level for each in curve.observed})
        others = (Cell(x, n=None, uses_ground_truth=cell.uses_ground_truth) for x in (factor, cell.n, played))
        rows.append(replace(axis.row(curve.key, (cell, *others)), metric=None))
    return Table(
        title=table.title,
        row_labels=axis.labels,
        column_labels=("statistic",),
        columns=columns,
        rows=tuple(rows),
        row_names=tuple(map(axis.title, axis.labels)),
        error="interval",
        digits=table.digits if isinstance(table.digits, int) else 1,
        notes=tuple(dict.fromkeys(_notes(table, kind, axis, found, scores))),
    )


def _is_inside(size: Threshold) -> bool:
    return size.low >= size.smallest and size.high <= size.largest


def _notes(
    table: TableSpec, kind: AbilityTable, axis: Axis, found: Sequence[Curve], scores: Sequence[EpisodeScore]
) -> Iterable[str]:
    yield from of_statistics(table, scores)
    if not scores:
        return
    yield about(table, kind)
    sizes = [curve.threshold for curve in found]
    yield from beyond_in_words(axis.title(kind.over), sizes)
    if any(len({each.cluster for each in curve.observed}) < len(curve.observed) for curve in found):
        yield f"Intervals take {clusters_in_words(table)} as one observation, as far as they agree (clustered)."
    for curve in found:
        name = ", ".join(map(axis.title, curve.key))
        if curve.posterior is None:
            yield f"{name}: no curve, since fewer than two values of {axis.title(kind.over)} have numbers."
        elif curve.misfit < _DISAGREE:
            yield f"{name}: its shares do not fall as the curve does (p < {_DISAGREE:g}), so that its number misleads."


def about(table: TableSpec, kind: AbilityTable) -> str:
    """What the number is, as a sentence."""
    metric = table.labels.get(table.cells[0], table.cells[0])
    solved = f"{metric} of at least {kind.solved_from:g}" if kind.solved_from is not None else metric
    share = "50 %"
    if kind.floor:
        share = f"{50 + 50 * kind.floor:g} %, half of what is above chance ({100 * kind.floor:g} %)"
    return (
        f"Solved by half: the {table.labels.get(kind.over, kind.over)} at which {solved} is {share}, by a logistic "
        "curve over its logarithm with lapses (median of the posterior, 95 % interval)."
    )


def beyond_in_words(over: str, sizes: Iterable[Threshold | None]) -> Iterable[str]:
    """What signs of sizes beyond those that were played mean."""
    known = [size for size in sizes if size is not None]
    if any(size.beyond for size in known):
        yield f"> or <: half is solved beyond the {over} that was played, and no number is extrapolated."
    if any(size.beyond is None and not _is_inside(size) for size in known):
        yield f"An interval that ends at the smallest or largest {over} goes on beyond it."
