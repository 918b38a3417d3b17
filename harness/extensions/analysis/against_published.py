"""`harness compare RUN --published MODEL`: is a run as the paper has it? Each figure against the run's own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from harness.api.errors import DataError, near
from harness.evaluation.run import Run
from harness.tables import Cell, Column, NumberForm, Row, Table, TableSpec, build, stats, text
from harness.tables.scores import bounds_of

from .amount import Amount
from .equivalence import Equivalence, tost
from .paired_table import equivalence_in_words
from .published_beside import cited

_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "run": ("run", "quantity"),
    "paper": ("paper", "quantity"),
    "difference": ("run − paper", "quantity"),
    "p": ("p", "pvalue"),
    "p_holm": ("p (Holm)", "pvalue"),
    "p_tost": ("p (TOST)", "pvalue"),
}


@dataclass(frozen=True, slots=True)
class _Figure:
    """One published figure beside the run's number for the same cell."""

    names: tuple[str, ...]
    metric: str
    ours: Cell
    theirs: Cell
    bounds: tuple[float, float]

    @property
    def difference(self) -> float:
        return (self.ours.value or 0.0) - (self.theirs.value or 0.0)

    @property
    def error(self) -> float | None:
        """The standard error of the difference; None if the run's own is not known."""
        own = _error(self.ours, self.bounds)
        return math.hypot(own, _error(self.theirs, self.bounds) or 0.0) if own else None

    @property
    def is_exact(self) -> bool:
        """Whether the paper says nothing of how sure its figure is."""
        return _error(self.theirs, self.bounds) is None


def _error(cell: Cell, bounds: tuple[float, float]) -> float | None:
    """A cell's standard error. Of shares that say none, or 0, what four more observations make of it, half of them at
    each end (Agresti and Coull, 1998)."""
    if cell.stderr:
        return cell.stderr
    if cell.std and cell.n:
        return cell.std / math.sqrt(cell.n)
    if bounds != (0, 1) or cell.value is None or not cell.n:
        return None
    share = (cell.value * cell.n + 2) / (cell.n + 4)
    return math.sqrt(share * (1 - share) / (cell.n + 4))


def as_published(run: Run, model: str, margin: Amount | None) -> list[Table]:
    """A table for each of the run's tables that cites a publication with figures of this model.

    Raises:
        DataError: if the spec cites no publication, or none has the model; if the run has several models.
    """
    figures = {table.id: table for table in run.published()}
    entries = [table for table in run.table_specs if any(name in figures for name in table.published)]
    if not entries:
        raise DataError(f"{run.spec.name} cites no published table", hint="A table of a spec names them: published:.")
    if len(played := {score.model for score in run.scores}) > 1:
        raise DataError(f"the run has several models: {', '.join(sorted(played))}")
    shown = [figures[name] for entry in entries for name in entry.published if name in figures]
    known = {text(one.labels["model"]) for table in shown for one in table.records if "model" in one.labels}
    if model not in known:
        raise DataError(f"no published figure is of a model called {model!r}", hint=near(model, known))
    tables = []
    for entry in entries:
        own = replace(
            entry, rows=("model", *entry.rows) if "model" not in (*entry.rows, *entry.columns) else entry.rows
        )
        beside = cited(replace(own, uncertainty="sem"), figures.values())
        found = _figures(build(beside, run.scores, run.metrics), own, run, model)
        if found:
            notes = _sources(entry, figures)
            tables.append(_table(f"{entry.title}: as published of {model}?", own, found, margin, notes))
    if not tables:
        raise DataError(f"the run has no number for any published figure of {model}", hint="Other cases, or metrics.")
    return tables


def _figures(table: Table, entry: TableSpec, run: Run, model: str) -> list[_Figure]:
    """The cells that both have, in order."""
    cells: dict[tuple[str, ...], dict[bool, Cell]] = {}
    names: dict[tuple[str, ...], tuple[tuple[str, ...], str]] = {}
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            labels = {**row.key, **column.key}
            if cell.value is None or (row.published is not None and text(labels.get("model")) != model):
                continue
            metric = column.metric or row.metric or entry.cells[0]
            where = {name: text(value) for name, value in labels.items() if name not in ("model", "metric")}
            key = (metric, str(column.overall), *(f"{name}={value}" for name, value in where.items()))
            cells.setdefault(key, {})[row.published is not None] = cell
            shown = " ".join([*where.values(), *([entry.overall_title] if column.overall else [])])
            names.setdefault(key, ((shown or "all", metric), metric))
    bounds = {
        metric: bounds_of(run.metrics[metric], run.scores, metric) for metric in entry.cells if metric in run.metrics
    }
    return [
        _Figure(*names[key], both[False], both[True], bounds.get(names[key][1], (-math.inf, math.inf)))
        for key, both in cells.items()
        if len(both) == 2
    ]


def _table(
    title: str, entry: TableSpec, found: Sequence[_Figure], margin: Amount | None, notes: Iterable[str]
) -> Table:
    tests = [_tested(one, margin) for one in found]
    holm = iter(stats.holm([pvalue for pvalue, _, _ in tests if pvalue is not None]))
    rows = []
    for one, (pvalue, ends, same) in zip(found, tests, strict=True):
        low, high = ends or (None, None)
        numbers = [
            replace(one.ours, low=None, high=None),
            one.theirs,
            Cell(one.difference, n=one.ours.n, low=low, high=high),
            Cell(pvalue, n=one.ours.n),
            Cell(None if pvalue is None else next(holm), n=one.ours.n),
            *([Cell(same.pvalue if same else None, n=one.ours.n)] if margin else []),
        ]
        rows.append(Row({"cell": one.names[0], "metric": one.metric}, one.names, tuple(numbers), one.metric))
    shown = {name: form for name, form in _COLUMNS.items() if margin or name != "p_tost"}
    exact = sum(one.is_exact for one in found)
    lines = [
        "In brackets: the 95 % interval of the difference. p: a t test of it; p (Holm): after Holm's correction for "
        "all tests of the table. The two are independent: nothing is paired.",
        *([f"{exact} of {len(found)} figures have no error in the paper, and count as exact."] if exact else []),
    ]
    if margin:
        named = {" ".join(one.names): same for one, (_, _, same) in zip(found, tests, strict=True)}
        lines += equivalence_in_words(named, str(margin))
        if all(one is not None and one.verdict == "same" for one in named.values()):
            lines.append(
                f"As published within ±{margin} as a whole, at 0.05: every figure is (no correction is needed)."
            )
    return Table(
        title=title,
        row_labels=("cell", "metric"),
        column_labels=("statistic",),
        columns=tuple(Column({"statistic": name}, (text,), form=form) for name, (text, form) in shown.items()),
        rows=tuple(rows),
        row_names=("Cell", "Metric"),
        error="interval",
        digits=3,
        notes=(*lines, *notes),
    )


def _tested(one: _Figure, margin: Amount | None) -> tuple[float | None, stats.Interval | None, Equivalence | None]:
    """(p-value, 95 % interval, equivalence) of a difference."""
    if (error := one.error) is None:
        return None, None, None
    df = max(1, (one.ours.n or 2) - 1)
    from scipy.special import stdtr  # without scipy.stats, which takes a second to import

    pvalue = 2 * float(stdtr(df, -abs(one.difference) / error))
    half, width = stats.t_quantile(df) * error, one.bounds[1] - one.bounds[0]
    fits = margin is not None and (math.isfinite(width) or not margin.is_share)
    same = tost(one.difference, error, df, margin.of(width, one.metric)) if margin is not None and fits else None
    return pvalue, (max(-width, one.difference - half), min(width, one.difference + half)), same


def _sources(entry: TableSpec, figures: Mapping[str, Any]) -> Iterable[str]:
    for name in entry.published:
        if name in figures:
            yield f"† published: {figures[name].source}; not run here."
            if figures[name].differs:
                yield f"† {figures[name].differs}"
            yield from (f"† {warning}" for warning in figures[name].warnings)
