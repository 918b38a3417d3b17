"""Who is ahead: one table a benchmark by its headline, and one over all benchmarks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from harness.tables import Cell, Column, EpisodeScore, HeadlineSpec, Published, Row, Table, stats, text
from harness.tables.costs import Prices, cost
from harness.tables.notes import other_coverage
from harness.tables.scores import cluster_of, numbers, observations
from harness.tables.spec import Derived

from .leaderboard import RunScores, combined, differences

Episodes = Mapping[str, EpisodeScore]
"""Id → episode."""
Role = Literal["model", "floor", "ceiling", "published"]
_COST: Final = Derived("cost", ("tokens_input", "tokens_output"), ("input", "output"))
_ROLES: Final[Mapping[Role, str]] = {"model": "", "floor": " (floor)", "ceiling": " (ceiling)", "published": ""}
COUNTS: Final = ("n", "failed", "missing")


@dataclass(frozen=True, slots=True)
class Standing:
    """One row of the standings.

    Attributes:
        model: its name.
        cell: the headline.
        role: whether it is ranked ("model"), or shows what is possible.
        ranks: the lowest and highest rank that it may have; None where it is not ranked.
        beside: further metric → cell.
        usd: what its episodes cost.
        limited: in how many episodes a limit of the spec was reached.
        source: the publication of a figure that was not run here.
    """

    model: str
    cell: Cell
    role: Role = "model"
    ranks: tuple[int, int] | None = None
    beside: Mapping[str, Cell] = field(default_factory=dict)
    usd: float | None = None
    limited: int = 0
    source: str | None = None

    def count(self, name: str) -> int | None:
        """How many of its episodes have a number, failed, have none, or reached a limit; None where it is not known."""
        if self.source is not None and name != "n":
            return None
        count: int | None = getattr(self if name == "limited" else self.cell, name)
        return count

    @property
    def rank(self) -> str:
        """`1`, `2–4`, or `–`."""
        if self.ranks is None:
            return "–"
        low, high = self.ranks
        return str(low) if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True)
class Standings:
    """The headline of every model in one benchmark, the best first."""

    name: str
    headline: HeadlineSpec
    rows: Sequence[Standing]
    notes: Sequence[str] = ()

    def table(self) -> Table:
        """The standings as a table: rank, model, headline with its interval, counts, what stands beside it, costs."""
        metric, headline = self.headline.metric, self.headline
        counts = [*COUNTS, *(["limited"] if any(row.limited for row in self.rows) else [])]
        has_costs = any(row.usd is not None for row in self.rows)
        beside = _beside(headline, self.rows)
        labels = headline_labels(headline)
        columns = [
            Column({"metric": metric}, (headline.title,), metric),
            *(Column({"metric": name}, (name,), name, form="count") for name in counts),
            *(Column({"metric": name}, (labels.get(name, name),), name) for name in beside),
            *([Column({"metric": "usd"}, ("USD",), "usd")] if has_costs else []),
        ]
        best = _best(headline, [row.cell.value for row in self.rows if row.role == "model"])
        rows = [
            Row(
                {"rank": row.rank, "model": row.model},
                (row.rank, row.model + _ROLES[row.role]),
                (
                    replace(row.cell, best=row.role == "model" and row.cell.value == best),
                    *(replace(row.cell, value=row.count(name), low=None, high=None) for name in counts),
                    *(row.beside.get(name, Cell(n=None)) for name in beside),
                    *([replace(row.cell, value=row.usd, low=None, high=None)] if has_costs else []),
                ),
                published=row.source,
            )
            for row in self.rows
        ]
        return Table(
            title=f"{self.name}: standings",
            row_labels=("rank", "model"),
            column_labels=("metric",),
            columns=tuple(columns),
            rows=tuple(rows),
            row_names=("Rank", "Model"),
            error={metric: "interval"},
            digits={metric: headline.digits},
            unit={metric: headline.table.unit} if isinstance(headline.table.unit, str) else None,
            notes=tuple(self.notes),
        )


def _beside(headline: HeadlineSpec, rows: Sequence[Standing]) -> list[str]:
    """The metrics beside the headline of which some row has a number."""
    return [x for x in headline.beside if any(x in row.beside and row.beside[x].value is not None for row in rows)]


def headline_labels(headline: HeadlineSpec) -> dict[str, str]:
    """What the metrics beside a headline are called."""
    return {name: name.rpartition("/")[2].replace("_", " ") for name in headline.beside}


def standings(
    runs: Sequence[RunScores],
    baselines: Sequence[tuple[Role, RunScores]] = (),
    name: str | None = None,
    published: Sequence[Published] = (),
) -> Standings:
    """Rank the models of comparable runs.

    A model's rank lies between 1 + the number of models that are significantly better and the number of models that are
    not significantly worse, as in Chatbot Arena. "Significantly": `stats.difference_pvalue` of the differences between
    the two on their common episodes, at 0.05 after Holm's correction for all pairs of models; Welch's test where they
    have no common episodes. `baselines` are shown and not ranked, as are published figures of the whole benchmark: the
    averages in those tables that the spec's own tables cite, unless they cover other episodes than the runs.

    Raises:
        ValueError: for a run without a headline.
    """
    headline = runs[0].headline
    if headline is None:
        raise ValueError("a run without a headline cannot be ranked")
    scores, prices, disputed = combined(runs)
    groups = _by_model(headline.selected(scores))
    pairs = [(a, b) for i, a in enumerate(groups) for b in list(groups)[i + 1 :]]
    worse = _significant(headline, {pair: (groups[pair[0]], groups[pair[1]]) for pair in pairs})
    rows = _rows(headline, scores, prices)
    values = {row.model: row.cell.value for row in rows}
    ranked = [row for row in rows if row.cell.value is not None]
    rows = [replace(row, ranks=_ranks(row.model, values, worse)) if row in ranked else row for row in rows]
    for role, run in baselines:
        rows += [replace(row, role=role) for row in _rows(headline, run.scores, {})]
    figures, otherwise = _published(headline, runs, published)
    rows += [row for row, _ in figures]
    sign = -1 if headline.better == "higher" else 1
    rows.sort(key=lambda row: (row.cell.value is None, sign * (row.cell.value or 0), row.ranks or (0, 0), row.model))
    notes = [*_notes(headline, rows, len(pairs)), *filter(None, (disputed, differences(runs)))]
    for reference in {reference.id: reference for _, reference in figures}.values():
        notes.append(f"† published: {reference.source}; not run here.")
        notes += [f"† {line}" for line in (reference.differs, *reference.warnings) if line]
    notes += otherwise
    return Standings(name or runs[0].spec, headline, rows, notes)


def _published(
    headline: HeadlineSpec, runs: Sequence[RunScores], published: Iterable[Published]
) -> tuple[list[tuple[Standing, Published]], list[str]]:
    """Published figures of the headline over a whole benchmark; why others are left out: they cover other episodes."""
    cited = {name for table in runs[0].tables for name in table.published}
    rows: dict[str, tuple[Standing, Published]] = {}
    left_out: list[str] = []
    for reference in (table for table in published if table.id in cited and not headline.table.where):
        figures = [
            figure
            for figure in reference.records
            if figure.metric == headline.metric and figure.overall and set(figure.labels) == {"model"}
        ]
        if figures and (why := _other_episodes(reference, runs)):
            left_out.append(f"Published figures are left out: {why}.")
            continue
        for figure in figures:
            cell = Cell(figure.value, figure.stderr, figure.n)
            name = text(figure.labels["model"])
            rows.setdefault(name, (Standing(name, cell, "published", source=reference.source), reference))
    return [*rows.values()], left_out


def _other_episodes(reference: Published, runs: Sequence[RunScores]) -> str:
    """How the episodes of the runs are others than those behind a publication; empty where they are not known to be."""
    limit = ((runs[0].run.get("identity") or {}).get("spec") or {}).get("limit")
    few = [f"{reference.source} covers all cases; this run at most {limit} per condition"] if limit else []
    swept: dict[str, dict[Any, None]] = {}
    for figure in reference.records:
        for label in figure.labels.keys() - {"model"}:
            swept.setdefault(label, {})[figure.labels[label]] = None
    whole = replace(reference, covers={**{label: tuple(values) for label, values in swept.items()}, **reference.covers})
    return "; ".join([*other_coverage(whole, runs[0].scores), *few])


def _by_model(scores: Iterable[EpisodeScore]) -> dict[str, dict[str, EpisodeScore]]:
    groups: dict[str, dict[str, EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(score.model, {})[score.id] = score
    return groups


def _rows(headline: HeadlineSpec, scores: Sequence[EpisodeScore], prices: Prices) -> list[Standing]:
    selected = headline.selected(scores)
    beside = {name: headline.beside_cells(name, selected) for name in headline.beside}
    groups = _by_model(selected)
    return [
        Standing(
            model,
            cell,
            beside={name: cells[model] for name, cells in beside.items()},
            usd=cost([*groups[model].values()], _COST, prices, cell.failed).value,
            limited=sum(score.limited for score in groups[model].values()),
        )
        for model, cell in headline.cells(selected).items()
    ]


def _significant(
    headline: HeadlineSpec,
    pairs: Mapping[tuple[str, str], tuple[Mapping[str, EpisodeScore], Mapping[str, EpisodeScore]]],
) -> set[tuple[str, str]]:
    """The pairs (worse, better) whose difference is significant at 0.05 after Holm's correction."""
    tested: list[tuple[tuple[str, str], float, float]] = []
    for names, (a, b) in pairs.items():
        mean, pvalue = difference(headline.metric, a, b, headline.table.cluster)
        if mean is not None and pvalue is not None:
            tested.append((names, mean, pvalue))
    adjusted = stats.holm([pvalue for _, _, pvalue in tested])
    significant = [(names, mean) for (names, mean, _), p in zip(tested, adjusted, strict=True) if p < 0.05]
    return {(a, b) if headline.ahead(0, mean) else (b, a) for (a, b), mean in significant}


def difference(
    metric: str, a: Mapping[str, EpisodeScore], b: Mapping[str, EpisodeScore], cluster: Sequence[str]
) -> tuple[float | None, float | None]:
    """(mean of a − mean of b, p-value), by their common episodes; Welch's where they have fewer than two."""
    common = [name for name in a if name in b and None not in (a[name].number(metric), b[name].number(metric))]
    if len(common) < 2:
        test = stats.clustered_welch(*(observations([*side.values()], metric, cluster) for side in (a, b)))
        return test.difference, test.pvalue
    first, second = numbers([a[name] for name in common], metric), numbers([b[name] for name in common], metric)
    keys = [cluster_of(a[name], cluster) for name in common]
    stratum = [(key, x - y) for key, x, y in zip(keys, first, second, strict=True)]
    return statistics.fmean(x for _, x in stratum), stats.difference_pvalue([stratum])


def _ranks(model: str, values: Mapping[str, float | None], worse: set[tuple[str, str]]) -> tuple[int, int]:
    ranked = sum(value is not None for value in values.values())
    better = sum(low == model for low, _ in worse)
    return 1 + better, ranked - sum(high == model for _, high in worse)


def _best(headline: HeadlineSpec, values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return (max if headline.better == "higher" else min)(known) if len(known) > 1 else None


def _notes(headline: HeadlineSpec, rows: Sequence[Standing], pairs: int) -> Iterable[str]:
    yield (
        f"{headline.title}: {headline.metric}, {headline.better} is better, with its 95 % interval over n episodes"
        f"{_where(headline)}."
    )
    if not headline.declared:
        yield "The spec declares no `headline:`; its first metric stands for it."
    if pairs:
        count = "one pair" if pairs == 1 else f"all {pairs} pairs"
        yield (
            "Rank: the ranks that a model may have, given which models differ significantly (paired by episode, "
            f"p < 0.05 after Holm's correction for {count} of models)."
        )
    if any(row.role in ("floor", "ceiling") for row in rows):
        yield "Floor and ceiling: the spec's scripted policies, played here and not ranked."
    lacking = [row.model for row in rows if row.cell.value is not None and row.cell.low is None and not row.source]
    if lacking:
        yield f"No interval for {', '.join(lacking)}: their numbers do not vary, or are too few."
    if any(cell.uses_ground_truth for cell in (row.cell for row in rows)):
        yield "‡ simulated: players knew the right answer and gave it with a declared probability."
    if any(row.limited for row in rows):
        yield "limited: episodes in which a limit of the spec was reached; they count in the numbers."
    if shown := _beside(headline, rows):
        yield f"Means over these episodes: {', '.join(headline_labels(headline)[name] for name in shown)}."


def _where(headline: HeadlineSpec) -> str:
    listed = "; ".join(f"{label} {', '.join(values)}" for label, values in headline.table.where.items())
    return f" with {listed}" if listed else ""


def overall(boards: Sequence[Standings], names: Sequence[str] | None = None) -> Table:
    """All benchmarks on one page: a row a model, a column a benchmark, each with its own headline.

    The average is there where every benchmark is: of numbers between worst, 0, and best, 1, on the headline's scale;
    there is none where a headline has no scale. Its standard error takes benchmarks as independent and fixed.
    """
    names = names or [board.name for board in boards]
    models: dict[tuple[Role, str], dict[str, Standing]] = {}
    for board, name in zip(boards, names, strict=True):
        for row in (row for row in board.rows if row.source is None):
            key = (row.role, row.model if row.role == "model" else row.role.capitalize())
            models.setdefault(key, {})[name] = row
    averages = {key: _average(boards, names, cells) for key, cells in models.items()}
    averaged = len(boards) > 1 and any(cell.value is not None for cell in averages.values())
    columns = [
        Column({"benchmark": name, "metric": board.headline.metric}, (name, board.headline.title), name)
        for board, name in zip(boards, names, strict=True)
    ]
    if averaged:
        columns.append(Column({}, ("Average ↑", ""), "average", overall=True))
    best = {
        name: _best(board.headline, [row.cell.value for row in board.rows if row.role == "model"])
        for board, name in zip(boards, names, strict=True)
    }
    means = [cell.value for (role, _), cell in averages.items() if role == "model" and cell.value is not None]
    top = max(means) if len(means) > 1 else None
    rows = []
    for role, model in sorted(models, key=lambda key: (key[0] != "model", _order(averages[key], models[key]), key[1])):
        own = models[role, model]
        cells = [
            replace(own[name].cell, best=role == "model" and own[name].cell.value == best[name])
            if name in own
            else Cell(n=0)
            for name in names
        ]
        if averaged:
            mean = averages[role, model]
            cells.append(replace(mean, best=role == "model" and mean.value is not None and mean.value == top))
        rows.append(Row({"model": model}, (model,), tuple(cells)))
    units = {name: b.headline.table.unit for b, name in zip(boards, names, strict=True)}
    return Table(
        title="All benchmarks",
        row_labels=("model",),
        column_labels=("benchmark", "metric"),
        columns=tuple(columns),
        rows=tuple(rows),
        row_names=("Model",),
        error="interval",
        digits={**{name: b.headline.digits for b, name in zip(boards, names, strict=True)}, "average": 1},
        unit={"average": "percent", **{name: unit for name, unit in units.items() if isinstance(unit, str)}},
        notes=tuple(_overall_notes(boards, models.values(), averaged)),
    )


def _order(average: Cell, cells: Mapping[str, Standing]) -> tuple[bool, float, int]:
    return average.value is None, -(average.value or 0), -len(cells)


def _average(boards: Sequence[Standings], names: Sequence[str], cells: Mapping[str, Standing]) -> Cell:
    values, errors = [], []
    for board, name in zip(boards, names, strict=True):
        scale = board.headline.scale
        if scale is None or name not in cells or cells[name].cell.value is None:
            return Cell(n=0)
        (low, high), cell = scale, cells[name].cell
        share = ((cell.value or 0) - low) / (high - low)
        values.append(share if board.headline.better == "higher" else 1 - share)
        errors.append(None if cell.stderr is None else cell.stderr / (high - low))
    known = [error for error in errors if error is not None]
    stderr = math.hypot(*known) / len(known) if len(known) == len(values) else None
    mean = statistics.fmean(values)
    if not stderr:
        return Cell(mean, stderr, len(values))
    half = 1.959964 * stderr
    return Cell(mean, stderr, len(values), low=max(0.0, mean - half), high=min(1.0, mean + half))


def _overall_notes(
    boards: Sequence[Standings], rows: Iterable[Mapping[str, Standing]], averaged: bool
) -> Iterable[str]:
    yield "Each benchmark by its own headline, with its 95 % interval. ↑: higher is better, ↓: lower is."
    if averaged:
        yield (
            "Average: mean over all benchmarks, from 0 % (worst) to 100 % (best; 100 % minus the value where lower is "
            "better), where a model has all of them; its interval takes benchmarks as independent."
        )
    elif len(boards) > 1 and any(board.headline.scale is None for board in boards):
        yield "No average: not every headline has a scale (bounds of its metric, or percent)."
    if any(len(cells) < len(boards) for cells in rows):
        yield "–: not run."
