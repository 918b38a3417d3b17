"""What a reader must know beside a table's numbers."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Final

from harness.api import UNBOUNDED, Metric, RatioMetric
from harness.plugins.approvals import is_installed
from harness.plugins.manifests import offers
from harness.storage import UNANSWERED

from .scores import INNER_LIMITED, NOT_RUN, EpisodeScore, by_condition, cluster_of, numbers, records
from .spec import TableSpec
from .stats import IntervalMethod
from .table import SIMULATED, Cell, ErrorKind, Row, Table, error_of, text

_ERRORS: Final[dict[ErrorKind, str]] = {
    "sem": "standard error",
    "std": "population standard deviation",
    "interval": "95 % interval",
}
_INTERVALS: Final[dict[frozenset[IntervalMethod], str]] = {
    frozenset(): "95 % interval",
    frozenset({"wilson"}): "95 % Wilson interval",
    frozenset({"effective"}): "95 % interval of the mean by Wilson's formula",
    frozenset({"effective", "wilson"}): "95 % interval of the mean by Wilson's formula",
    frozenset({"fieller"}): "95 % interval of a ratio by Fieller's theorem",
    frozenset({"t"}): "95 % t interval of the mean",
    frozenset({"t", "wilson"}): "95 % t interval of the mean, Wilson interval where all numbers are 0 or 1",
}
"""What intervals are called that were computed by these methods."""
_ALL_METHODS: Final = "95 % t interval of the mean, by Wilson's formula where all numbers are 0 or 1"


def notes(
    table: TableSpec, filled: Table, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]
) -> Iterator[str]:
    """The entry's own note, what its errors are, what is not in the numbers and why. Some may be there twice."""
    if table.note:
        yield table.note
    yield from who_played(scores)
    if table.figure == "stacked" and len(table.cells) == 1:
        yield "Values are shares of a stack: each series contributes its mean divided by the number of series."
    yield from _kinds(table, filled)
    yield from _clusters(table, scores)
    if not scores:
        yield "There are no episodes to show."
    yield from left_out(scores)
    yield from limited(scores)
    yield from dropped_fields(scores)
    for metric in (name for name in table.cells if name not in table.derived):
        if metrics[metric].note:
            yield f"{metric}: {metrics[metric].note}"
        yield from without_number(table, _in_columns(table, scores, metric), metric)
        yield from _without_error(table, filled, scores, metric)
    yield from _equal_numbers(table, filled)
    yield from _endless_ratios(table, filled)
    bare = [name for name in table.cells if name in metrics and _has_equal(filled, table, name)]
    shares = [name for name in bare if may_be_shares(metrics[name], {*numbers(scores, name)})]
    yield from without_bounds({name: metrics[name] for name in shares})


def who_played(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """That players knew the right answer, or were no models: no table is without it, whatever names it gives them."""
    if any(score.uses_ground_truth for score in scores):
        what = "players knew the right answer and gave it with a declared probability"
        yield f"{SIMULATED} simulated: {what}. This measures how answers are combined, and no model."
    played = sorted({part for name in {score.model for score in scores} for part in name.split(" + ")})
    if not {*played} <= {name for name, one in offers("engines").items() if isinstance(one.value, str)}:
        from harness.plugins.missing_extensions import model_notes  # what only another name than an engine's needs

        yield from model_notes(played)


def limited(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """That agents, or the models behind them, were asked less than they would have been."""
    if some := sum(score.limited for score in scores):
        yield f"In {some} of {len(scores)} episodes a limit of the spec was reached: an agent was asked no more there."
    counts = [sum(own.get(INNER_LIMITED, 0) for own in score.turns.values()) for score in scores]
    if turns := sum(counts):
        what = f"{turns:,} turn{'s' * (turns != 1)} in {sum(map(bool, counts))} of {len(scores)} episodes"
        yield f"{what} ended without a reply: the agent's own model had reached a limit (`inner_limits`)."


def dropped_fields(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """Which fields of replies were not read."""
    counts = sum((Counter(score.dropped_fields) for score in scores), Counter[str]())
    if counts:
        listed = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
        yield f"Fields that stand in replies and were not read of them: {listed}."


def _kinds(table: TableSpec, filled: Table) -> Iterable[str]:
    """What is printed beside the numbers, unless parentheses or brackets have their usual meaning."""
    if table.uncertainty in (None, "sem") or table.figure == "stacked":
        return
    names: dict[tuple[ErrorKind, str], list[str]] = {}
    for metric in table.cells:
        kind = error_of(table.uncertainty, metric)
        if kind == "interval" and (ours := _cells_of(filled, metric)) and all(cell.low is None for cell in ours):
            continue  # there is no interval to name
        if kind:
            what = _interval(filled, metric) if kind == "interval" else _ERRORS[kind]
            names.setdefault((kind, what), []).append(table.labels.get(metric, metric))
    usual = {_INTERVALS[frozenset()], _INTERVALS[frozenset({"wilson"})]}
    if table.uncertainty == "interval" and {what for _, what in names} <= usual:
        return
    marked: dict[str, list[str]] = {}
    for (kind, what), listed in names.items():
        whose = f" ({', '.join(listed)})" if isinstance(table.uncertainty, Mapping) or len(names) > 1 else ""
        marked.setdefault(_mark(table, kind), []).append(what + whose)
    if line := "; ".join(f"{mark}: {', '.join(kinds)}" for mark, kinds in marked.items()):
        yield f"{line[0].upper()}{line[1:]}."


def _interval(filled: Table, metric: str) -> str:
    """Which intervals of `harness.tables.stats.interval_by` the numbers of a metric have."""
    methods = frozenset(cell.method for cell in _cells_of(filled, metric) if cell.method)
    return _INTERVALS.get(methods, _ALL_METHODS)


def _cells_of(filled: Table, *metrics: str) -> list[Cell]:
    """The cells of these metrics that have a number of our own episodes."""
    return [
        cell
        for row in filled.rows
        for column, cell in zip(filled.columns, row.cells, strict=True)
        if (column.metric or row.metric) in metrics and row.published is None and cell.n and not cell.blank
    ]


def _clusters(table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """Which episodes are one observation, where those of a case could be; and that published errors need not agree."""
    if table.kinds <= {"std", None}:
        return
    if "episode" in table.cluster:
        if not _has_clusters(replace(table, cluster=("case",)), scores):
            return
        apart = "mean_of_conditions" in (table.aggregate, table.overall)
        squares = "; those of conditions add in quadrature" if apart else ""
        line = f"Standard errors treat episodes as independent{squares}."
    elif _has_clusters(table, scores):
        line = f"Standard errors treat {clusters_in_words(table, scores)} as one observation (clustered)."
    else:
        return
    yield line + " Published errors (†) stand as they were printed." * any(key.has_errors() for key in table.added)


def clusters_in_words(table: TableSpec, scores: Iterable[EpisodeScore] = ()) -> str:
    """Which episodes are one observation; `scores`: the table's, where a cell may have a case of several conditions."""
    if table.cluster:
        return f"episodes with equal {', '.join(table.cluster)}"
    conditions: dict[tuple[str, ...], str] = {}
    for score in scores:
        key = (*_cell_of(score, table), *cluster_of(score, ()))
        if conditions.setdefault(key, score.condition) != score.condition:
            return "episodes of a case, in whatever condition,"
    return "repeats of a case"


def _cell_of(score: EpisodeScore, table: TableSpec) -> tuple[str, ...]:
    """The model and the labels that the cells with an episode's numbers have in common."""
    labels = {*table.rows, *(() if table.overall else table.columns)} - {"model", "metric"}
    return score.model, *(text(score.labels.get(label)) for label in sorted(labels))


def _mark(table: TableSpec, kind: ErrorKind) -> str:
    if table.figure:
        return "error bars"
    if kind == "interval":
        return "in brackets"
    return "after ±" if table.error_style == "plus_minus" else "in parentheses"


def _has_clusters(table: TableSpec, scores: Sequence[EpisodeScore]) -> bool:
    """Whether some cell has several episodes of one cluster."""
    seen = set()
    for score in (score for score in scores if score.error is None):
        key = (_cell_of(score, table), cluster_of(score, table.cluster))
        if key in seen:
            return True
        seen.add(key)
    return False


def of_episodes(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """What readers of any table must know about its episodes: who played, which are left out, which met a limit."""
    yield from who_played(scores)
    if not scores:
        yield "There are no episodes to show."
        return
    yield from left_out(scores)
    yield from limited(scores)


def of_statistics(table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """The first notes of a table of statistics: its own, those on its episodes, and which have no number."""
    if table.note:
        yield table.note
    yield from of_episodes(scores)
    if scores:
        for metric in table.cells:
            yield from without_number(table, scores, metric)


def left_out(scores: Sequence[EpisodeScore]) -> Iterable[str]:
    """How many episodes failed or were not run, and where."""
    absent = [score for score in scores if score.error == NOT_RUN]
    failed = [score for score in scores if score.failed]
    if failed:
        yield f"{len(failed)} of {len(scores)} episodes failed and count in no number: {_where(failed)}."
        silent = sum(turns.get(kind, 0) for one in failed for turns in one.turns.values() for kind in UNANSWERED)
        if silent:  # else a column of errors would seem to say that all requests were answered
            yield f"In these, {silent:,} turn{'s' * (silent > 1)} got no answer, which no column counts."
    if absent:
        yield f"{len(absent)} of {len(scores)} episodes were not run: {_where(absent)}."


def without_number(table: TableSpec, scores: Sequence[EpisodeScore], metric: str) -> Iterable[str]:
    """What a metric's means do not cover, though the episodes were played; why numbers are withheld is said once."""
    scores = [score for score in scores if score.withheld != metric]
    played = [score for score in scores if score.error is None]
    count = len(numbers(played, metric)) or len(records(played, metric))
    if count < len(played):
        share = f" in {len(played) - count} of {len(played)} episodes" if count else ""
        yield f"{metric}: not reported{share}."
    if count and "mean_of_conditions" in (table.aggregate, table.overall):
        groups = by_condition(scores).values()
        if empty := sum(not (numbers(group, metric) or records(group, metric)) for group in groups):
            yield f"{empty} of {len(groups)} conditions have no number for {metric} and are left out of its means."


def _in_columns(table: TableSpec, scores: Sequence[EpisodeScore], metric: str) -> Sequence[EpisodeScore]:
    """The episodes of the columns that are not left out: no number is expected in those that are."""
    if not table.hide_empty:
        return scores
    groups: dict[tuple[str, ...], list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(tuple(text(score.labels.get(label)) for label in table.columns), []).append(score)
    return [score for group in groups.values() if numbers(group, metric) or records(group, metric) for score in group]


def _without_error(table: TableSpec, filled: Table, scores: Sequence[EpisodeScore], metric: str) -> Iterable[str]:
    """Why a number has no standard error, interval or standard deviation though the table asks for one; and where its
    conditions are too small to have errors of their own."""
    kind = error_of(table.uncertainty, metric)
    if kind is None:
        return
    ours = _cells_of(filled, metric)
    clustered, lacking = _has_clusters(table, scores), f"it has no {_ERRORS[kind].removeprefix('95 % ')}"
    if kind == "sem":
        bare = [cell for cell in ours if cell.stderr is None]
        alone = [cell for cell in bare if clustered and (cell.n or 0) > 1]
    else:
        bare = [cell for cell in ours if cell.low is None and cell.std is None]
        several = [cell for cell in bare if (cell.n or 0) > 1 and not cell.equal]
        alone = [cell for cell in several if cell.stderr is None and clustered] if kind == "interval" else []
        if len(several) > len(alone):
            yield f"{metric} is not the mean of its episodes' numbers: {lacking}."
    if single := sum(cell.n == 1 for cell in (ours if kind == "std" else bare)):
        lacking = "its standard deviation is 0" if kind == "std" else lacking
        yield f"{single} of {len(ours)} cells have a single number for {metric}: {lacking}."
    if alone:
        yield f"{len(alone)} of {len(ours)} cells have a single observation of {metric}: {lacking}."
    known = [
        cell for cell in ours if cell.borrowed and (cell.low is not None if kind == "interval" else not cell.equal)
    ]
    if kind != "std" and known:
        error = "intervals" if kind == "interval" else "standard errors"
        yield (
            f"{metric}: behind {len(known)} of {len(ours)} means some conditions have a single observation, or equal "
            f"ones: the {error} take from all conditions how much these vary."
        )


def _equal_numbers(table: TableSpec, filled: Table) -> Iterable[str]:
    """How many numbers have no standard error or interval since all that they are means of are equal."""
    for kind, lacking in (("sem", "standard error"), ("interval", "interval")):
        names = [n for n in table.cells if n not in table.derived and error_of(table.uncertainty, n) == kind]
        ours = _cells_of(filled, *names)
        if equal := sum(cell.equal and cell.low is None for cell in ours):
            yield f"{equal} of {len(ours)} means are of equal numbers: they have no {lacking}."


def _endless_ratios(table: TableSpec, filled: Table) -> Iterable[str]:
    """Which ratios have no interval since what they are divided by may be 0 on average."""
    for name, derived in table.derived.items():
        if derived.kind == "ratio" and name in table.cells and error_of(table.uncertainty, name) == "interval":
            ours = [cell for cell in _cells_of(filled, name) if cell.value is not None]
            if endless := sum(cell.low is None and bool(cell.stderr) and not cell.equal for cell in ours):
                yield (
                    f"{name}: {endless} of {len(ours)} ratios have no interval, as theirs would have no end: so few "
                    f"numbers do not rule out that {derived.metrics[1]} is 0 on average."
                )


def _has_equal(filled: Table, table: TableSpec, metric: str) -> bool:
    """Whether a mean of equal numbers lacks the interval that the table asks for."""
    wanted = error_of(table.uncertainty, metric) == "interval"
    return wanted and any(cell.equal and cell.low is None for cell in _cells_of(filled, metric))


def may_be_shares(metric: Metric, values: Set[float | None]) -> bool:
    """Whether a metric without bounds has zeros alone, or ones alone; `values`: all that it has in a table."""
    return metric.bounds == UNBOUNDED and values in ({0}, {1}) and not isinstance(metric, RatioMetric)


def without_bounds(metrics: Mapping[str, Metric]) -> Iterable[str]:
    """How metrics that may be shares get the interval of one: by a parameter, or in the code of a project's own."""
    by_parameter = [name for name, one in metrics.items() if "bounds" in inspect.signature(type(one)).parameters]
    others = {name: one for name, one in metrics.items() if name not in by_parameter}
    own = [name for name, one in others.items() if not is_installed(Path(inspect.getfile(type(one))))]
    for names, what in ((by_parameter, "`bounds: [0, 1]` of the metric"), (own, "`bounds = (0, 1)` in its class")):
        if names:
            yield f"{', '.join(names)}: if these are shares, {what} gives them an interval."


def _where(scores: Iterable[EpisodeScore]) -> str:
    counts = Counter(score.condition for score in scores)
    listed = [f"{condition} ({count})" for condition, count in list(counts.items())[:3]]
    return ", ".join(listed) + (f", and in {len(counts) - 3} more" if len(counts) > 3 else "")


def bound_notes(rows: Iterable[Row]) -> Iterable[str]:
    """What the sign of a lower bound means, where a cell has it."""
    if any(cell.beyond == "least" for row in rows for cell in row.cells):
        yield "≥: at least; what is unknown is not in the sum."
