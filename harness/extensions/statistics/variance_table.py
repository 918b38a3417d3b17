"""`kind: variance_components`, a table of what makes numbers vary: the case, the repeat, the model on that case, …"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, TypedDict

from harness.api import CorpusMetric, Metric
from harness.extensions.analysis.compare_table import BESIDE
from harness.tables import HeadlineSpec, TableKind
from harness.tables.axis import Axis, Key
from harness.tables.entry import Names
from harness.tables.notes import clusters_in_words, of_statistics
from harness.tables.scores import EpisodeScore
from harness.tables.spec import TableSpec, as_tuple, beside
from harness.tables.table import Cell, Column, NumberForm, Row, Table

from .components import Component
from .design import CASE, CONDITION, REST, Design, design

KIND: Final = "variance_components"
_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "levels": ("levels", "count"),
    "sd": ("standard deviation", "quantity"),
    "share": ("share of variance", "share"),
}


class VarianceEntry(TypedDict, total=False):
    """The keys of a table of variance components."""

    factors: Annotated[
        Names, "labels whose values are random effects beside the case, such as who sits where: `factors: first`"
    ]


@dataclass(frozen=True, slots=True)
class VarianceComponents(TableKind):
    """The labels whose values are random effects beside the case."""

    entry: ClassVar[Any] = VarianceEntry
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic", "component"})

    factors: tuple[str, ...] = ()

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> VarianceComponents:
        """Read `factors:`."""
        return cls(as_tuple(entry.get("factors", ())))

    @classmethod
    def proposed(cls, headline: HeadlineSpec) -> Mapping[str, Any]:
        """The components of the headline."""
        return {
            "title": f"What makes {headline.name} vary",
            "metrics": headline.metric,
            **(
                {"where": {label: [*values] for label, values in headline.table.where.items()}}
                if headline.where
                else {}
            ),
        }

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The factors."""
        yield "factors", dict.fromkeys(self.factors, ())

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of components."""
        mistakes = beside(table, f"kind: {KIND}", {**BESIDE, "columns": "its columns are statistics"})
        words = {
            "metric": "use metrics: to choose metrics",
            CASE: "the case is always one",
            "model": "models are fixed",
        }
        mistakes += [f"factors: {why}" for label, why in words.items() if label in self.factors]
        mistakes += [
            f"factors: {x!r} is in rows, and a row has one value of it" for x in self.factors if x in table.rows
        ]
        if "episode" in table.cluster:
            mistakes.append("cluster: with every episode an observation of its own nothing is repeated")
        return mistakes

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """Metrics without a number an episode."""
        known = metrics if isinstance(metrics, Mapping) else {}
        whole = [name for name in table.cells if isinstance(known.get(name), CorpusMetric)]
        return [f"metrics: {name} is a number of all episodes together, so nothing of it varies" for name in whole]

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """A row for each component of each row key and metric; the last is what repeats of a case differ in."""
        labels = (*table.rows, "metric") if len(table.cells) > 1 and "metric" not in table.rows else table.rows
        axis = Axis(labels, table)
        groups: dict[Key, tuple[str, list[EpisodeScore]]] = {}
        for score, metric in itertools.product(scores, table.cells):
            groups.setdefault(axis.key({**score.labels, "metric": metric}), (metric, []))[1].append(score)
        found = {
            key: (groups[key][0], design(groups[key][1], groups[key][0], table.cluster, self.factors))
            for key in axis.sorted(groups)
        }
        rows = [
            row
            for key, (metric, one) in found.items()
            for row in _rows(axis, key, metric, one, any(s.uses_ground_truth for s in groups[key][1]))
        ]
        return Table(
            title=table.title,
            row_labels=(*axis.labels, "component"),
            column_labels=("statistic",),
            columns=tuple(Column({"statistic": name}, (title,), form=form) for name, (title, form) in _COLUMNS.items()),
            rows=tuple(rows),
            row_names=tuple(map(axis.title, (*axis.labels, "component"))),
            error="interval",
            digits=table.digits,
            unit=table.unit,
            notes=tuple(dict.fromkeys(_notes(table, axis, found, scores))),
        )


def _rows(axis: Axis, key: Key, metric: str, one: Design, informed: bool) -> Iterable[Row]:
    found = one.found
    if found is None:
        return
    for name, component in [*found.parts.items(), (REST, found.rest)]:
        title = name
        if name == REST and CASE in found.alike:
            title = f"{CASE} and {REST}"
        cells = (
            Cell(component.levels, n=found.n, uses_ground_truth=informed),
            _deviation(component, found.n, informed),
            Cell(found.share(None if name == REST else name), n=found.n, uses_ground_truth=informed),
        )
        names = (*map(axis.title, key), axis.title(title))
        yield Row({**axis.values(key), "component": title}, names, cells, metric)


def _deviation(component: Component, n: int, informed: bool) -> Cell:
    low, high = (math.sqrt(end) for end in component.interval) if component.interval else (None, None)
    value = math.sqrt(max(0.0, component.variance))
    return Cell(value, n=n, low=low, high=high, uses_ground_truth=informed)


# ------------------------------------------------------------------------------------------- notes


def _notes(
    table: TableSpec, axis: Axis, found: Mapping[Key, tuple[str, Design]], scores: Sequence[EpisodeScore]
) -> Iterable[str]:
    yield from of_statistics(table, scores)
    if not scores:
        return
    what = f" (a case: {clusters_in_words(table)})" if table.cluster else ""
    yield (
        "Standard deviations of random effects around the mean of each model in each condition, with 95 % jackknife "
        f"intervals over cases{what}; shares add up to all that varies (MIVQUE(0), unbiased in unbalanced designs)."
    )
    yield f"{REST}: how one repeat of a case differs from the next: sampling, and all that is drawn anew."
    for key, (metric, one) in found.items():
        where = f"{', '.join(map(axis.title, key))}: " if len(found) > 1 else ""
        if one.found is None:
            yield f"{where}too few numbers of {metric} for components."
            continue
        yield from (f"{where}{line}" for line in advice(one))
        if lower := [name for name, part in one.found.parts.items() if part.variance < 0]:
            yield f"{where}{', '.join(lower)}: estimated below 0, shown as 0."
        if alike := [name for name in one.found.alike if name != CASE]:
            yield f"{where}{', '.join(alike)}: cannot be told from the other components here."


def advice(one: Design, digits: int = 2) -> Iterable[str]:
    """More cases or more repeats? In words, for a model's mean, and for the difference of two on the same cases."""
    if one.unit is None:
        yield (
            "More cases or more repeats? Each case has one episode in a condition: the two cannot be told apart. "
            "`--set repeats=2` plays each again."
        )
        return
    for what, unit, factor in (
        ("The standard error of a model's mean", one.of_unit, 1),
        ("That of the difference between two models on the same cases", one.own, 2),
    ):
        if factor == 2 and one.models < 2:
            continue
        yield f"{'More cases or more repeats? ' * (factor == 1)}{what} {_twice(unit * factor, one.rest * factor, one)}"


def _twice(unit: float, rest: float, one: Design) -> str:
    """What twice as many cases make of a standard error, and twice as many repeats.

    Args:
        unit: variance of the mean of a unit over its conditions, which no repeat makes smaller.
        rest: that of one number, which each of a unit's conditions and repeats makes smaller.
        one: how many there are.
    """
    now, cases, repeats = (
        math.sqrt((unit + rest / (one.averaged[REST] * again)) / (one.units * more))
        for more, again in ((1, 1), (2, 1), (1, 2))
    )
    if not now:
        return "is 0: nothing varies."
    gained = (now - repeats) / (now - cases)
    verdict = (
        "repeats are as good as cases"
        if gained > 0.9
        else "more cases; more repeats hardly help"
        if gained < 0.25
        else f"more cases; repeats bring {100 * gained:.0f} % of that, where there are no more cases"
    )
    shared = one.averaged[CONDITION]
    conditions = f" in {shared:.3g} conditions" if shared > 1 else ""
    each = f"{one.repeats:.3g} repeat{'s' * (one.repeats != 1)}"
    return (
        f"is {now:.2g} with {one.units:,} cases{conditions}, {each} each; twice the cases make it {cases:.2g}, "
        f"twice the repeats {repeats:.2g}: {verdict}."
    )
