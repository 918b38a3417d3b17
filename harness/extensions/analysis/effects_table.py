"""`effects:`, a table of main effects: how much each of several choices moves a number."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, TypedDict

from harness.api import Metric, RatioMetric
from harness.api.errors import SpecError
from harness.tables import TableKind, stats
from harness.tables.axis import Axis, Key
from harness.tables.entry import Names
from harness.tables.notes import clusters_in_words, of_statistics
from harness.tables.scores import EpisodeScore, bounds_of, cluster_of, finite, observations
from harness.tables.spec import TableSpec, as_tuple, beside
from harness.tables.table import Cell, Column, NumberForm, Row, Table, text

from .compare_table import BESIDE
from .effects_model import Fit, Term, fit, many_levels

_COLUMNS: Final[dict[str, tuple[str, NumberForm]]] = {
    "n": ("n", "count"),
    "mean": ("mean", "quantity"),
    "difference": ("difference", "quantity"),
    "share": ("share of variance", "share"),
    "f": ("F", "plain"),
    "df": ("df", "plain"),
    "df_error": ("df (error)", "plain"),
    "p": ("p", "pvalue"),
    "p_holm": ("p (Holm)", "pvalue"),
}
"""Statistic → its column's title and form."""
GRAND: Final = "grand mean"


class EffectsEntry(TypedDict, total=False):
    """The keys of a table of effects."""

    effects: Annotated[
        Names,
        "a label or a list of distinct labels: how much the values of each move the numbers, instead of columns",
    ]
    interactions: Annotated[bool, "true or false: with effects, also a test for each pair of labels"]


@dataclass(frozen=True, slots=True)
class Effects(TableKind):
    """The labels whose effects are estimated, and whether those of pairs are tested."""

    entry: ClassVar[Any] = EffectsEntry
    needs: ClassVar[tuple[str, ...]] = ("effects", "metrics")
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic", "factor", "level"})

    factors: tuple[str, ...]
    interactions: bool = False

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Effects:
        """Read `effects:` and `interactions:`."""
        return cls(as_tuple(entry["effects"]), entry.get("interactions", False))

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The factors."""
        yield "effects", dict.fromkeys(self.factors, ())

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of effects."""
        mistakes = ["effects: use metrics: to choose metrics, each has effects of its own"] * ("metric" in self.factors)
        mistakes += [
            f"effects: {label!r} is in rows, and a row has one value of it"
            for label in self.factors
            if label in table.rows
        ]
        alone = [label for label in self.factors if len(table.where.get(label, "ab")) == 1]
        mistakes += [f"effects: where leaves {label} one value: there is nothing to compare" for label in alone]
        if self.interactions and len(self.factors) < 2:
            mistakes.append("interactions: effects needs two labels or more, whose pairs are tested")
        return beside(table, "effects", BESIDE) + mistakes

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """Labels of too many values: numbers that count, such as those of cases."""
        return many_levels(self.factors, labels)

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `effects`."""
        return effects(table, metrics, scores)


def _of(table: TableSpec) -> Effects:
    """What the table's entry says about effects."""
    assert isinstance(table.kind, Effects)
    return table.kind


@dataclass(frozen=True, slots=True)
class _Analysis:
    """The model of one row key and one metric."""

    key: Key
    metric: str
    scores: Sequence[EpisodeScore]
    used: Sequence[EpisodeScore]
    levels: Mapping[str, Sequence[Any]]
    counts: Mapping[str, Counter[str]]
    fit: Fit
    width: float

    @property
    def tests(self) -> tuple[Term, ...]:
        return (*self.fit.terms, *self.fit.pairs)


def effects(table: TableSpec, metrics: Mapping[str, Metric], scores: Sequence[EpisodeScore]) -> Table:
    """For each row key and metric the effects of the labels of `effects:` (`model.fit`).

    A label has one row with its test, and one for each of its values. The last row is the grand mean. Errors take
    episodes of the same case as one observation, whatever their condition, unless `cluster` says otherwise. Holm's
    correction runs over all tests of the table. All cells of a row that have no meaning there are blank.

    Args:
        table: what to show.
        metrics: name → metric.
        scores: the episodes that its `where` lets through.

    Raises:
        SpecError: for a label of too many values.
    """
    table = replace(table, cluster=table.cluster or ("case",))
    rows = Axis(_row_labels(table, scores), table)
    analyses = _analyses(table, rows, scores, metrics)
    holm = iter(stats.holm([test.pvalue for one in analyses for test in one.tests if test.pvalue is not None]))
    filled = [row for one in analyses for row in _Rows(table, rows, one, holm).rows()]
    return Table(
        title=table.title,
        row_labels=(*rows.labels, "factor", "level"),
        column_labels=("statistic",),
        columns=tuple(
            Column({"statistic": name}, (rows.title(title),), form=form) for name, (title, form) in _COLUMNS.items()
        ),
        rows=tuple(filled),
        row_names=tuple(map(rows.title, (*rows.labels, "factor", "level"))),
        error="interval",
        digits=table.digits,
        unit=table.unit,
        notes=tuple(dict.fromkeys(_notes(table, metrics, analyses, scores))),
    )


def _row_labels(table: TableSpec, scores: Sequence[EpisodeScore]) -> tuple[str, ...]:
    """The entry's row labels, and those with several values of which each needs its own model: players, metrics."""
    labels = table.rows
    if len({score.model for score in scores}) > 1 and "model" not in (*labels, *_of(table).factors):
        labels = ("model", *labels)
    return (*labels, "metric") if len(table.cells) > 1 and "metric" not in labels else labels


def _analyses(
    table: TableSpec, rows: Axis, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]
) -> list[_Analysis]:
    groups: dict[Key, tuple[str, list[EpisodeScore]]] = {}
    for score, metric in itertools.product(scores, table.cells):
        groups.setdefault(rows.key({**score.labels, "metric": metric}), (metric, []))[1].append(score)
    bounds = {name: bounds_of(metrics[name], scores, name) for name in table.cells}
    widths = {name: high - low for name, (low, high) in bounds.items()}
    return [_analysis(table, key, *groups[key], widths[groups[key][0]]) for key in rows.sorted(groups)]


def _analysis(table: TableSpec, key: Key, metric: str, scores: Sequence[EpisodeScore], width: float) -> _Analysis:
    """The model of these episodes. `width`: how far two numbers can be apart, and so the ends of an interval."""
    has = EpisodeScore.parts if any(score.parts(metric) for score in scores) else EpisodeScore.number
    used = [score for score in scores if has(score, metric) is not None]
    levels: dict[str, list[Any]] = {}
    places: list[list[int]] = []
    counts: dict[str, Counter[str]] = {}
    for label in _of(table).factors:
        present = [text(score.labels.get(label)) for score in used]
        raw = {text(value): value for score in scores if (value := score.labels.get(label)) is not None}
        counts[label] = Counter(present)
        first = [value for value in table.order.get(label, ()) if value in raw]
        listed = list(dict.fromkeys([*first, *raw, *counts[label]]))
        if wrong := many_levels([label], {label: listed}):
            raise SpecError(f"table {table.title!r}: {wrong[0]}")
        found = {value: i for i, value in enumerate(value for value in listed if counts[label][value])}
        levels[label] = [raw.get(value) for value in listed]
        places.append([found[value] for value in present])
    values = [x for _, x in observations(used, metric, table.cluster)]
    clusters = [cluster_of(score, table.cluster) for score in used]
    fitted = fit(values, places, clusters, pairs=_of(table).interactions)
    return _Analysis(key, metric, scores, used, levels, counts, fitted, width)


class _Rows:
    """Makes the rows of one analysis."""

    def __init__(self, table: TableSpec, rows: Axis, one: _Analysis, holm: Iterable[float]) -> None:
        self._table, self._axis, self._one, self._holm = table, rows, one, holm
        self._informed = any(score.uses_ground_truth for score in one.scores)

    def rows(self) -> Iterable[Row]:
        """The factors with their values, the pairs, the grand mean."""
        one, table = self._one, self._table
        total = len(one.used)
        for label, term in zip(_of(table).factors, one.fit.terms, strict=True):
            yield self._row(label, None, "", {"n": total, **self._test(term)})
            estimates = iter(term.levels)
            for value in one.levels[label]:
                name = text(value)
                count = one.counts[label][name]
                level = next(estimates, None) if count else None
                cells = {"n": count, "mean": level.mean if level else None}
                cells["difference"] = level.difference if level else None
                yield self._row(label, value, name, cells, level.interval if level else None)
        for (first, second), term in zip(itertools.combinations(_of(table).factors, 2), one.fit.pairs, strict=False):
            title = f"{self._axis.title(first)} × {self._axis.title(second)}"
            yield self._row(f"{first} × {second}", None, "", {"n": total, **self._test(term)}, title=title)
        yield self._row(GRAND, None, "", {"n": total, "mean": one.fit.mean})

    def _test(self, term: Term) -> dict[str, float | None]:
        if term.pvalue is None:
            return {"share": term.share, "f": None, "df": None, "df_error": None, "p": None, "p_holm": None}
        degrees, error = term.df or (None, None)
        tested = {"share": term.share, "f": term.statistic, "df": degrees, "df_error": error, "p": term.pvalue}
        return {**tested, "p_holm": next(iter(self._holm))}

    def _row(
        self,
        factor: str,
        value: Any,
        name: str,
        numbers: Mapping[str, float | None],
        interval: stats.Interval | None = None,
        title: str | None = None,
    ) -> Row:
        one, n = self._one, int(numbers["n"] or 0)
        cells = []
        for statistic in _COLUMNS:
            cell = Cell(n=n, uses_ground_truth=self._informed, blank=statistic not in numbers)
            if not cell.blank:
                cell = replace(cell, value=finite(numbers[statistic]))
            if statistic == "difference" and interval is not None:
                cell = replace(cell, low=max(interval[0], -one.width), high=min(interval[1], one.width))
            cells.append(cell)
        names = (*map(self._axis.title, one.key), title or self._axis.title(factor), self._axis.title(name))
        key = {**self._axis.values(one.key), "factor": factor, "level": value}
        return Row(key, names, tuple(cells), one.metric)


# ------------------------------------------------------------------------------------------- notes


def _notes(
    table: TableSpec, metrics: Mapping[str, Metric], analyses: Sequence[_Analysis], scores: Sequence[EpisodeScore]
) -> Iterable[str]:
    yield from of_statistics(table, scores)
    if not scores:
        return
    for metric in table.cells:
        if isinstance(metrics[metric], RatioMetric):
            yield f"{metric} is a ratio: its effects are those of its linear form at the ratio of all episodes."
    yield (
        "mean: where the values of all other factors weigh the same; difference: mean − grand mean, in brackets its "
        "95 % interval; share of variance: what the factor explains of the numbers' variance."
    )
    low, high = (ends([one.fit.clusters for one in analyses]) for ends in (min, max))
    count = f"{low}" if low == high else f"{low} to {high}"
    if "episode" in table.cluster:
        yield f"Standard errors and tests treat episodes as independent ({count} of them)."
    else:
        whole = "episodes of a case" if table.cluster == ("case",) else clusters_in_words(table)
        yield f"Standard errors and tests treat {whole} as one observation (clustered, {count} of them)."
    tests = [(one, test) for one in analyses for test in one.tests]
    done = sum(test.pvalue is not None for _, test in tests)
    if done:
        listed = "the one test" if done == 1 else f"all {done} tests"
        yield (
            "p: an F test that all values of a factor have one mean (as in an analysis of variance of repeated "
            f"measures); p (Holm): after Holm's correction for {listed} in this table."
        )
    if _of(table).interactions:
        yield "×: whether the effect of one factor depends on the other, in a model of all pairs."
    for one in analyses:
        where = f"{', '.join(table.labels.get(name, name) for name in one.key)}: " if len(analyses) > 1 else ""
        yield from (f"{where}{line}" for line in _gaps(table, one))


_REASONS: Final = {
    "alone": "one value only",
    "entangled": "the values go along with those of other factors, so that their effects cannot be separated",
    "few": "too few observations for intervals and a test (each value needs two)",
    "flat": "the effect is the same in every observation, so there is no test",
}


def _gaps(table: TableSpec, one: _Analysis) -> Iterable[str]:
    """Why numbers are missing, and how far the design is from a full one."""
    if not one.used:
        return
    titles = [table.labels.get(label, label) for label in _of(table).factors]
    pairs = (f"{first} × {second}" for first, second in itertools.combinations(titles, 2))
    names = [*titles, *(pairs if _of(table).interactions else ())]
    for reason, words in _REASONS.items():
        if listed := [name for name, term in zip(names, one.tests, strict=True) if term.reason == reason]:
            yield f"{', '.join(listed)}: {words}."
    for title, label in zip(titles, _of(table).factors, strict=True):
        absent = [text(value) for value in one.levels[label] if not one.counts[label][text(value)]]
        if absent:
            yield f"{title} {', '.join(table.labels.get(value, value) for value in absent)}: no episode has a number."
    cells = Counter(tuple(text(score.labels.get(label)) for label in _of(table).factors) for score in one.used)
    every = math.prod(max(1, sum(count > 0 for count in one.counts[label].values())) for label in _of(table).factors)
    if cells and len(cells) < every:
        yield f"{every - len(cells)} of {every} combinations of values have no number: the model fills the gaps."
    elif len(set(cells.values())) > 1:
        low, high = min(cells.values()), max(cells.values())
        yield f"Combinations of values have {low} to {high} episodes; means and differences are adjusted for that."
