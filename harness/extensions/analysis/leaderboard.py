"""Several runs of one spec side by side: one row per model. Which runs are comparable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from harness.api import Metric
from harness.api.errors import DataError
from harness.api.printable import shortened
from harness.config.keys import SpecKey
from harness.config.project import Project
from harness.evaluation.run import Run
from harness.extensions.analysis.published_beside import cited
from harness.plugins.manifests import offers
from harness.report.provenance import of_run
from harness.report.spending import spending_of
from harness.tables import EpisodeScore, HeadlineSpec, Table, TableSpec, build, text
from harness.tables.cost import Price, Prices, priced, total, usd_of, usd_of_episodes
from harness.tables.published_figures import PublishedTable
from harness.tables.spent import beside_calls

from .comparison import changes_in_words, spec_changes


@dataclass(frozen=True, slots=True)
class RunScores:
    """A finished run: its `run.json`, its `scores.jsonl`, what its spec shows of them, and where its plugins are."""

    run: Mapping[str, Any]
    scores: Sequence[EpisodeScore]
    tables: Sequence[TableSpec]
    metrics: Mapping[str, Metric]
    prices: Prices = field(default_factory=dict)
    headline: HeadlineSpec | None = None
    project: Project | None = None

    @classmethod
    def of(cls, run: Run) -> RunScores:
        """Those of a run. Raises `DataError` for a headline that does not fit it."""
        return cls(run.meta, run.scores, run.table_specs, run.metrics, run.prices, run.headline, run.project)

    @property
    def id(self) -> str:
        """The run's name."""
        return text(self.run.get("run"))

    @property
    def models(self) -> set[str]:
        """The models of its episodes."""
        return {score.model for score in self.scores}

    @property
    def spec(self) -> str:
        """The name of its spec."""
        return text(self.run.get("spec"))

    @property
    def cost(self) -> str:
        """What it cost, in words: USD by the known prices, else tokens."""
        if self.run.get("policies_only"):
            return "nothing: policies play"
        amounts = usd_of_episodes(self.scores, self.prices)
        beside = {
            purpose: total(usd_of(counts, self.prices.get(model)) for model, counts in spent.items())
            for purpose, spent in spending_of(self.run).items()
        }
        if (paid := total([*amounts, *beside.values()])) is not None:
            parts = "".join(f"; of it {usd or 'an unknown cost'} for {purpose}" for purpose, usd in beside.items())
            return f"{paid} for {len(amounts):,} episodes{parts}, by what replies say and the known prices"
        counted = [x for score in self.scores for name in _TOKENS if (x := score.number(name)) is not None]
        return f"{sum(counted):,.0f} tokens; no price is known" if counted else "not known: no price"

    @property
    def by_readers(self) -> tuple[float, float] | None:
        """From where to where the headline lies if the replies are read by other rules; None before `harness score
        --parsers` has read them."""
        readers = self.run.get("parsers")
        found = readers.values() if isinstance(readers, dict) else ()
        values = [
            value for one in found if isinstance(one, dict) and isinstance(value := one.get("value"), int | float)
        ]
        return (min(values), max(values)) if len(values) > 1 else None


_TOKENS: Final = ("tokens_total", "tokens")
"""Metrics of tokens by their usual names."""


def leaderboard(runs: Sequence[RunScores], published: Iterable[PublishedTable] = ()) -> list[Table]:
    """The tables of the runs' common spec over all their episodes.

    Tables that do not group by model are split by it. A model that was run more than once appears once for each
    run, as `<model> (<run id>)`. Where the runs' `generation_kwargs` differ, every table says how. All costs of a model
    go by one price: that of the first run that gives one.

    Raises:
        DataError: without runs, if a run is given twice, or if runs come from different specs, code or cases.
    """
    scores, prices_by_name, disputed = combined(runs)
    shown = scores if runs[0].headline is None else runs[0].headline.withheld(scores)
    published = list(published)
    tables, differing = [], differences(runs)
    metrics = {name: metric for run in reversed(runs) for name, metric in run.metrics.items()}
    entries = beside_calls(runs[0].tables, shown)
    for entry in entries:
        table = build(cited(priced(entry, prices_by_name), published), shown, metrics)
        has_costs = any(derived.kind == "cost" for derived in entry.derived.values())
        has_headline = runs[0].headline is not None and runs[0].headline.metric in entry.cells
        further = (disputed if has_costs else None, differing, readers_in_words(runs) if has_headline else None)
        answered = notes_of(runs)
        tables.append(replace(table, notes=(*table.notes, *filter(None, further), *answered)))
    return tables if runs[0].headline is None else runs[0].headline.explained(entries, tables, scores)


def notes_of(runs: Sequence[RunScores]) -> list[str]:
    """What stands below every table of a run, of all of them, by their models' names here."""
    shown = shown_names(runs)
    names = {run.id: shown.get((run.id, text(run.run.get("model")))) for run in runs}
    return [*dict.fromkeys(note for run in runs for note in of_run(run.run, names[run.id]))]


def by_readers(runs: Sequence[RunScores]) -> dict[str, tuple[float, float]]:
    """Model, under its name here → from where to where its headline lies if replies are read by other rules."""
    spans = {run.id: run.by_readers for run in runs}
    return {shown: span for (run, _), shown in shown_names(runs).items() if (span := spans[run]) is not None}


def readers_in_words(runs: Sequence[RunScores]) -> str | None:
    """The same as a note; None where no replies were read by other rules."""
    spans = ", ".join(f"{model} from {low:.4g} to {high:.4g}" for model, (low, high) in by_readers(runs).items())
    return f"The headline if replies are read by other rules, which errors leave out: {spans}." if spans else None


def combined(runs: Sequence[RunScores]) -> tuple[list[EpisodeScore], dict[str, Price], str | None]:
    """(all episodes under their models' names here, run after run; name, and own name → price; a note on disputed
    prices).

    Names, prices and errors as in `leaderboard`.
    """
    if not runs:
        raise DataError("a leaderboard needs at least one run", hint="Give the folders of finished runs.")
    _refuse_incomparable(runs)
    shown = shown_names(runs)
    prices, disputed = _prices(runs)
    by_name = {name: prices[model] for (_, model), name in shown.items() if model in prices}
    return _merged(runs, shown), prices | by_name, disputed


class Comparable:
    """Runs that measured the same thing, so that their numbers are comparable."""

    def __init__(self) -> None:
        self.runs: list[RunScores] = []
        self._first: dict[tuple[str, str], tuple[str, RunScores]] = {}

    def conflict(self, run: RunScores) -> tuple[str, str] | None:
        """Why a run cannot be compared with these, and what to do; None if it can."""
        for key, digest in _identity(run).items():
            there, other = self._first.get(key, (digest, run))
            if there != digest and not (key[0] == "cases" and _by_case(run) and _by_case(other)):
                what, hint = _DIFFERENCES[key[0]]
                what = what.format(name=key[1], specs=_specs_differ(run, other))
                return f"run {run.id} cannot be compared with {other.id}: {what}", hint
        return None

    def add(self, run: RunScores) -> None:
        """Take a run in."""
        self.runs.append(run)
        for key, digest in _identity(run).items():
            self._first.setdefault(key, (digest, run))


def _specs_differ(run: RunScores, other: RunScores) -> str:
    """What differs between the specs of two runs; their digests where run.json does not say."""
    theirs, its = ((r.run.get("identity") or {}).get("spec") or {} for r in (other, run))
    if run.spec == other.spec and theirs and its and (changes := spec_changes(theirs, its)):
        return changes_in_words(changes)
    return "; ".join(f"{r.spec}, digest {text(r.run['spec_digest'])[:12]}" for r in (run, other))


def grouped(runs: Iterable[RunScores]) -> list[Comparable]:
    """The runs in groups that can be compared, in the order given; each run goes to the first group that it fits."""
    groups: list[Comparable] = []
    for run in runs:
        same = [group for group in groups if group.runs[0].spec == run.spec]
        conflicts = [group.conflict(run) for group in same]
        if None in conflicts:
            same[conflicts.index(None)].add(run)
            continue
        group = Comparable()
        group.add(run)
        groups.append(group)
    return groups


def _identity(run: RunScores) -> dict[tuple[str, str], str]:
    """(part, name) → digest, of all that may not differ.

    A file that only one of two runs used is of its own players; whatever imports it would have changed with it.
    """
    own_code = run.run.get("code") or {}
    parts = {
        **_spec_parts(run),
        **{part: own_code.get(part) or {} for part in ("play", "task", "metrics")},
        "cases": run.run.get("cases") or {},
        "case": _by_case(run),
        "judges": {name: text(one.get("digest")) for name, one in (run.run.get("judges") or {}).items()},
    }
    return {(part, name): digest for part, digests in parts.items() for name, digest in digests.items()}


def _by_case(run: RunScores) -> Mapping[str, str]:
    """Case → digest, where a key of the spec lets runs have other numbers of cases (`SpecKey.planned`)."""
    kept = [one for one in (run.run.get("keys") or {}).values() if isinstance(one, dict)]
    return next((one["cases"] for one in kept if isinstance(one.get("cases"), dict)), {})


def _spec_parts(run: RunScores) -> dict[str, dict[str, str]]:
    """Digests of a run's spec: of the whole, or of what a key of it says that runs have in common, and of each name
    that they may share."""
    identity = run.run.get("identity") or {}
    spec = identity.get("spec") or {}
    for name, offer in offers("keys").items():
        if name in spec and (found := offer.load_class(SpecKey).compared(spec)) is not None:
            common, named = found
            contestants = {one: text(body) for one, body in named.items()}
            return {"spec": {"": text(common)}, "prompts": identity.get("prompts") or {}, "contestants": contestants}
    return {"spec": {"": run.run["spec_digest"]}}


def _refuse_incomparable(runs: Sequence[RunScores]) -> None:
    """Raises `DataError` for a run that is given twice, and for two of other specs, code or cases."""
    group = Comparable()
    for i, run in enumerate(runs):
        if not run.run.get("spec_digest"):
            raise DataError(f"run {run.id} does not say which spec it ran: no spec_digest in its run.json")
        if run.id in [other.id for other in runs[:i]]:
            raise DataError(f"run {run.id} is given {[other.id for other in runs].count(run.id)} times")
        if conflict := group.conflict(run):
            raise DataError(conflict[0], hint=conflict[1])
        group.add(run)


_GRADED: Final = (
    "they were graded by different code: {name}",
    "`harness score` on both grades them with the code that is there now.",
)
_DIFFERENCES: Final = {
    "judges": (
        "other judges, or judges that were asked otherwise, gave their numbers of {name}",
        "`harness score RUN --judge …` lets one judge rate both.",
    ),
    "contestants": (
        "{name} is another contestant in each",
        "Contestants of one name must be equal: give one of them another label in its run's spec.",
    ),
    "prompts": (
        "the prompts of {name} are other ones in each",
        "Run one of them again, or make a leaderboard for each.",
    ),
    "spec": (
        "they ran different specs ({specs})",
        "Compare the spec.yaml in the two run folders, or make a leaderboard for each spec.",
    ),
    "play": (
        "they were played by different code: {name}",
        "Run one of them again in another folder, or make a leaderboard for each.",
    ),
    "task": _GRADED,
    "metrics": _GRADED,
    "case": (
        "case {name} is another one in each",
        "Run one of them again in another folder, or make a leaderboard for each.",
    ),
    "cases": (
        "the {name} were not the same",
        "`harness score` on both takes the right answers of now; questions have to be run again.",
    ),
}
"""What may not differ between runs: how the error says that it does, and what to do."""


def shown_names(runs: Sequence[RunScores]) -> dict[tuple[str, str], str]:
    """(run's id, model) → its name here: models of the same name in different runs are distinguished by the run's
    id."""
    models = {run.id: list(dict.fromkeys(score.model for score in run.scores)) for run in runs}
    owners = Counter(model for names_of_run in models.values() for model in names_of_run)
    return {
        (run, model): f"{model} ({run})" if owners[model] > 1 else model
        for run, names_of_run in models.items()
        for model in names_of_run
    }


def _merged(runs: Sequence[RunScores], names: Mapping[tuple[str, str], str]) -> list[EpisodeScore]:
    """All scores, under their models' names here. Those of tournaments, which may share episodes, stand in the order in
    which the runs began."""
    if "contestants" in _spec_parts(runs[0]):
        runs = sorted(runs, key=lambda run: (text(run.run.get("start")), run.id))
    merged = []
    for run in runs:
        for score in run.scores:
            name = names[run.id, score.model]
            label = score.labels.get("model") if name == score.model else name
            merged.append(replace(score, labels={**score.labels, "model": label}))
    return merged


def _prices(runs: Sequence[RunScores]) -> tuple[dict[str, Price], str | None]:
    """Model → the first price that a run gives for it; a note on the models for which another one gives another."""
    prices: dict[str, Price] = {}
    source: dict[str, str] = {}
    disputed: dict[str, None] = {}
    models_run = {score.model for run in runs for score in run.scores}
    for run in runs:
        for model, price in run.prices.items():
            if prices.setdefault(model, price) != price and model in models_run:
                disputed[model] = None
            source.setdefault(model, run.id)
    if not disputed:
        return prices, None
    listed = ", ".join(f"{model} costs what run {source[model]} says" for model in disputed)
    return prices, f"The runs give different prices: {listed}."


def differences(runs: Sequence[RunScores]) -> str | None:
    """How comparable runs differ in sampling and in the version of harness, in words."""
    return " ".join(filter(None, (_differences(runs), _versions(runs)))) or None


def _differences(runs: Sequence[RunScores]) -> str | None:
    """The generation settings that are not the same in all runs, with the runs of each."""
    settings = [dict(run.run.get("generation_kwargs") or {}) for run in runs]
    names = sorted(set().union(*settings))
    differing = [name for name in names if len({text(s[name]) if name in s else None for s in settings}) > 1]
    said = [", ".join(f"{n}={text(s[n]) if n in s else 'unset'}" for n in differing) for s in settings]
    return f"The runs differ in generation_kwargs. {_by_value(runs, said)}." if differing else None


def _versions(runs: Sequence[RunScores]) -> str | None:
    """That the runs come from different versions of harness, with the runs of each."""
    versions = [text((run.run.get("versions") or {}).get("harness")) for run in runs]
    if len(set(versions)) < 2:
        return None
    return f"The runs come from different versions of harness. {_by_value(runs, versions)}."


def _by_value(runs: Sequence[RunScores], values: Sequence[str]) -> str:
    """`r1, r3: one; r2: other`."""
    groups: dict[str, list[str]] = {}
    for run, value in zip(runs, values, strict=True):
        groups.setdefault(value, []).append(run.id)
    return "; ".join(f"{listed(names)}: {value}" for value, names in groups.items())


def pooled_conditions(runs: Sequence[RunScores], headline: HeadlineSpec) -> str | None:
    """Which values of the spec's matrix, such as methods, are behind one number of a model; None if it is one each."""
    matrix = ((runs[0].run.get("identity") or {}).get("spec") or {}).get("matrix") or {}
    values: dict[str, dict[str, None]] = {label: {} for label in matrix}
    conditions = set()
    for score in headline.selected(score for run in runs for score in run.scores):
        conditions.add(score.condition)
        for label in matrix.keys() & score.labels.keys():
            values[label][text(score.labels[label])] = None
    several = [f"{label} ({listed([*own])})" for label, own in values.items() if len(own) > 1]
    if not several:
        return None
    weight = ", which all count the same" if headline.table.aggregate == "mean_of_conditions" else ""
    return f"A row takes in {len(conditions):,} conditions{weight}: {'; '.join(several)}."


def listed(names: Sequence[str], join: str = ", ") -> str:
    """The names, joined; of many the first and how many more there are."""
    more = [f"{len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES + 1 else []
    return join.join([*shortened(names[:_MAX_NAMES] if more else names).values(), *more])


_MAX_NAMES: Final = 5
"""How many names a list shows."""


def merged(runs: Sequence[Run], published: Iterable[PublishedTable]) -> list[Table]:
    """The tables of several finished runs, as `leaderboard`."""
    return leaderboard([RunScores.of(run) for run in runs], published)
