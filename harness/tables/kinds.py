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

from harness.plugins.extension import Offer
from harness.plugins.manifests import offers

from .entry import TableEntry
from .keys import TableKey, all_loaded, keys_in, loaded

if TYPE_CHECKING:
    from harness.api import Metric

    from .headline import HeadlineSpec
    from .scores import EpisodeScore
    from .spec import TableSpec
    from .table import Table


class TableKind(ABC):
    """One entry of `tables:` of this kind. Subclasses are frozen dataclasses.

    Such a table has statistics instead of columns, and its numbers are computed from episodes, never from conditions.

    Attributes:
        entry: a `TypedDict` with the keys that the kind adds to those of every table (`TableEntry`).
        needs: the keys that an entry must have beside its title.
        names_metrics: the key that names the metrics.
        shares_cluster: whether `cluster:` of the spec holds for it.
        reserved: names in its tidy rows that no label may have.
    """

    entry: ClassVar[Any]
    needs: ClassVar[tuple[str, ...]] = ("metrics",)
    names_metrics: ClassVar[str] = "metrics"
    shares_cluster: ClassVar[bool] = True
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic"})

    @classmethod
    def complete(cls, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry with what this kind proposes for keys that it leaves out."""
        return entry

    @classmethod
    def proposed(cls, headline: HeadlineSpec) -> Mapping[str, Any] | None:
        """Keys of an entry about a headline: `harness report --table KIND` shows it of a spec that has none."""
        return None

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

    @abstractmethod
    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """Fill it with the episodes that its `where` selects. Raises `SpecError`."""


def is_key(offer: Offer) -> bool:
    """Whether an entry takes the kind by a key of its name."""
    return isinstance(offer.value, Mapping) and bool(offer.value.get("key"))


def kind_of(entry: Any) -> tuple[type[TableKind] | None, list[tuple[str, str]]]:
    """The kind of table that an entry takes (None: a plain one), and why it is not one: (key of the entry, problem)."""
    if not isinstance(entry, Mapping):
        return None, []
    offered = offers("tables")
    taken = [(name, name) for name, offer in offered.items() if is_key(offer) and name in entry]
    if "kind" in entry:
        if (name := entry["kind"]) not in [known for known, offer in offered.items() if not is_key(offer)]:
            from .entry_errors import wrong_kind  # what only a mistake needs

            return None, [("kind", wrong_kind(name))]
        taken.insert(0, ("kind", entry["kind"]))
    others = [(key, f"{taken[0][0]}: {key} is another kind of table: make one entry of each") for key, _ in taken[1:]]
    return (loaded(offered[taken[0][1]], TableKind) if taken else None), others


def entry_type(kind: type[TableKind] | None, entry: Any) -> Any:
    """The `TypedDict` of an entry that takes this kind and has these keys of extensions."""
    return _with(*([kind] if kind else []), *(keys_in(entry).values() if isinstance(entry, Mapping) else ()))


def whole_entry_type() -> Any:
    """The `TypedDict` with the keys of all kinds there are and of all extensions, for editors."""
    every: list[Any] = [*all_loaded("tables", TableKind).values(), *all_loaded("table_keys", TableKey).values()]
    return _with(*every)


@functools.cache
def _with(*added: type[TableKind] | type[TableKey]) -> Any:
    hints = [typing.get_type_hints(one, include_extras=True) for one in (TableEntry, *(one.entry for one in added))]
    return TypedDict("TableEntry", {name: hint for part in hints for name, hint in part.items()}, total=False)  # type: ignore[operator]
