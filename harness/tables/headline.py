"""A spec's `headline:`, the one number that represents the benchmark: parsed, and checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, Required, TypedDict

from harness.api import Metric, Range
from harness.plugins.parameters import PLUGIN, Keywords, Plugin

from .axis import meets
from .build import build
from .entry import LabelValues, Means, Name
from .parse_share import DEFAULT_MIN_READ, ParseShare, by_model, in_percent
from .scores import EpisodeScore
from .spec import TableSpec, as_tuple, check
from .table import DIGITS, UNREAD, Cell, Column, Row, Table, Unit, text

Better = Literal["higher", "lower"]
ARROWS: Final[Mapping[Better, str]] = {"higher": "↑", "lower": "↓"}
BESIDE: Final = ("parse_failures", "tokens_total")
"""The metrics that standings show beside the headline where a spec has them and says nothing else."""


class HeadlineEntry(TypedDict, total=False):
    """A spec's `headline:` in YAML."""

    metric: Required[Annotated[Name, "the metric whose mean stands for the benchmark"]]
    title: Annotated[Name, "what to call it"]
    where: Annotated[
        dict[str, LabelValues], "a mapping of labels to the value, or list of values, that episodes must have"
    ]
    aggregate: Annotated[Means, "pooled (over all episodes) or mean_of_conditions"]
    better: Annotated[Better, "which way is better: higher or lower"]
    words: Annotated[
        list[Name], Keywords(minItems=2, maxItems=2), "what to call an episode with the best number, and another one"
    ]
    digits: Annotated[int, Range(ge=0, le=10)]
    unit: Annotated[Unit, "thousands or percent"]
    min_read: Annotated[
        float,
        Range(ge=0, le=1),
        "the share of a model's turns, from 0 to 1, that must be parsed for the number to be shown; 0.5 if "
        "there is none, 0 shows it always",
    ]
    also_show: Annotated[
        list[Name], "further metrics that standings show; parse_failures and tokens_total if there is none"
    ]
    floor: Annotated[Plugin, Keywords({PLUGIN: "policies"}), "the policy that any model should beat"]
    ceiling: Annotated[Plugin, Keywords({PLUGIN: "policies"}), "the policy that shows what is possible"]
    no_floor: Annotated[Name, "why no policy is a floor"]
    no_ceiling: Annotated[Name, "why no policy is a ceiling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineSpec:
    """Which one number represents a benchmark. The fields are the entry's.

    Attributes:
        table: the number as a table: a row per model, one column.
        min_read: the share of turns that must be parsed: without it a model has no number.
        declared: whether the spec has a headline; otherwise its first metric serves as one.
    """

    table: TableSpec
    better: Better = "higher"
    also_show: tuple[str, ...] = ()
    floor: str | Mapping[str, Any] | None = None
    ceiling: str | Mapping[str, Any] | None = None
    min_read: float = DEFAULT_MIN_READ
    declared: bool = True
    metrics: Mapping[str, Metric] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, spec: Mapping[str, Any], metrics: Mapping[str, Metric]) -> HeadlineSpec:
        """The headline of a spec's data. Without one the first metric of its tables, or of the spec, serves as one.

        Raises:
            SpecError: naming what is wrong with it.
        """
        entry = dict(spec.get("headline") or {})
        cells = [
            cell for table in spec.get("tables", []) for cell in as_tuple(table.get("metrics", ())) if cell in metrics
        ]
        table = {
            "title": entry.get("title", entry.get("metric")),
            "rows": "model",
            "metrics": entry.get("metric") or next(iter([*cells, *metrics])),
            "aggregate": entry.get("aggregate", "pooled"),
            "uncertainty": "interval",
            "cluster": spec.get("cluster"),
            **{key: entry[key] for key in ("where", "digits", "unit") if key in entry},
        }
        table["title"] = table["title"] or table["metrics"]
        beside = entry.get("also_show", [name for name in BESIDE if name in metrics])
        return cls(
            table=TableSpec.parse({key: value for key, value in table.items() if value is not None}),
            better=entry.get("better", "higher"),
            also_show=tuple(name for name in beside if name in metrics and name != table["metrics"]),
            floor=entry.get("floor"),
            ceiling=entry.get("ceiling"),
            min_read=entry.get("min_read", DEFAULT_MIN_READ),
            declared=bool(entry),
            metrics=metrics,
        )

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.table.cells[0]

    @property
    def name(self) -> str:
        """What it is called."""
        return self.table.title

    @property
    def where(self) -> str:
        """Which episodes it is about, in words: `label value, value; label value`; "" for all."""
        return "; ".join(f"{label} {', '.join(values)}" for label, values in self.table.where.items())

    @property
    def title(self) -> str:
        """What it is called, with an arrow towards what is better."""
        return f"{self.name} {ARROWS[self.better]}"

    @property
    def digits(self) -> int:
        """Decimals of the number."""
        return self.table.digits if isinstance(self.table.digits, int) else DIGITS

    def selected(self, scores: Iterable[EpisodeScore]) -> list[EpisodeScore]:
        """The episodes that the headline covers."""
        return [score for score in scores if self.covers(score)]

    def covers(self, score: EpisodeScore) -> bool:
        """Whether an episode is among those that the number is about."""
        return meets(score.labels, self.table.where)

    def by(self, *rows: str, columns: tuple[str, ...] = (), figure: Literal["line"] | None = None) -> TableSpec:
        """The number for the values of labels: means over all episodes, with 95 % intervals."""
        return replace(self.table, rows=rows, columns=columns, figure=figure, aggregate="pooled")

    def cell(self, scores: Sequence[EpisodeScore], beside: Sequence[EpisodeScore] = ()) -> Cell:
        """The number of one model's episodes, with its 95 % interval; an empty cell without episodes.

        `beside`: as in `build`.
        """
        return next(iter(self.cells(scores, beside).values()), Cell())

    def cells(self, scores: Sequence[EpisodeScore], beside: Sequence[EpisodeScore] = ()) -> dict[str, Cell]:
        """Model → its number, with a 95 % interval, in the order of `scores`; no number where `unread` has it."""
        return {text(row.key["model"]): row.cells[0] for row in self.filled(scores, beside).rows}

    def filled(self, scores: Sequence[EpisodeScore], beside: Sequence[EpisodeScore] = ()) -> Table:
        """The number of every model as a table; without one, and with the reason as a note, where `unread` has it."""
        table, unread = build(self.table, scores, self.metrics, beside), self.unread(scores)
        rows = [
            replace(row, cells=tuple(map(_unread, row.cells))) if text(row.key["model"]) in unread else row
            for row in table.rows
        ]
        return replace(table, rows=tuple(rows), notes=(*table.notes, *unread.values()))

    def unread(self, scores: Iterable[EpisodeScore]) -> dict[str, str]:
        """Model of whose turns too few were parsed for it to have a number → the reason, as a sentence."""
        found = by_model(self.selected(scores))
        return {
            model: f"{self.why_unread(model, reads)}."
            for model, reads in found.items()
            if reads.share is not None and reads.share < self.min_read
        }

    def why_unread(self, model: str, reads: ParseShare) -> str:
        """Why a model has no number."""
        return (
            f"{model} has no {self.name}: {in_percent(reads.read, reads.asked)} of its {reads.asked:,} turns were "
            f"parsed, fewer than {100 * self.min_read:g} % (`min_read` of the headline)"
        )

    def withheld(self, scores: Sequence[EpisodeScore]) -> Sequence[EpisodeScore]:
        """The episodes for tables: without the headline's number where `unread` has the model, since a reply that was
        not read says nothing of it."""
        unread = self.unread(scores)
        if not unread:
            return scores
        return [
            score.without(self.metric) if score.model in unread and self.covers(score) else score for score in scores
        ]

    def explained(
        self, entries: Sequence[TableSpec], tables: Sequence[Table], scores: Iterable[EpisodeScore]
    ) -> list[Table]:
        """The tables of these entries with the numbers of models in `unread` marked. The first that shows the
        headline's metric, else the first of all, has the reasons as notes."""
        scores = list(scores)
        if not (unread := self.unread(scores)):
            return list(tables)
        at = next((i for i, entry in enumerate(entries) if self.metric in entry.cells), 0)
        done = [marked(entry, table, scores, unread) for entry, table in zip(entries, tables, strict=True)]
        return [replace(one, notes=(*one.notes, *unread.values())) if i == at else one for i, one in enumerate(done)]

    def readable(self, scores: Iterable[EpisodeScore]) -> list[EpisodeScore]:
        """The episodes that the headline covers, of models that have one."""
        scores = self.selected(scores)
        unread = self.unread(scores)
        return [score for score in scores if score.model not in unread]


_WHO_PLAYED: Final = ("model", "contestant")
"""Labels of rows and columns that say who played."""


def marked(entry: TableSpec, table: Table, scores: Iterable[EpisodeScore], unread: Iterable[str]) -> Table:
    """A table with its cells of unread models marked, and a note on the mark.

    A cell is of the model that its row or column names; where neither does, of all models in the table's episodes.
    """
    unread = {*unread}
    first: dict[str, EpisodeScore] = {}
    for score in scores:
        if score.model not in first and meets(score.labels, entry.where):
            first[score.model] = score
    found, names = [model for model in first if model in unread], set[str]()
    for model in found:
        labels = first[model].labels
        for key in entry.added:  # they may give models other names
            labels = key.relabelled(labels)
        names.add(text(labels.get("model")))

    def is_unread(row: Row, column: Column) -> bool:
        labels = {**row.key, **column.key}
        who = next((labels[name] for name in _WHO_PLAYED if name in labels), None)
        return bool(found) if who is None else text(who) in names

    rows = [
        row
        if row.published is not None
        else replace(
            row,
            cells=tuple(
                replace(cell, unread=is_unread(row, column))
                for column, cell in zip(table.columns, row.cells, strict=True)
            ),
        )
        for row in table.rows
    ]
    done = replace(table, rows=tuple(rows))
    if not done.unread:
        return done
    listed = ", ".join(found)
    note = f"{UNREAD} too few turns were parsed for these numbers to say anything of {listed}."
    return replace(done, notes=(*done.notes, note))


def _unread(cell: Cell) -> Cell:
    """The cell without its number, which is withheld and not missing."""
    return replace(cell, value=None, stderr=None, low=None, high=None, std=None, n=0)


def check_headline(
    entry: Mapping[str, Any], labels: Iterable[str] | Mapping[str, Sequence[Any]], metrics: Iterable[str]
) -> list[str]:
    """Everything that is wrong with a `headline:` beyond its JSON Schema; labels and metrics as in `check`."""
    names = list(metrics)
    table = {"title": "headline", "rows": "model", "metrics": [entry["metric"], *entry.get("also_show", [])]}
    table["metrics"] = list(dict.fromkeys(table["metrics"]))
    both = [end for end in ("floor", "ceiling") if entry.get(end) is not None and entry.get(f"no_{end}") is not None]
    wrong = [f"there is a {end}, and no_{end} says that there is none" for end in both]
    return wrong + check({**table, **({"where": entry["where"]} if "where" in entry else {})}, labels, names)
