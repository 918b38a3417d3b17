"""Kinds of tables that extensions add, by `[tables]` of their manifests: tests, …

A manifest names a `TableKind`. An entry of `tables:` takes it by `kind: NAME`, or by a key if the manifest says so:

    [tables]
    ranks = "kinds:Ranks"                                # kind: ranks
    compare = {run = "kinds:Comparison", key = true}     # compare: {…}
"""

from __future__ import annotations

import functools
import typing
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from harness.manifests import Offer, offers, usable

from .entry import TableEntry

if TYPE_CHECKING:
    from harness.api import Metric

    from .scores import EpisodeScore
    from .spec import TableSpec
    from .table import Row, Table


class TableKind(ABC):
    """One entry of `tables:` of this kind. Subclasses are frozen dataclasses.

    Such a table has statistics instead of columns (`build`), and its numbers are computed from episodes, never from
    conditions. If the kind is `plain`, it is a table like any other, with rows that the kind adds (`more_rows`).

    Attributes:
        entry: a `TypedDict` with the keys that the kind adds to those of every table (`TableEntry`).
        needs: the keys that an entry must have beside its title.
        names_metrics: the key that names the metrics.
        shares_cluster: whether `cluster:` of the spec holds for it.
        reserved: names in its tidy rows that no label may have.
        plain: whether it only adds rows to a plain table.
    """

    entry: ClassVar[Any]
    needs: ClassVar[tuple[str, ...]] = ("cell",)
    names_metrics: ClassVar[str] = "cell"
    shares_cluster: ClassVar[bool] = True
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic"})
    plain: ClassVar[bool] = False

    @classmethod
    def complete(cls, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry with what this kind proposes for keys that it leaves out."""
        return entry

    @classmethod
    @abstractmethod
    def read(cls, entry: Mapping[str, Any]) -> TableKind:
        """Read an entry whose keys and types are right."""

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The labels of episodes that it names: (key, label → values of it that it names)."""
        return ()

    def placed(self) -> Sequence[str]:
        """The labels that distinguish its cells, beside those of `rows`."""
        return ()

    @abstractmethod
    def problems(self, table: TableSpec) -> list[str]:
        """Keys that are valid alone and invalid together, as messages."""

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """What is wrong with it in a spec whose episodes have these labels (with their values, where known) and whose
        metrics these are, if possible as a mapping to the metrics."""
        return []

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """What the table needs and the conditions of a plan (`harness.config.plan.Plan`) lack: (problem, hint)."""
        return []

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """Fill it with the episodes that its `where` selects; only a `plain` kind lacks this. Raises `SpecError`."""
        raise NotImplementedError

    def more_rows(
        self,
        table: TableSpec,
        rows: Mapping[tuple[str, ...], Row],
        columns: Sequence[str | None],
        metrics: Mapping[str, Metric],
    ) -> tuple[list[Row], list[str]]:
        """The rows that a `plain` kind adds, and notes on them.

        Args:
            table: the entry.
            rows: values of the row labels, as text → row; without figures of publications.
            columns: the metric of each column, None if rows say it.
            metrics: name → metric.
        """
        return [], []


def is_key(offer: Offer) -> bool:
    """Whether an entry takes the kind by a key of its name."""
    return isinstance(offer.value, Mapping) and bool(offer.value.get("key"))


def _loaded(offer: Offer) -> type[TableKind]:
    """The class that a manifest names. Raises as `Offer.load_class`; `PluginError` too where it has no `entry`."""
    kind = offer.load_class(TableKind)
    if not typing.is_typeddict(getattr(kind, "entry", None)):
        raise offer.mistake(f"the class {kind.__name__} has no `entry`, a TypedDict with the keys that it adds")
    if not kind.plain and kind.build is TableKind.build:
        raise offer.mistake(f"the class {kind.__name__} has no build")
    return kind


def kind_of(entry: Any) -> tuple[type[TableKind] | None, list[tuple[str, str]]]:
    """The kind of table that an entry takes (None: a plain one), and why it is not one: (key of the entry, problem)."""
    if not isinstance(entry, Mapping):
        return None, []
    offered = offers("tables")
    taken = [(name, name) for name, offer in offered.items() if is_key(offer) and name in entry]
    if "kind" in entry:
        if (name := entry["kind"]) not in [known for known, offer in offered.items() if not is_key(offer)]:
            from .entry_mistakes import wrong_kind  # what only a mistake needs

            return None, [("kind", wrong_kind(name))]
        taken.insert(0, ("kind", entry["kind"]))
    others = [(key, f"{taken[0][0]}: {key} is another kind of table: make one entry of each") for key, _ in taken[1:]]
    return (_loaded(offered[taken[0][1]]) if taken else None), others


@functools.cache
def entry_type(kind: type[TableKind] | None) -> Any:
    """The `TypedDict` of an entry that takes this kind."""
    return TableEntry if kind is None else _with_keys([kind])


def whole_entry_type() -> Any:
    """The `TypedDict` with the keys of all kinds there are, for editors."""
    return _with_keys(usable_kinds().values())


def _with_keys(kinds: Iterable[type[TableKind]]) -> Any:
    hints = [typing.get_type_hints(one, include_extras=True) for one in (TableEntry, *(kind.entry for kind in kinds))]
    return TypedDict("TableEntry", {name: hint for part in hints for name, hint in part.items()}, total=False)  # type: ignore[operator]


def usable_kinds() -> dict[str, type[TableKind]]:
    """Name → kind, without those that cannot be loaded."""
    return {name: kind for name, kind in usable("tables", TableKind).items() if hasattr(kind, "entry")}
