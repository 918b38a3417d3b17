"""A spec's table entry: parsed, and checked before anything runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from harness.errors import KEY, SpecError, near
from harness.parameters import problems

from .entry import Kind, Means, Model, TableEntry, Value
from .groups import RowGroup, label_of, parsed, wrong_members
from .split import Split, with_split, wrong_split
from .table import DIGITS, Digits, Errors, ErrorStyle, Figure, Units, text

# The names of a tidy row's own fields: a label of that name would be overwritten there.
RESERVED: Final = frozenset(
    {
        "value",
        "stderr",
        "n",
        "failed",
        "missing",
        "low",
        "high",
        "std",
        "best",
        "uses_ground_truth",
        "overall",
        "published",
        "group",
    }
)
CONTESTANT: Final = "contestant"
OPPONENT: Final = "opponent"
CLUSTERS: Final = ("case", "episode")
"""The words of `cluster:` that are no labels."""
_DRAWN: Final = frozenset({"panel", "x", "series"})


@dataclass(frozen=True, slots=True)
class Compare:
    """Which values of a label are compared with which one, and the labels by which episodes make pairs (if any)."""

    label: str
    base: str
    others: tuple[str, ...]
    paired_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Games:
    """What a table of games shows, as the keys of `TableEntry` say. Without a `model` the games choose it."""

    kind: Kind
    model: Model | None = None
    anchor: float | str = 1500.0
    k_factor: float = 16.0
    value: Value = "points"


@dataclass(frozen=True, slots=True)
class Derived:
    """A cell that is made of metrics, as the keys of `TableEntry` say. It has no error.

    Attributes:
        kind: "ratio", "loss" or "cost".
        metrics: what it is made of, in the order of the entry.
        prices: of a cost, the price ("input" or "output") at which each metric's tokens are billed.
    """

    kind: Literal["ratio", "loss", "cost"]
    metrics: tuple[str, ...]
    prices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """What a table shows; `TableEntry` describes the fields as they are written in YAML.

    Label values are kept as text. The label "metric" stands for the metrics of `cells`: name it in rows or columns to
    place it, else it becomes the last column level when there are several. A ratio is taken over all episodes of a cell
    that have both numbers, whatever `aggregate` says; a loss takes means as `aggregate` does.
    """

    title: str
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: tuple[str, ...]
    derived: Mapping[str, Derived] = field(default_factory=dict)
    compare: Compare | None = None
    effects: tuple[str, ...] = ()
    interactions: bool = False
    games: Games | None = None
    split: Split = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aggregate: Means = "mean_of_conditions"
    overall: Means | None = None
    overall_title: str = "Overall"
    error: Errors = None
    cluster: tuple[str, ...] = ()
    error_style: ErrorStyle = "parentheses"
    digits: Digits = DIGITS
    unit: Units = None
    published: tuple[str, ...] = ()
    paper: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[RowGroup, ...] = ()
    hide_empty: bool = False
    note: str | None = None
    figure: Figure | None = None

    @property
    def kinds(self) -> set[str | None]:
        """Every kind of error that some metric shows."""
        return set(self.error.values()) if isinstance(self.error, Mapping) else {self.error}

    @property
    def clustering(self) -> tuple[str, ...]:
        """The labels among `cluster`."""
        return tuple(name for name in self.cluster if name not in CLUSTERS)

    @property
    def summed(self) -> frozenset[str]:
        """The cells that have no mean over rows: costs, which are sums, and losses."""
        return frozenset(name for name, derived in self.derived.items() if derived.kind != "ratio")

    def called(self, name: str) -> bool:
        """Whether a name means this table: its title in any case, or its number in a paper ("AgentsNet 4", "Table 4",
        "4"), by `paper` and by the published tables that stand beside it."""
        if name.casefold() == self.title.casefold():
            return True
        words = words_of_name(name)
        return bool(words) and any(words <= words_of_name(number) for number in (*self.paper, *self.published))

    @classmethod
    def parse(cls, entry: Any) -> TableSpec:
        """Make a spec of a YAML mapping.

        Raises:
            SpecError: naming every problem there is.
        """
        spec, mistakes = _read(entry)
        if spec is None:
            raise SpecError("; ".join(mistakes))
        return spec


def words_of_name(name: str) -> frozenset[str]:
    """Words and numbers of a table's name: mas_bench/table4 and "MAS-Bench, Table 4" have the same."""
    return frozenset(re.findall(r"[a-z]+|[0-9]+", name.casefold())) - {"bench"}


def check(
    entry: Any,
    labels: Iterable[str] | Mapping[str, Sequence[Any]],
    metrics: Iterable[str],
    published: Iterable[str] | None = None,
) -> list[str]:
    """Everything that is wrong with a table entry, in words for `harness validate`; nothing if all is well.

    Args:
        entry: the YAML value as it stands in the spec, or a parsed `TableSpec`.
        labels: the labels that episodes will have, if possible with the values they take (an empty sequence
            where these are not known); "model" and "metric" are always there.
        metrics: the names of the spec's metrics.
        published: the ids of the published tables there are; None if unknown.
    """
    if not isinstance(entry, TableSpec):
        entry, mistakes = _read(entry)
        if entry is None:
            return mistakes
    mistakes = [*wrong_split(entry.split, labels, RESERVED)]
    labels = with_split(entry.split, labels)
    compare = entry.compare
    names = {"model", "metric", *labels}
    compared = {compare.label: (compare.base, *compare.others)} if compare else {}
    paired_by = dict.fromkeys(compare.paired_by, ()) if compare else {}
    values_of = labels
    for key, values_by_label in (
        ("rows", dict.fromkeys(entry.rows, ())),
        ("columns", dict.fromkeys(entry.columns, ())),
        ("where", entry.where),
        ("order", entry.order),
        ("cluster", dict.fromkeys(entry.clustering, ())),
        ("compare", {**compared, **paired_by}),
        ("effects", dict.fromkeys(entry.effects, ())),
    ):
        for label, values in values_by_label.items():
            if entry.games and key == "order" and label == CONTESTANT:
                continue
            if label not in names:
                mistakes.append(f"{key}: unknown label {label!r}. {near(label, names)}")
            possible = list(map(text, values_of.get(label, ())))
            absent = [value for value in values if possible and value not in possible]
            mistakes += [f"{key}: {label} is never {value!r}. {near(value, possible)}" for value in absent]
    if entry.groups and (grouped := label_of(entry.rows)):
        mistakes += wrong_members(entry.groups, grouped, list(map(text, values_of.get(grouped, ()))))
    choices = list(metrics)
    needed = [("of" if entry.games else "cell", name) for name in entry.cells if name not in entry.derived]
    needed += [(derived.kind, metric) for derived in entry.derived.values() for metric in derived.metrics]
    mistakes += [f"{key}: unknown metric {x!r}. {near(x, choices)}" for key, x in needed if x not in choices]
    if entry.effects:
        from harness.extensions.effects.model import many_levels  # what only such tables need

        mistakes += many_levels(entry.effects, values_of)
    if entry.games and isinstance(metrics, Mapping):
        bare = [name for name in entry.cells if name in metrics and not metrics[name].results_of_contestants]
        mistakes += [f"of: {name} keeps no results of games, as games/results does" for name in bare]
    if published is not None:
        ids = list(published)
        mistakes += [f"published: unknown table {i!r}. {near(i, ids)}" for i in entry.published if i not in ids]
    return mistakes


def _read(entry: Any) -> tuple[TableSpec | None, list[str]]:
    """The spec, or None and every reason why there is none."""
    try:
        entry = json.loads(json.dumps(entry))  # what a Python caller gives, as YAML would give it
    except (TypeError, ValueError, RecursionError) as error:
        return None, [f"a table is plain data: {error}"]
    table = "a table must be a mapping with title, rows and cell"
    wrong = (
        f"{path[0]}: {what}" if path[1:] not in ((), (KEY,)) else what.replace("this must be a mapping", table)
        for path, what in problems(entry, TableEntry)
    )
    mistakes = list(dict.fromkeys(wrong))
    if isinstance(entry, dict):
        needed = ("of",) if "kind" in entry else ("cell",) if "effects" in entry else ("rows", "cell")
        mistakes += [f"missing required key {key!r}" for key in needed if key not in entry]
    if mistakes:
        return None, mistakes
    derived = [(name, Derived(kind, tuple(pair))) for kind in _PAIRS for name, pair in entry.get(kind, {}).items()]
    costs = entry.get("cost", {}).items()
    derived += [(name, Derived("cost", tuple(parts.values()), tuple(parts))) for name, parts in costs]
    if entry.get("kind") == "cross_play" and entry.get("value", "points") == "points":
        entry = {"digits": 0, "unit": "percent", **entry}
    figure, compare = entry.get("figure"), None
    if "compare" in entry:
        sides = entry["compare"]
        others = tuple(map(text, _tuple(sides["with"])))
        compare = Compare(sides["label"], text(sides["base"]), others, _tuple(sides.get("paired_by", ())))
    groups, wrong_groups = parsed(entry.get("groups", ()))
    spec = TableSpec(
        **{key: value for key, value in entry.items() if key in _AS_IS and value is not None},
        rows=_tuple(entry.get("rows", ())),
        columns=_tuple(entry.get("columns", ())),
        cells=_tuple(entry["of" if "kind" in entry else "cell"]),
        error=_kind(entry.get("error")),
        cluster=_tuple(entry.get("cluster", ())),
        derived=dict(derived),
        compare=compare,
        effects=_tuple(entry.get("effects", ())),
        games=Games(**{key: entry[key] for key in _GAMES if key in entry}) if "kind" in entry else None,
        where={label: tuple(map(text, _tuple(values))) for label, values in entry.get("where", {}).items()},
        published=_tuple(entry.get("published", ())),
        paper=_tuple(entry.get("paper", ())),
        order={label: tuple(map(text, values)) for label, values in entry.get("order", {}).items()},
        groups=groups,
        figure="bar" if figure is True else figure or None,
    )
    mistakes = [f"{x!r} is derived twice" for x, count in Counter(name for name, _ in derived).items() if count > 1]
    mistakes += wrong_groups + _sense_problems(spec) + _wrong_keys(entry, spec)
    if compare or spec.effects or spec.games:
        if entry.get("aggregate", "pooled") != "pooled":
            key = "kind" if spec.games else "compare" if compare else "effects"
            what = "it is made of games" if spec.games else "a test is one of episodes"
            mistakes.append(f"{key}: {what}, not of conditions: aggregate can only be pooled")
        spec = replace(spec, aggregate="pooled")
    return (None if mistakes else spec), mistakes


_GAMES: Final = {"kind": "", "model": "rating", "anchor": "rating", "k_factor": "rating", "value": "cross_play"}
"""Key → the kind that it belongs to."""


def _wrong_keys(entry: Mapping[str, Any], spec: TableSpec) -> list[str]:
    """Keys of tables of games in tables of other kinds, and the other way round."""
    kind = spec.games.kind if spec.games else None
    mistakes = [
        f"{key}: it belongs to kind: {of}" for key, of in _GAMES.items() if key in entry and of not in ("", kind)
    ]
    if kind is None:
        return mistakes + ["of: it belongs to kind; a table of other numbers has cell"] * ("of" in entry)
    mistakes += ["cell: kind has its columns; of names the results"] * ("cell" in entry)
    if "k_factor" in entry and entry.get("model") != "elo":
        mistakes.append("k_factor: it belongs to model: elo")
    return mistakes


_PAIRS: Final[tuple[Literal["ratio", "loss"], ...]] = ("ratio", "loss")
_BY_METRIC: Final = ("error", "digits", "unit")
_AS_IS: Final = frozenset(
    {
        "title",
        "split",
        "aggregate",
        "overall",
        "overall_title",
        "error_style",
        "hide_empty",
        "note",
        "labels",
        "digits",
        "unit",
    }
    | {"interactions"}
)


def _kind(error: Any) -> Any:
    """`error:` with one word for every interval."""
    if isinstance(error, dict):
        return {metric: _kind(kind) for metric, kind in error.items()}
    return "interval" if error in ("wilson", "t") else error


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _sense_problems(spec: TableSpec) -> list[str]:
    """Values that are fine alone and wrong together."""
    mistakes = []
    placed = (*spec.rows, *spec.columns, *([spec.compare.label] if spec.compare else ()))
    reserved = RESERVED | (_DRAWN if spec.figure else set()) | ({"statistic"} if spec.compare else set())
    reserved |= {"statistic", "factor", "level"} if spec.effects else set()
    reserved |= {"statistic", CONTESTANT, OPPONENT} if spec.games else set()
    mistakes += [f"label {label!r} is both in rows and in columns" for label in spec.rows if label in spec.columns]
    mistakes += [f"a table cannot group by {label!r}: the name is taken" for label in placed if label in reserved]
    mistakes += [f"{key}: use cell to choose metrics" for key in ("where", "order") if "metric" in getattr(spec, key)]
    unused = {name: derived for name, derived in spec.derived.items() if name not in spec.cells}
    mistakes += [f"{derived.kind}: cell does not use {name!r}" for name, derived in unused.items()]
    if "episode" in spec.cluster and len(spec.cluster) > 1:
        mistakes.append("cluster: 'episode' stands alone")
    if spec.interactions and len(spec.effects) < 2:
        mistakes.append("interactions: effects needs two labels or more, whose pairs are tested")
    if spec.games:
        return mistakes + _beside(spec, "kind")
    if spec.compare:
        return mistakes + _beside(spec, "compare") + _compare_problems(spec, spec.compare)
    if spec.effects:
        from harness.extensions.effects.model import senseless

        return mistakes + _beside(spec, "effects") + senseless(spec.effects, spec.rows, spec.where)
    for key in _BY_METRIC:
        names = getattr(spec, key)
        absent = [x for x in names if x not in spec.cells] if isinstance(names, Mapping) else []
        mistakes += [f"{key}: cell has no metric {x!r}. {near(x, spec.cells)}" for x in absent]
    kinds = spec.error.values() if isinstance(spec.error, Mapping) else [spec.error]
    if spec.aggregate != "pooled" or spec.overall == "mean_of_conditions":
        mistakes += [
            f"a {_POOLED[kind]} describes pooled numbers: set aggregate (and overall) to pooled"
            for kind in dict.fromkeys(kinds)
            if kind in _POOLED
        ]
    if spec.overall and not set(spec.columns) - {"metric"}:
        mistakes.append("overall needs a column label to run over")
    if spec.overall and spec.figure:
        mistakes.append("a figure has no overall column")
    for group in spec.groups:
        absent = [name for name in group.cells if name not in spec.cells]
        mistakes += [f"groups: {group.title!r}: cell has no {x!r}. {near(x, spec.cells)}" for x in absent]
        mistakes += [f"groups: {x!r} has no mean over rows" for x in group.cells if x in spec.summed]
    if spec.groups and label_of(spec.rows) is None:
        mistakes.append("groups: rows need a label besides model and metric, whose values they name")
    if spec.groups and spec.figure:
        mistakes.append("a figure has no groups")
    if spec.figure == "stacked" and (len(spec.cells) > 1) == bool(set(spec.columns) - {"metric"}):
        mistakes.append("a stacked figure needs one metric and a column label to stack, or several metrics and none")
    return mistakes


def _beside(spec: TableSpec, kind: Literal["compare", "effects", "kind"]) -> list[str]:
    """What makes no sense beside a table of tests."""
    fine = ("figure", "error") if spec.games and spec.games.kind == "cross_play" else ()
    mistakes = [
        f"{kind}: {key} cannot stand beside it: {why}"
        for key, why in (_BESIDE | _BESIDE_GAMES if spec.games else _BESIDE).items()
        if getattr(spec, key) and key not in fine
    ]
    if fine and spec.figure not in (None, "heat"):
        mistakes.append("figure: cross_play is drawn as heat")
    if fine and spec.error not in (None, "interval"):
        mistakes.append("error: cross_play shows interval")
    mistakes += [
        f"kind: {key} is another kind of table" for key in ("compare", "effects") if spec.games and getattr(spec, key)
    ]
    return mistakes + [
        f"{kind}: {name!r} is a {derived.kind}, which episodes have no numbers of: {kind} takes its metrics"
        for name, derived in spec.derived.items()
        if name in spec.cells
    ]


def _compare_problems(spec: TableSpec, compare: Compare) -> list[str]:
    """What makes no sense in a table of differences."""
    label, base, mistakes = compare.label, compare.base, []
    if spec.effects:
        mistakes.append("compare: effects is another kind of table: make one entry of each")
    if label in spec.rows:
        mistakes.append(f"compare: rows must not have {label!r}: a row holds both sides of a comparison")
    if "metric" in (label, *compare.paired_by):
        mistakes.append("compare: use cell to choose metrics, each is compared with itself")
    if label in compare.paired_by:
        mistakes.append(f"compare: no pair can agree in {label!r}, which distinguishes its two sides")
    if base in compare.others:
        mistakes.append(f"compare: {base!r} is compared with itself")
    mistakes += [f"compare: with has {x!r} twice" for x, n in Counter(compare.others).items() if n > 1]
    allowed = spec.where.get(label, (base, *compare.others))
    mistakes += [f"compare: where leaves out {label} {x!r}" for x in (base, *compare.others) if x not in allowed]
    return mistakes


_BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "tests are shown as a table",
    "hide_empty": "its columns are statistics, the same for every row",
    "groups": "a test has no mean over rows",
    "published": "published figures are not tested",
    "error": "the tests say how sure a difference is",
}
_BESIDE_GAMES: Final = {
    "figure": "it is shown as a table; cross_play can be drawn as heat",
    "groups": "a contestant has no mean over rows",
    "published": "published figures are no results of these games",
    "error": "it has 95 % intervals",
}
"""What `_BESIDE` says of tests, in words for ratings and gaps."""
_POOLED: Final = {"std": "standard deviation"}
