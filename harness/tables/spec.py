"""A spec's table entry: parsed, and checked before anything runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from harness.api.errors import KEY, SpecError, UserError, ValuePath, near
from harness.plugins.parameters import problems

from .entry import Means, TableEntry
from .keys import TableKey, keys_in
from .kinds import TableKind, entry_type, kind_of
from .table import DIGITS, FOR_NOTES, Cell, Digits, Errors, ErrorStyle, Figure, Units, text

if TYPE_CHECKING:
    from .scores import EpisodeScore

RESERVED: Final = {field.name for field in fields(Cell)} - {"blank"} - FOR_NOTES | {"overall", "published", "group"}
"""The names of a tidy row's own fields: a label of that name would be overwritten there."""
CLUSTERS: Final = ("case", "episode")
"""The words of `cluster:` that are not labels."""
_DRAWN: Final = frozenset({"panel", "x", "series"})


@dataclass(frozen=True, slots=True)
class DerivedCell:
    """A cell that is computed from metrics, as a key of the entry says. It has no error.

    Attributes:
        kind: the key: "ratio", "relative_drop", or that of an extension.
        metrics: those from which it is computed, in the order of the entry.
        total: of an extension: the episodes, and how many of them failed → the cell; a sum, it has no mean over rows.
    """

    kind: str
    metrics: tuple[str, ...]
    total: Callable[[Sequence[EpisodeScore], int], Cell] | None = None


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
    derived: Mapping[str, DerivedCell] = field(default_factory=dict)
    kind: TableKind | None = None
    added: tuple[TableKey, ...] = ()
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aggregate: Means = "mean_of_conditions"
    overall: Means | None = None
    overall_title: str = "Overall"
    uncertainty: Errors = None
    cluster: tuple[str, ...] = ()
    error_style: ErrorStyle = "parentheses"
    digits: Digits = DIGITS
    unit: Units = None
    published: tuple[str, ...] = ()
    paper: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hide_empty: bool = False
    note: str | None = None
    figure: Figure | None = None

    @property
    def kinds(self) -> set[str | None]:
        """Every kind of error that some metric shows."""
        return set(self.uncertainty.values()) if isinstance(self.uncertainty, Mapping) else {self.uncertainty}

    @property
    def clustering(self) -> tuple[str, ...]:
        """The labels among `cluster`."""
        return tuple(name for name in self.cluster if name not in CLUSTERS)

    @property
    def summed(self) -> frozenset[str]:
        """The cells that have no mean over rows: sums and losses."""
        return frozenset(name for name, derived in self.derived.items() if derived.kind != "ratio")

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


def check(entry: Any, labels: Iterable[str] | Mapping[str, Sequence[Any]], metrics: Iterable[str]) -> list[str]:
    """Everything that is wrong with a table entry, in words for `harness validate`; nothing if all is well.

    Args:
        entry: the YAML value as it is in the spec, or a parsed `TableSpec`.
        labels: the labels that episodes will have, if possible with the values they take (an empty sequence
            where these are not known); "model" and "metric" are always there.
        metrics: the names of the spec's metrics.
    """
    if not isinstance(entry, TableSpec):
        entry, mistakes = _read(entry)
        if entry is None:
            return mistakes
    values_of: Mapping[str, Sequence[Any]] = labels if isinstance(labels, Mapping) else dict.fromkeys(labels, ())
    mistakes = []
    for key in entry.added:
        mistakes += key.check(entry, values_of)
        values_of = key.labels(values_of)
    names = {"model", "metric", *values_of}
    for key, values_by_label in (
        ("rows", dict.fromkeys(entry.rows, ())),
        ("columns", dict.fromkeys(entry.columns, ())),
        ("where", entry.where),
        ("order", entry.order),
        ("cluster", dict.fromkeys(entry.clustering, ())),
        *(entry.kind.labels() if entry.kind else ()),
    ):
        for label, values in values_by_label.items():
            if entry.kind and key == "order" and label in entry.kind.reserved:
                continue
            if label not in names:
                mistakes.append(f"{key}: unknown label {label!r}. {near(label, names)}")
            possible = list(map(text, values_of.get(label, ())))
            absent = [value for value in values if possible and value not in possible]
            mistakes += [f"{key}: {label} is never {value!r}. {near(value, possible)}" for value in absent]
    choices = list(metrics)
    key = entry.kind.names_metrics if entry.kind else "metrics"
    needed = [(key, name) for name in entry.cells if name not in entry.derived]
    needed += [(derived.kind, metric) for derived in entry.derived.values() for metric in derived.metrics]
    mistakes += [f"{key}: unknown metric {x!r}. {near(x, choices)}" for key, x in needed if x not in choices]
    if entry.kind:
        possible_values = {label: [*map(text, values)] for label, values in values_of.items()}
        try:
            mistakes += entry.kind.check(entry, possible_values, metrics)
        except Exception as error:
            mistakes.append(_failure(type(entry.kind), error))
    return mistakes


def _failure(kind: type[TableKind], error: Exception) -> str:
    from harness.storage.plugin_errors import describe  # what only a failing plugin needs

    return f"the kind of table {kind.__module__}.{kind.__name__} fails: {describe(error)}"


def _read(entry: Any) -> tuple[TableSpec | None, list[str]]:
    """The spec, or None and every reason why there is none. Raises `PluginError` for a kind that cannot be loaded."""
    try:
        return _parsed(entry)
    except UserError:
        raise
    except Exception as error:
        kind, _ = kind_of(entry)
        if kind is None:
            raise
        return None, [_failure(kind, error)]


def _parsed(entry: Any) -> tuple[TableSpec | None, list[str]]:
    try:
        written = json.dumps(entry)
    except (TypeError, ValueError, RecursionError) as error:
        return None, [f"a table is plain data: {error}"]
    spec, mistakes = _parse_json(written)
    if spec is not None:  # whoever gets it may change its mappings
        own: dict[str, Any] = {name: {**getattr(spec, name)} for name in ("derived", "where", "labels", "order")}
        spec = replace(spec, **own)
    return spec, [*mistakes]


@lru_cache(maxsize=256)  # a run checks its entries, and builds them twice: for its folder and for the terminal
def _parse_json(written: str) -> tuple[TableSpec | None, list[str]]:
    entry = json.loads(written)  # what a Python caller gives, as YAML would give it
    table = "a table must be a mapping with title, rows and metrics"
    wrong = (
        f"{path[0]}: {what}" if path[1:] not in ((), (KEY,)) else what.replace("this must be a mapping", table)
        for path, what in entry_problems(entry)
    )
    mistakes = list(dict.fromkeys(wrong))
    kind, wrong_kind = kind_of(entry)
    if isinstance(entry, dict) and not wrong_kind:
        needed = kind.needs if kind else ("rows", "metrics")
        mistakes += [f"missing required key {key!r}" for key in needed if key not in entry]
    if mistakes:
        return None, mistakes
    entry = kind.complete(entry) if kind else entry
    added = sorted((k.read(entry) for k in keys_in(entry).values()), key=lambda k: type(k).labels is TableKey.labels)
    derived = [(name, DerivedCell(kind, tuple(pair))) for kind in _PAIRS for name, pair in entry.get(kind, {}).items()]
    derived += [made for key in added for made in key.cells().items()]
    own = {field.name for field in fields(TableSpec)} & TableEntry.__annotations__.keys() - {"kind"}
    spec = TableSpec(
        **{name: _CONVERTED.get(name, lambda value: value)(entry[name]) for name in own if entry.get(name) is not None},
        cells=as_tuple(entry[kind.names_metrics if kind else "metrics"]),
        derived=dict(derived),
        kind=kind.read(entry) if kind else None,
        added=tuple(added),
    )
    mistakes = [f"{x!r} is derived twice" for x, count in Counter(name for name, _ in derived).items() if count > 1]
    mistakes += _sense_problems(spec)
    if kind:
        alone = [name for name, key in keys_in(entry).items() if not key.with_kinds]
        mistakes += [f"{name}: only a plain table has it" for name in alone]
        if entry.get("aggregate", "pooled") != "pooled":
            key = "kind" if "kind" in entry else kind.needs[0]
            mistakes.append(f"{key}: it is made of episodes, not of conditions: aggregate can only be pooled")
        if kind.names_metrics != "metrics" and "metrics" in entry:
            mistakes.append(f"metrics: this kind of table has its own columns; {kind.names_metrics} names the metric")
        spec = replace(spec, aggregate="pooled")
    return (None if mistakes else spec), mistakes


def entry_problems(entry: Any) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with the keys and types of an entry, as `parameters.problems` says it."""
    kind, mistakes = kind_of(entry)
    if mistakes or any(problems(entry, entry_type(kind, entry))):
        from .entry_errors import explain_errors  # what only a mistake needs

        yield from explain_errors(entry, kind, mistakes)


_PAIRS: Final[tuple[Literal["ratio", "relative_drop"], ...]] = ("ratio", "relative_drop")
_BY_METRIC: Final = ("uncertainty", "digits", "unit")


def _kind(error: Any) -> Any:
    """`uncertainty:` with one word for every interval."""
    if isinstance(error, dict):
        return {metric: _kind(kind) for metric, kind in error.items()}
    return "interval" if error in ("wilson", "t") else error


def as_tuple(value: Any) -> tuple[Any, ...]:
    """What is one or several in YAML."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _texts(by_label: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    return {label: tuple(map(text, as_tuple(values))) for label, values in by_label.items()}


_CONVERTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("rows", "columns", "cluster", "published", "paper"), as_tuple),
    **dict.fromkeys(("where", "order"), _texts),
    "uncertainty": _kind,
    "figure": lambda figure: "bar" if figure is True else figure or None,
}
"""Keys of an entry whose field of `TableSpec` has another form than YAML."""


def _sense_problems(spec: TableSpec) -> list[str]:
    """Values that are fine alone and wrong together."""
    mistakes = []
    placed = (*spec.rows, *spec.columns, *(spec.kind.placed() if spec.kind else ()))
    reserved = RESERVED | (_DRAWN if spec.figure else set()) | (spec.kind.reserved if spec.kind else set())
    mistakes += [f"label {label!r} is both in rows and in columns" for label in spec.rows if label in spec.columns]
    mistakes += [f"a table cannot group by {label!r}: the name is taken" for label in placed if label in reserved]
    mistakes += [
        f"{key}: use metrics: to choose metrics" for key in ("where", "order") if "metric" in getattr(spec, key)
    ]
    unused = {name: derived for name, derived in spec.derived.items() if name not in spec.cells}
    mistakes += [f"{derived.kind}: metrics does not use {name!r}" for name, derived in unused.items()]
    if "episode" in spec.cluster and len(spec.cluster) > 1:
        mistakes.append("cluster: 'episode' stands alone")
    mistakes += [problem for key in spec.added for problem in key.problems(spec)]
    if spec.kind:
        return mistakes + spec.kind.problems(spec)
    for key in _BY_METRIC:
        names = getattr(spec, key)
        absent = [x for x in names if x not in spec.cells] if isinstance(names, Mapping) else []
        mistakes += [f"{key}: metrics has no {x!r}. {near(x, spec.cells)}" for x in absent]
    if "std" in spec.kinds and (spec.aggregate != "pooled" or spec.overall == "mean_of_conditions"):
        mistakes.append("a standard deviation describes pooled numbers: set aggregate (and overall) to pooled")
    if spec.overall and not set(spec.columns) - {"metric"}:
        mistakes.append("overall needs a column label to run over")
    if spec.overall and spec.figure:
        mistakes.append("a figure has no overall column")
    if spec.figure == "stacked" and (len(spec.cells) > 1) == bool(set(spec.columns) - {"metric"}):
        mistakes.append("a stacked figure needs one metric and a column label to stack, or several metrics and none")
    return mistakes


def beside(spec: TableSpec, key: str, reasons: Mapping[str, str]) -> list[str]:
    """Keys that make no sense beside a kind of table; for kinds to use.

    Args:
        spec: the table.
        key: the key that stands for the kind in messages.
        reasons: field of `TableSpec` that must be empty → why.
    """
    mistakes = [f"{key}: {name} cannot stand beside it: {why}" for name, why in reasons.items() if getattr(spec, name)]
    return mistakes + [
        f"{key}: {name!r} is a {derived.kind}, which episodes have no numbers of: {key} takes its metrics"
        for name, derived in spec.derived.items()
        if name in spec.cells
    ]
