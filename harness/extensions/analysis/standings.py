"""Who is ahead: one table per benchmark, by its headline."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from harness.api.errors import Place, UserError
from harness.config.building import Plugins, Reference, policy_name, split
from harness.config.plan import simulated
from harness.config.project import Project
from harness.extensions.analysis.published_beside import other_episodes
from harness.report.provenance import sampling_of
from harness.tables import Cell, Column, EpisodeScore, HeadlineSpec, Row, Table, text
from harness.tables.cost import Prices, Usd, usd_an_episode, usd_cell, usd_digits
from harness.tables.notes import clusters_in_words, may_be_shares, without_bounds
from harness.tables.parse_share import ParseShare
from harness.tables.published_figures import PublishedTable
from harness.tables.scores import cluster_of
from harness.tables.table import words_of

from .half_column import HALF, HalfColumn, uneven, why_hidden, without_headline
from .leaderboard import (
    RunScores,
    by_readers,
    combined,
    differences,
    listed,
    notes_of,
    pooled_conditions,
    readers_in_words,
    shown_names,
)
from .model_pairs import ModelPair, ModelPairs, rank_notes, significant

Role = Literal["model", "floor", "ceiling", "published"]
_ROLES: Final[Mapping[Role, str]] = {"model": "", "floor": " (floor)", "ceiling": " (ceiling)", "published": ""}
COUNTS: Final = ("n", "failed", "missing")


@dataclass(frozen=True, slots=True)
class Standing:
    """One row of the standings.

    Attributes:
        model: its name.
        cell: the headline.
        role: whether it is ranked ("model"), or shows what is possible.
        clusters: how many independent observations its episodes are; None if it is not known.
        ranks: the lowest and highest rank that it may have; None if it is not ranked.
        beside: further metric → cell.
        usd: what an episode costs on average.
        end: which of floor and ceiling it is, if it is one and ranked all the same, as a run of its own.
        read: which share of its turns was parsed; None where no model was asked.
        limited: in how many episodes a limit of the spec was reached.
        source: the publication of a figure that was not run here.
    """

    model: str
    cell: Cell
    role: Role = "model"
    ranks: tuple[int, int] | None = None
    beside: Mapping[str, Cell] = field(default_factory=dict)
    usd: Usd | None = None
    read: float | None = None
    limited: int = 0
    clusters: int | None = None
    end: Role | None = None
    source: str | None = None

    def count(self, name: str) -> int | None:
        """How many of its episodes have a number, failed, have none, or reached a limit; how many clusters they are in.

        None if it is not known.
        """
        if self.source is not None and name != "n":
            return None
        count: int | None = getattr(self if name in ("limited", "clusters") else self.cell, name)
        return count

    @property
    def rank(self) -> str:
        """`1`, `2–4`, or `–`."""
        if self.ranks is None:
            return "–"
        low, high = self.ranks
        return str(low) if low == high else f"{low}–{high}"


@dataclass(frozen=True, slots=True)
class Player:
    """Whose row of the standings it is.

    Attributes:
        model: the model's own name, which is the row's unless several runs have it.
        sampling: the generation settings of its run; None if policies play.
    """

    model: str
    sampling: str | None


@dataclass(frozen=True, slots=True)
class Standings:
    """The headline of every model in one benchmark, the best first.

    Attributes:
        name: what the benchmark is called.
        headline: the number.
        rows: a row per model.
        notes: what a reader must know beside it.
        players: a row's model → whose it is.
        part: what of the benchmark was run, if it is known not to be all of it.
        half: the column of the size solved by half, if its spec says by what tasks grow.
        halves: a row's model → that size.
        by_readers: a row's model → from where to where its number lies if replies are read by other rules.
        pairs: the tests of all pairs of models.
    """

    name: str
    headline: HeadlineSpec
    rows: Sequence[Standing]
    notes: Sequence[str] = ()
    players: Mapping[str, Player] = field(default_factory=dict)
    part: str | None = None
    by_readers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    pairs: Sequence[ModelPair] = ()
    half: HalfColumn | None = None
    halves: Mapping[str, Cell] = field(default_factory=dict)

    def table(self) -> Table:
        """The standings as a table: rank, model, headline with its interval, counts, the metrics beside it, costs."""
        metric, headline = self.headline.metric, self.headline
        clustered, limited = _clustered(self.rows), any(row.limited for row in self.rows)
        counts = [COUNTS[0], *["clusters"] * clustered, *COUNTS[1:], *["limited"] * limited]
        has_costs = any(row.usd is not None for row in self.rows)
        beside = _beside(headline, self.rows)
        labels = headline_labels(headline)
        has_reads = any(row.read is not None for row in self.rows)
        columns = [
            Column({"metric": metric}, (headline.title,), metric),
            *([self.half.column] if self.half else []),
            *([Column({"metric": "read"}, ("read",), "read", form="share")] if has_reads else []),
            *(Column({"metric": name}, (name,), name, form="count") for name in counts),
            *(Column({"metric": name}, (labels.get(name, name),), name) for name in beside),
            *([Column({"metric": "usd"}, ("USD an episode",), "usd")] if has_costs else []),
        ]
        best = best_of(headline, self.rows)  # None: no number is
        rows = [
            Row(
                {"rank": row.rank, "model": row.model},
                (row.rank, row.model + _ROLES[row.end or row.role]),
                (
                    replace(row.cell, best=row.role == "model" and best is not None and row.cell.value == best),
                    *([self.halves.get(row.model, Cell(n=None))] if self.half else []),
                    *([_plain(row, row.read)] if has_reads else []),
                    *(_plain(row, row.count(name)) for name in counts),
                    *(row.beside.get(name, Cell(n=None)) for name in beside),
                    *([_paid(row)] if has_costs else []),
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
            error={metric: "interval", HALF: "interval"},
            digits={metric: headline.digits, HALF: 1, "usd": _usd_digits(self.rows)},
            unit={metric: headline.table.unit} if isinstance(headline.table.unit, str) else None,
            notes=tuple(self.notes),
        )


def _plain(row: Standing, value: float | None) -> Cell:
    """A number without an error."""
    return Cell(value, n=None, uses_ground_truth=row.cell.uses_ground_truth)


def _paid(row: Standing) -> Cell:
    return usd_cell(row.usd, None, uses_ground_truth=row.cell.uses_ground_truth)


def _clustered(rows: Iterable[Standing]) -> bool:
    """Whether some episodes are not observations of their own."""
    return any(row.clusters is not None and row.cell.n is not None and row.clusters < row.cell.n for row in rows)


def _usd_digits(rows: Iterable[Standing]) -> int:
    return usd_digits(min((row.usd.value for row in rows if row.usd and row.usd.value), default=1.0))


def _beside(headline: HeadlineSpec, rows: Sequence[Standing]) -> list[str]:
    """The metrics beside the headline of which some row has a number."""
    return [x for x in headline.also_show if any(x in row.beside and row.beside[x].value is not None for row in rows)]


def headline_labels(headline: HeadlineSpec) -> dict[str, str]:
    """What the metrics beside a headline are called."""
    return {name: words_of(name) for name in headline.also_show}


def standings(
    runs: Sequence[RunScores],
    baselines: Sequence[tuple[Role, RunScores]] = (),
    name: str | None = None,
    published: Sequence[PublishedTable] = (),
) -> Standings:
    """Rank the models of comparable runs.

    A model's rank lies between 1 + the number of models that are significantly better and the number of models that are
    not significantly worse, as in Chatbot Arena. "Significantly": `paired.sign_flip` of the differences between the
    two on their common episodes, at 0.05 after Holm's correction for all pairs of models. `baselines` are shown, and
    ranked only if they are among the runs. Published figures of the whole benchmark are shown and not ranked: the
    averages in those tables that the spec's own tables cite, unless they cover other episodes than the runs.

    Raises:
        ValueError: for a run without a headline.
    """
    headline = runs[0].headline
    if headline is None:
        raise ValueError("a run without a headline cannot be ranked")
    every, prices, disputed = combined(runs)
    chosen, half = uneven(runs), HalfColumn.of(runs[0].tables)
    scores = without_headline(every, chosen, headline)
    halves = {} if half is None else half.cells(every)
    groups = _by_model(headline.readable(scores))
    found = significant(headline, groups)
    every_end = [score for _, run in baselines for score in run.scores]
    rows = _rows(headline, scores, prices, every_end)
    values = {row.model: row.cell.value for row in rows}
    ranked = [row for row in rows if row.cell.value is not None]
    rows = [replace(row, ranks=_ranks(row.model, values, found.worse)) if row in ranked else row for row in rows]
    players = _players(runs)
    policies = _Policies(runs[0].project)
    played = {run.id: policies.of_run(run) for run in runs}
    policy_of = {name: own for (run, _), name in shown_names(runs).items() if (own := played[run]) is not None}
    named: tuple[tuple[Role, Reference | None], ...] = (("floor", headline.floor), ("ceiling", headline.ceiling))
    ends = [(role, policy_name(policy), policies.of(policy)) for role, policy in named if policy is not None]
    for role, _, policy in ends:
        rows = [replace(row, end=role) if policy_of.get(row.model) == policy else row for row in rows]
    for role, run in baselines:
        same = [name for name, policy in policy_of.items() if policy == policies.of_run(run)]
        rows = [replace(row, end=role) if row.model in same else row for row in rows]
        shown = [] if same else _of_the_spec(run.scores, taken=players)
        rows += [replace(row, role=role) for row in _rows(headline, shown, {}, [*scores, *every_end])]
        halves |= {} if half is None else half.cells(shown)
    figures, otherwise = _published(headline, runs, published)
    rows += [row for row, _ in figures]
    sign = -1 if headline.better == "higher" else 1
    rows.sort(key=lambda row: (row.cell.value is None, sign * (row.cell.value or 0), row.ranks or (0, 0), row.model))
    notes = [*_notes(headline, rows, found, prices, scores), *headline.unread(scores).values()]
    notes += [*([half.note] if half else []), *why_hidden(chosen, headline), *_namesakes(ends, players, policy_of)]
    if pooled := pooled_conditions(runs, headline):
        notes.insert(1, pooled)
    notes += filter(None, (disputed, differences(runs)))
    for reference in {reference.id: reference for _, reference in figures}.values():
        notes.append(f"† published: {reference.source}; not run here.")
        notes += [f"† {line}" for line in (reference.differs, *reference.warnings) if line]
    notes += otherwise
    notes += filter(None, [readers_in_words(runs)])
    notes += notes_of(runs)
    return Standings(
        name or runs[0].spec,
        headline,
        rows,
        notes,
        players,
        by_readers=by_readers(runs),
        pairs=found.tests,
        half=half,
        halves=halves,
    )


class _Policies:
    """Equal values for references to the same policy with the same parameters, whether or not a default is written.

    Without a project, or for what it cannot build, references are compared as they are written.
    """

    def __init__(self, project: Project | None) -> None:
        self._plugins = Plugins(project) if project is not None else None

    def of(self, reference: Reference) -> object:
        """The policy that is referred to."""
        name, arguments = split(reference)
        written = json.dumps({**arguments, "use": name}, sort_keys=True, default=dict)
        if self._plugins is not None:
            with contextlib.suppress(UserError):
                return self._plugins.get("policies", json.loads(written), lambda *path: Place("a policy"))
        return written

    def of_run(self, run: RunScores) -> object | None:
        """The policy that played in the place of the model under test, or every agent; None if models did, or several
        policies. Groups with a `baseline:` of their own, such as liars, are the same in every run of the spec."""
        spec = (run.run.get("identity") or {}).get("spec") or {}
        if not run.run.get("policies_only"):
            return None
        groups = {"default": "model", **(spec.get("agents") or {})}.values()
        bodies = [body if isinstance(body, Mapping) else {} for body in groups]
        free = [body for body in bodies if "policy" not in body]
        in_place = [spec.get("baseline") for body in free if not body.get("baseline")]
        playing = in_place or [body["baseline"] for body in free] or [body["policy"] for body in bodies]
        first, *others = [self.of(one) if isinstance(one, str | Mapping) else None for one in playing]
        return first if all(other == first for other in others) else None


def _of_the_spec(scores: Sequence[EpisodeScore], taken: Container[str]) -> list[EpisodeScore]:
    """The episodes of a spec's own policy, under another name where a run has its name."""
    return [
        replace(score, labels={**score.labels, "model": f"{score.model} of the spec"})
        if score.model in taken
        else score
        for score in scores
    ]


def _namesakes(
    ends: Iterable[tuple[Role, str, object]], players: Mapping[str, Player], policy_of: Mapping[str, object]
) -> Iterable[str]:
    """Which rows only have the name of the spec's floor or ceiling."""
    for role, name, policy in ends:
        names = (name, simulated(name))
        others = [row for row, own in policy_of.items() if players[row].model in names and own != policy]
        if others:
            yield f"Not the spec's {role}, though of its name: {listed(others)}. The parameters are other ones."


def _players(runs: Sequence[RunScores]) -> dict[str, Player]:
    sampling = {run.id: None if run.run.get("policies_only") else _sampling(run) for run in runs}
    return {name: Player(model, sampling[run]) for (run, model), name in shown_names(runs).items()}


def _sampling(run: RunScores) -> str:
    if run.run.get("sampled_by_agents"):
        return sampling_of(run.run)
    settings = run.run.get("generation_kwargs") or {}
    return ", ".join(f"{name}={text(value)}" for name, value in sorted(settings.items())) or "none"


def _published(
    headline: HeadlineSpec, runs: Sequence[RunScores], published: Iterable[PublishedTable]
) -> tuple[list[tuple[Standing, PublishedTable]], list[str]]:
    """Published figures of the headline over a whole benchmark; why others are left out: they cover other episodes."""
    cited = {name for table in runs[0].tables for name in table.published}
    rows: dict[str, tuple[Standing, PublishedTable]] = {}
    left_out: list[str] = []
    for reference in (table for table in published if table.id in cited and not headline.table.where):
        figures = [
            figure
            for figure in reference.records
            if figure.metric == headline.metric and figure.overall and set(figure.labels) == {"model"}
        ]
        if figures and (why := other_episodes(reference, runs[0].run, runs[0].scores)):
            left_out.append(f"Published figures are left out: {why}.")
            continue
        for figure in figures:
            cell = Cell(figure.value, figure.stderr, figure.n)
            name = text(figure.labels["model"])
            rows.setdefault(name, (Standing(name, cell, "published", source=reference.source), reference))
    return [*rows.values()], left_out


def _by_model(scores: Iterable[EpisodeScore]) -> dict[str, dict[str, EpisodeScore]]:
    groups: dict[str, dict[str, EpisodeScore]] = {}
    for score in scores:
        groups.setdefault(score.model, {})[score.id] = score
    return groups


def _rows(
    headline: HeadlineSpec, scores: Sequence[EpisodeScore], prices: Prices, others: Sequence[EpisodeScore]
) -> list[Standing]:
    """A row for each model of `scores`; `others`: the episodes of other rows."""
    selected = headline.selected(scores)
    means = replace(headline, table=replace(headline.table, uncertainty=None, aggregate="pooled"))
    beside = {
        name: replace(means, table=replace(means.table, cells=(name,))).cells(selected) for name in headline.also_show
    }
    groups = _by_model(selected)

    def counted(scores: Iterable[EpisodeScore]) -> Iterable[EpisodeScore]:
        return (score for score in scores if score.number(headline.metric) is not None)

    return [
        Standing(
            model,
            cell,
            beside={name: cells[model] for name, cells in beside.items()},
            usd=usd_an_episode(groups[model].values(), prices),
            clusters=len({cluster_of(s, headline.table.cluster) for s in counted(groups[model].values())}),
            read=ParseShare.of(groups[model].values()).share,
            limited=sum(score.limited for score in groups[model].values()),
        )
        for model, cell in headline.cells(selected, headline.selected(others)).items()
    ]


def _ranks(model: str, values: Mapping[str, float | None], worse: set[tuple[str, str]]) -> tuple[int, int]:
    ranked = sum(value is not None for value in values.values())
    better = sum(low == model for low, _ in worse)
    return 1 + better, ranked - sum(high == model for _, high in worse)


def best_of(headline: HeadlineSpec, rows: Iterable[Standing]) -> float | None:
    """The best number of the ranked models; None with fewer than two."""
    known = [row.cell.value for row in rows if row.role == "model" and row.cell.value is not None]
    return (max if headline.better == "higher" else min)(known) if len(known) > 1 else None


def _notes(
    headline: HeadlineSpec,
    rows: Sequence[Standing],
    pairs: ModelPairs,
    prices: Prices,
    scores: Sequence[EpisodeScore],
) -> Iterable[str]:
    yield (
        f"{headline.title}: {headline.metric}, {headline.better} is better, with its 95 % interval over n episodes"
        f"{' with ' * bool(headline.where)}{headline.where}."
    )
    if not headline.declared:
        yield "The spec declares no `headline:`; its first metric stands for it."
    yield from rank_notes(pairs, "clusters" if _clustered(rows) else "cases")
    ends = {role: [row for row in rows if (row.end or row.role) == role] for role in ("floor", "ceiling")}
    found = {role: any(row.ranks is not None for row in its) for role, its in ends.items() if its}
    if found:
        named = f"{' and '.join(found).capitalize()}: scripted policies that the spec names"
        ranked = [role for role, is_ranked in found.items() if is_ranked]
        if len(ranked) in (0, len(found)):
            yield f"{named}, {'ranked as runs of their own' if ranked else 'not ranked'}."
        else:
            yield f"{named}; the {ranked[0]} is ranked, since it is one of the runs, the other is not."
    lacking = [row.model for row in rows if row.cell.value is not None and row.cell.low is None and not row.source]
    if lacking:
        yield f"No interval for {listed(lacking)}: their numbers do not vary, or are too few."
        values = {row.cell.value for row in rows if row.cell.value is not None and not row.source}
        if may_be_shares(metric := headline.metrics[headline.metric], values):
            yield from without_bounds({headline.metric: metric})
    if any(cell.uses_ground_truth for cell in (row.cell for row in rows)):
        yield "‡ simulated: players knew the right answer and gave it with a declared probability."
    if any(row.read is not None for row in rows):
        yield "read: the share of a model's turns that was parsed."
    if any(row.limited for row in rows):
        yield "limited: episodes in which a limit of the spec was reached; they count in the numbers."
    if _clustered(rows):
        together = clusters_in_words(headline.table, headline.selected(scores))
        yield (
            f"Intervals and tests treat {together} as one observation (clustered); clusters: how many observations "
            "there are."
        )
    yield from _cost_notes(rows, prices, scores)
    if shown := _beside(headline, rows):
        yield f"Means over these episodes: {', '.join(headline_labels(headline)[name] for name in shown)}."


def _cost_notes(rows: Sequence[Standing], prices: Prices, scores: Iterable[EpisodeScore]) -> Iterable[str]:
    if all(row.usd is None for row in rows):
        return
    used: dict[str, dict[str, None]] = {}
    for score in scores:  # the models that answered in a row, by their own names
        used.setdefault(score.model, {}).update(dict.fromkeys(score.usage or (score.model,)))
    priced = dict.fromkeys(name for row in rows if row.usd is not None for name in used.get(row.model, ()))
    rates = listed([f"{model} {prices[model]}" for model in priced if model in prices], "; ")
    at = f", at prices per million tokens ({rates})" if rates else ", as replies say it"
    yield f"USD an episode: mean over the episodes in which models answered{at}."
    if any(row.usd is not None and not row.usd.whole for row in rows):
        yield "≥: at least; replies of which neither cost nor tokens and a price are known are not in it."
    lacking = [row.model for row in rows if row.role == "model" and row.usd is None]
    silent = [model for model in lacking if all(name in prices for name in used.get(model, (model,)))]
    if without := [model for model in lacking if model not in silent]:
        yield f"No USD for {listed(without)}: neither the spec's `prices:` nor your `prices.yaml` has a price."
    if silent:
        yield f"No USD for {listed(silent)}: no episode reports tokens."
