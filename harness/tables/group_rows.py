"""The rows of groups: means over data sets, subjects or other values of a row label.

The two means and their standard errors are those that lm-eval prints for its groups (`aggregate_metric_list`,
`weight_by_size`), so they are computed from the rows' own values, errors and counts. Only where several numbers are of
one observation, such as a question that all rows share, errors come from the episodes, clustered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.api import UNBOUNDED

from .axis import Key
from .stats import Stratum, clustered, interval_around, interval_by, is_mean
from .table import Cell, ErrorKind, Row, error_of

Weight = Literal["size", "equal"]
"""How the rows of a group count: by their observations (micro mean), or all the same (macro mean)."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are shown together as one more row.

    Attributes:
        title: the group's name, which stands where the rows have their value of the label.
        members: the label's values, as text, in the order of the entry; those of other groups are in their place.
        weight: how the rows count.
        cells: the metrics that the row shows; empty: all.
    """

    title: str
    members: tuple[str, ...]
    weight: Weight = "size"
    cells: tuple[str, ...] = ()


def label_of(rows: Sequence[str]) -> str | None:
    """The row label whose values groups name: the first one that is neither "model" nor "metric"."""
    return next((label for label in rows if label not in ("model", "metric")), None)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Makes the rows of groups.

    Attributes:
        groups: the groups of the table.
        labels: the table's row labels.
        titles: value → what readers see for it.
        error: the kinds of error that the table shows.
        summed: names of cells that have no mean over rows: costs and losses.
        only: the table's metric where neither rows nor columns say which.
        bounds: metric → smallest and largest possible number.
        observed: key of a row, place of a column, metric → the observations of each condition behind the number.
    """

    groups: Sequence[RowGroup]
    labels: Sequence[str]
    titles: Mapping[str, str]
    error: Any
    summed: frozenset[str]
    only: str
    bounds: Mapping[str, tuple[float, float]]
    observed: Callable[[Key, int, str], list[Stratum]] = lambda row, at, metric: []

    def rows(self, rows: Mapping[tuple[str, ...], Row], columns: Sequence[str | None]) -> tuple[list[Row], list[str]]:
        """A row for every group and every combination of the other labels, and what a reader must know about them.

        Args:
            rows: values of the row labels, as text → row; without rows of published figures.
            columns: the metric of each column, None if rows say it.
        """
        place = list(self.labels).index(label_of(self.labels) or "")
        apart: dict[tuple[str, ...], dict[str, Row]] = {}
        for key, row in rows.items():
            apart.setdefault((*key[:place], *key[place + 1 :]), {})[key[place]] = row
        done, notes = [], list(self._explained())
        for rest, by_name in apart.items():
            for group in self.groups:
                members = {(*rest[:place], x, *rest[place:]): by_name[x] for x in group.members if x in by_name}
                if members:
                    row, about = self._row(group, members, columns, place)
                    done.append(row)
                    notes += [*about, *self._gaps(group, by_name, columns)]
        return done, list(dict.fromkeys(notes))

    def _row(
        self, group: RowGroup, members: Mapping[Key, Row], columns: Sequence[str | None], place: int
    ) -> tuple[Row, list[str]]:
        first, notes = next(iter(members.values())), list[str]()
        names = (*first.names[:place], self.titles.get(group.title, group.title), *first.names[place + 1 :])
        cells = []
        for i, column in enumerate(columns):
            metric = column or first.metric or self.only
            if not self._has(group, metric):
                cells.append(Cell())
                continue
            cell = self._cell(group, metric, [row.cells[i] for row in members.values()])
            strata = [self.observed(key, i, metric) for key in members]
            if cell.stderr is not None and _share_observations(strata):
                cell = self._clustered(cell, group, metric, strata)
                what = "their errors are clustered" if cell.stderr is not None else "so it has no error"
                notes.append(f"{group.title}: some numbers of {metric} are of one observation; {what}.")
            cells.append(cell)
        key = {**first.key, self.labels[place]: group.title}
        return Row(key, names, tuple(cells), first.metric, group=group.weight), notes

    def _clustered(self, cell: Cell, group: RowGroup, metric: str, rows: Sequence[Sequence[Stratum]]) -> Cell:
        """With the error that the episodes give; without one where the cell is not their mean."""
        strata = [stratum for row in rows for stratum in row]
        if group.weight == "size":
            strata = [[pair for stratum in strata for pair in stratum]]
        found, bounds = clustered(strata), self.bounds.get(metric, UNBOUNDED)
        cell = replace(cell, stderr=None, low=None, high=None, method=None)
        if not is_mean(cell.value, found):
            return cell
        cell = replace(cell, stderr=found.stderr)
        within = bounds if all(bounds[0] <= x <= bounds[1] for stratum in strata for _, x in stratum) else UNBOUNDED
        if error_of(self.error, metric) != "interval" or (by := interval_by(strata, within)) is None:
            return cell
        return replace(cell, low=by[0][0], high=by[0][1], method=by[1])

    def _has(self, group: RowGroup, metric: str) -> bool:
        return metric not in self.summed and (not group.cells or metric in group.cells)

    def _cell(self, group: RowGroup, metric: str, cells: Sequence[Cell]) -> Cell:
        kind = error_of(self.error, metric)
        return combined(cells, group.weight, kind, self.bounds.get(metric, UNBOUNDED))

    def _explained(self) -> Iterable[str]:
        weights = dict.fromkeys(group.weight for group in self.groups)
        words = {"size": "weighted by their observations (micro)", "equal": "all of which count the same (macro)"}
        for weight in weights:
            titles = ", ".join(self.titles.get(g.title, g.title) for g in self.groups if g.weight == weight)
            yield f"{titles}: the mean of the group's rows, {words[weight]}."
        if any(error_of(self.error, metric) == "interval" for metric in self.bounds):
            yield "The intervals of groups are those of the means of their rows."

    def _gaps(self, group: RowGroup, by_name: Mapping[str, Row], columns: Sequence[str | None]) -> Iterable[str]:
        """Which members have no number where others have one."""
        for i, column in enumerate(columns):
            filled = [name for name in group.members if name in by_name and by_name[name].cells[i].value is not None]
            metric = column or next(iter(by_name.values())).metric or self.only
            absent = [name for name in group.members if name not in filled]
            if filled and absent and self._has(group, metric):
                listed = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
                yield f"{group.title}: no {metric} of {listed}; the mean is that of the other rows."


def _share_observations(rows: Sequence[Sequence[Stratum]]) -> bool:
    """Whether rows have observations in common, or several numbers of one."""
    keys = [cluster for row in rows for stratum in row for cluster, _ in stratum]
    return len({*keys}) < len(keys)


def combined(
    cells: Sequence[Cell],
    weight: Weight,
    kind: ErrorKind | None = None,
    bounds: tuple[float, float] = UNBOUNDED,
) -> Cell:
    """The mean of cells with its standard error; cells without a value are left out.

    - `size`: Σ nᵢvᵢ / Σ nᵢ. Its error takes the members for samples with means of their own and one variance, the
      pooled s² = Σ (nᵢ − 1)sᵢ² / Σ (nᵢ − 1) with sᵢ² = nᵢ·SEᵢ², and is s/√Σ nᵢ (Wikipedia, "Pooled variance").
    - `equal`: Σ vᵢ / k, and SE = √Σ SEᵢ² / k, the error of a mean of independent numbers.

    These are the numbers that lm-eval prints for a group (`weight_by_size: true`, `false`), summed in the same order.
    A value without an error leaves the mean without one. With `kind` "interval", `low` and `high` are those of
    `interval_around` for SE and Σ (nᵢ − 1) degrees of freedom; there are none where SE is 0.
    """
    filled = [cell for cell in cells if cell.value is not None]
    sizes = [cell.n or 0 for cell in filled]
    empty = Cell(
        n=sum(sizes),
        failed=sum(cell.failed for cell in cells),
        missing=sum(cell.missing for cell in cells),
        uses_ground_truth=any(cell.uses_ground_truth for cell in cells),
    )
    weights = sizes if weight == "size" else [1] * len(filled)
    if not sum(weights):
        return empty
    value = sum((cell.value or 0.0) * w for cell, w in zip(filled, weights, strict=True)) / sum(weights)
    errors = [cell.stderr for cell in filled if cell.stderr is not None]
    stderr, df = None, sum(sizes) - len(sizes)
    if len(errors) < len(filled):
        pass
    elif weight == "equal":
        stderr = math.sqrt(sum(error**2 for error in errors)) / len(errors)
    elif df > 0:
        pooled = sum((n - 1) * error**2 * n for n, error in zip(sizes, errors, strict=True)) / df
        stderr = math.sqrt(pooled / sum(sizes))
    cell = replace(empty, value=value, stderr=stderr)
    if kind != "interval" or not stderr or df < 1:
        return cell
    within = bounds if all(bounds[0] <= (cell.value or 0.0) <= bounds[1] for cell in filled) else UNBOUNDED
    if (found := interval_around(value, stderr, df, within)) is None:
        return cell
    (low, high), method = found
    return replace(cell, low=low, high=high, method=method)
