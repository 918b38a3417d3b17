"""Scores and a table entry become a table."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from harness.api import UNBOUNDED, Bounds, CorpusMetric, Metric, RatioMetric, Statistic, linearize
from harness.api.errors import HarnessError, PluginError, SpecError, near
from harness.tables import stats

from .axis import Axis, Key, meets
from .entry import Means
from .notes import bound_notes, notes
from .scores import (
    EpisodeScore,
    aggregate,
    averaged_first,
    bounds_of,
    cluster_of,
    finite,
    observations,
    records,
    refuse_bare_shares,
)
from .spec import TableSpec
from .table import Cell, Column, ErrorKind, Table, error_of


def build(
    table: TableSpec,
    scores: Sequence[EpisodeScore],
    metrics: Mapping[str, Metric],
    beside: Sequence[EpisodeScore] = (),
) -> Table:
    """Fill a table.

    Rows and columns are in the order in which their label values first occur in `scores`, so give these in the
    order of the plan (episodes that never ran as scores with error `NOT_RUN`). A cell's value is the mean over all
    its episodes (`pooled`, through the metric's own `aggregate`) or over its conditions (`mean_of_conditions`).
    Episodes of different models are never averaged together: where neither rows nor columns say "model" and there
    are several, the rows are split by model.

    Args:
        table: what to show.
        scores: the episodes; those that failed are counted and never averaged.
        metrics: name → metric, for every name in `table.cells`.
        beside: episodes of other tables whose numbers stand beside these; they have a say in `bounds_of`.

    Raises:
        SpecError: for a metric or a label that does not exist.
    """
    for key in table.added:
        with _asking(table, key):
            scores = [replace(score, labels=key.relabelled(score.labels)) for score in scores]
    _refuse_unknown(table, scores, metrics)
    selected = [score for score in scores if meets(score.labels, table.where)]
    for name in (name for name in table.cells if name in metrics):
        refuse_bare_shares(metrics[name], selected, name)
    if table.kind:
        with _asking(table, table.kind):
            return table.kind.build(table, selected, metrics)
    table = _with_all_labels(table, selected, [model for key in table.added for model in key.models(table)])
    rows, columns = Axis(table.rows, table), Axis(table.columns, table)
    ours: dict[Key, dict[Key, list[EpisodeScore]]] = {}
    for score, metric in product(selected, table.cells):
        labels = {**score.labels, "metric": metric}
        ours.setdefault(rows.key(labels), {}).setdefault(columns.key(labels), []).append(score)
    for key in table.added:
        with _asking(table, key):
            key.place(table, rows, columns)  # before the slots: rows of keys have columns too
    slots = _slots(table, columns)
    every = [*scores, *beside]
    bounds = {name: bounds_of(metrics[name], every, name) for name in table.cells if name in metrics}
    own = {
        key: rows.row(key, [_cell(table, metrics, bounds, slot, rows.metric(key), ours[key]) for slot in slots])
        for key in rows.sorted(ours)
    }
    rows_filled, last_notes = [*own.values()], list[str]()
    for key in table.added:
        with _asking(table, key):
            more, about = key.with_episodes(
                lambda row, column, metric: _behind(table, column, metric, ours.get(row, {}))
            ).more_rows(table, own, [(slot.key, slot.metric) for slot in slots], metrics)
        rows_filled += more
        last_notes += [*key.notes(table, selected), *about]
    last_notes += bound_notes(rows_filled)
    if table.hide_empty:
        filled = [i for i in range(len(slots)) if any(row.cells[i].value is not None for row in rows_filled)]
        slots = [slots[i] for i in filled]
        rows_filled = [replace(row, cells=tuple(row.cells[i] for i in filled)) for row in rows_filled]
    if table.figure == "stacked" and len(table.cells) == 1:
        rows_filled = [replace(row, cells=tuple(_share(cell, len(slots)) for cell in row.cells)) for row in rows_filled]
    done = Table(
        title=table.title,
        row_labels=table.rows,
        column_labels=table.columns,
        columns=tuple(slot.column for slot in slots),
        rows=tuple(rows_filled),
        row_names=tuple(rows.title(label) for label in table.rows),
        names={name: table.labels[name] for name in (*table.columns, *table.cells) if name in table.labels},
        error=table.uncertainty,
        error_style=table.error_style,
        digits=table.digits,
        unit=table.unit,
        figure=table.figure,
    )
    return replace(done, notes=tuple(dict.fromkeys([*notes(table, done, selected, metrics), *last_notes])))


@contextlib.contextmanager
def _asking(table: TableSpec, extension: object) -> Iterator[None]:
    """Within it a class of an extension is asked. Raises `PluginError` for what it raises."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        from harness.storage.plugin_errors import describe  # what only a failing plugin needs

        raise PluginError(f"table {table.title!r}: {describe(error, extension)}") from error


# ------------------------------------------------------------------------------------------ layout


@dataclass(frozen=True, slots=True)
class _Slot:
    """A column with its key (None for the overall one) and, where columns distinguish metrics, its metric."""

    key: Key | None
    metric: str | None
    column: Column


def _slots(table: TableSpec, columns: Axis) -> list[_Slot]:
    only = table.cells[0] if len(table.cells) == 1 else None
    slots = []
    for key in columns.sorted(columns.keys):
        metric, names = columns.metric(key), columns.heads(key)
        slots.append(_Slot(key, metric, Column(columns.values(key), names, metric or only)))
    if table.overall and slots:
        title_level = next(i for i, label in enumerate(table.columns) if label != "metric")
        for metric in table.cells if "metric" in table.columns else [None]:
            own = {title_level: table.overall_title}
            if metric:
                own[table.columns.index("metric")] = columns.title(metric)
            names = tuple(own.get(level, "") for level in range(len(table.columns)))
            slots.append(_Slot(None, metric, Column({}, names, metric or only, overall=True)))
    return slots


def _with_all_labels(table: TableSpec, scores: Sequence[EpisodeScore], further: Collection[str]) -> TableSpec:
    """The table with "model" and "metric" among its labels wherever it takes them to distinguish cells; `further`:
    models of rows beside the scores."""
    rows, columns = table.rows, table.columns
    if "model" not in (*rows, *columns) and len({score.model for score in scores}.union(further)) > 1:
        rows = ("model", *rows)
    if "metric" not in (*rows, *columns) and (len(table.cells) > 1 or not columns):
        columns = (*columns, "metric")
    return replace(table, rows=rows, columns=columns)


def _refuse_unknown(table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> None:
    parts = [part for derived in table.derived.values() for part in derived.metrics]
    for name in [*(name for name in table.cells if name not in table.derived), *parts]:
        if name not in metrics:
            raise SpecError(f"table {table.title!r}: unknown metric {name!r}", hint=near(name, metrics))
    labels = {"model", "metric"}.union(*(score.labels for score in scores))
    of_kind = [label for _, named in (table.kind.labels() if table.kind else ()) for label in named]
    for label in (*table.rows, *table.columns, *table.where, *table.clustering, *of_kind):
        if scores and label not in labels:
            raise SpecError(f"table {table.title!r}: no episode has the label {label!r}", hint=near(label, labels))


# ------------------------------------------------------------------------------------------- cells


def _cell(
    table: TableSpec,
    metrics: Mapping[str, Metric],
    bounds: Mapping[str, Bounds],
    slot: _Slot,
    row_metric: str | None,
    row: Mapping[Key, Sequence[EpisodeScore]],
) -> Cell:
    """Our number for one row and column; the overall column takes in all of the row's episodes."""
    name = slot.metric or row_metric or table.cells[0]
    scores, how = _behind(table, slot.key, slot.metric, row)
    failed = sum(score.failed for score in scores)
    derived = table.derived.get(name)
    if derived is None:
        cell = _statistic(table, (metrics[name], bounds[name]), scores, name, how, failed)
    elif derived.kind == "ratio":
        cell = _ratio(table, scores, name, derived.metrics, failed)
    elif derived.total is not None:
        with _asking(table, derived.total):
            cell = derived.total(scores, failed)
            if not isinstance(cell, Cell):
                from .entry_errors import no_cell  # what only a mistake needs

                raise no_cell(table.title, name, derived, cell)
    else:
        cell = _loss(scores, [(part, metrics[part]) for part in derived.metrics], how, failed)
    return replace(cell, uses_ground_truth=any(score.uses_ground_truth for score in scores))


def _behind(
    table: TableSpec, column: Key | None, metric: str | None, row: Mapping[Key, Sequence[EpisodeScore]]
) -> tuple[Sequence[EpisodeScore], Means]:
    """The episodes behind a row's number in a column, and how their mean is taken; those of all columns if None."""
    if column is not None:
        return row.get(column, ()), table.aggregate
    at = table.columns.index("metric") if metric else None
    scores = [s for key, group in row.items() if at is None or key[at] == metric for s in group]
    return scores, table.overall or table.aggregate


def _statistic(
    table: TableSpec,
    measured: tuple[Metric, Bounds],
    scores: Sequence[EpisodeScore],
    name: str,
    how: Means,
    failed: int,
) -> Cell:
    """A metric's mean, or whatever else its statistic is. `measured`: the metric, and between which numbers it lies."""
    metric, bounds = measured
    stat, groups = _mean(metric, scores, name, how), averaged_first(scores, how)
    strata = [observations(group, name, table.cluster) for group in groups]
    count = stat.n if isinstance(metric, CorpusMetric) else sum(map(len, strata))
    expected = sum(not score.failed and score.withheld != name for score in scores)
    cell = Cell(finite(stat.value), finite(stat.stderr), stat.n, failed, expected - count)
    if isinstance(metric, CorpusMetric) and metric.has_interval:
        cell = replace(cell, missing=expected - len(records(scores, name)))
        return _with_interval(cell, bounds) if error_of(table.uncertainty, name) == "interval" else cell
    return _spread(cell, error_of(table.uncertainty, name), strata, bounds, parts=isinstance(metric, RatioMetric))


def _with_interval(cell: Cell, bounds: Bounds) -> Cell:
    """With the interval that a standard error of so many independent observations gives."""
    if cell.value is None or not cell.n:
        return cell
    if cell.value in bounds and bounds == (0, 1):
        found = stats.wilson(round(cell.value) * cell.n, cell.n)
        return replace(cell, low=found[0], high=found[1], method="wilson") if found else cell
    if not cell.stderr or not (by := stats.interval_around(cell.value, cell.stderr, cell.n - 1, bounds)):
        return cell
    return replace(cell, low=by[0][0], high=by[0][1], method=by[1])


def _ratio(table: TableSpec, scores: Sequence[EpisodeScore], name: str, parts: Sequence[str], failed: int) -> Cell:
    """Sum over sum, of the episodes that have both numbers."""
    top, bottom = parts
    both = [s for s in scores if s.number(top) is not None and s.number(bottom) is not None]
    above, below = ([s.number(part) or 0.0 for s in both] for part in (top, bottom))
    values = linearize([*zip(above, below, strict=True)])
    stat = stats.mean(values)
    cell = Cell(finite(stat.value), finite(stat.stderr), len(both), failed, len(scores) - failed - len(both))
    keys = [(s.model, *cluster_of(s, table.cluster)) for s in both]
    if not values:
        return cell
    kind = error_of(table.uncertainty, name)
    cell = _spread(cell, None, [list(zip(keys, values, strict=True))], parts=True)
    if kind != "interval":
        return cell
    found = stats.fieller(*(list(zip(keys, numbers, strict=True)) for numbers in (above, below)))
    return replace(cell, low=found[0], high=found[1], method="fieller") if found else cell


def _loss(scores: Sequence[EpisodeScore], pair: Sequence[tuple[str, Metric]], how: Means, failed: int) -> Cell:
    """1 − mean of the second over mean of the first; the episodes of the two need not be the same."""
    before, after = (_mean(metric, scores, name, how) for name, metric in pair)
    value = 1 - after.value / before.value if before.value and after.value is not None else None
    return Cell(finite(value), None, min(before.n, after.n), failed, 0)


def _spread(
    cell: Cell,
    kind: ErrorKind | None,
    strata: Sequence[stats.Stratum],
    bounds: tuple[float, float] = UNBOUNDED,
    *,
    parts: bool,
) -> Cell:
    """With the standard error that `cluster` wants and `std`, or `low` and `high`; as it is where its value is not the
    numbers' mean (a total). The parts of a ratio have no deviation."""
    found = stats.clustered(strata)
    if not stats.is_mean(cell.value, found):
        return cell
    stderr = stats.clustered_error(Statistic(cell.value, cell.stderr, cell.n or 0), strata).stderr
    cell = replace(cell, stderr=finite(stderr), borrowed=found.borrowed and stderr is not None)
    if kind == "std" and not parts:
        return replace(cell, std=stats.std([x for stratum in strata for _, x in stratum]))
    if kind != "interval":
        return cell
    if (by := stats.interval_by(strata, bounds)) is None:
        return cell
    (low, high), method = by
    return replace(cell, low=low, high=high, method=method)


def _mean(metric: Metric, scores: Sequence[EpisodeScore], name: str, how: Means) -> Statistic:
    if how == "pooled":
        return aggregate(metric, list(scores), name)
    return stats.mean_of_conditions(aggregate(metric, group, name) for group in averaged_first(scores, how))


def _share(cell: Cell, parts: int) -> Cell:
    """The cell's part of a stack of `parts` whose height is their mean (AgentsNet, Figure 4: up to 20 % a task)."""
    scaled = {f: x / parts for f in ("value", "stderr", "low", "high", "std") if (x := getattr(cell, f)) is not None}
    return replace(cell, **scaled)
