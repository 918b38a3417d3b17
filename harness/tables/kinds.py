"""Kinds of tables that extensions bring, by `[tables]` of their manifests: tests, …

A manifest names a `TableKind`. An entry of `tables:` takes it by `kind: NAME`, or by a key where the manifest says so:

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

from harness.errors import near
from harness.manifests import Offer, bringer, offers

from .entry import TableEntry

if TYPE_CHECKING:
    from harness.api import Metric

    from .scores import EpisodeScore
    from .spec import TableSpec
    from .table import Table


class TableKind(ABC):
    """What one entry of `tables:` says as this kind of table. Its subclasses are frozen dataclasses.

    Such a table has statistics instead of columns, and its numbers are those of episodes, never of conditions.

    Attributes:
        entry: a `TypedDict` with the keys that the kind adds to those of every table (`TableEntry`).
        needs: the keys that an entry must have beside its title.
        names_metrics: the key that names the metrics.
        shares_cluster: whether `cluster:` of the spec holds for it.
        made_of: why no means of conditions can stand in it.
        reserved: names in its tidy rows that no label may have.
    """

    entry: ClassVar[Any]
    needs: ClassVar[tuple[str, ...]] = ("cell",)
    names_metrics: ClassVar[str] = "cell"
    shares_cluster: ClassVar[bool] = True
    made_of: ClassVar[str] = "a test is one of episodes"
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic"})

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
        """What is fine alone and wrong together, in words."""

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """What is wrong with it in a spec whose episodes have these labels (with their values, where known) and whose
        metrics these are, if possible as a mapping to the metrics."""
        return []

    def check_plan(self, table: TableSpec, plan: Any) -> list[tuple[str, str | None]]:
        """What the conditions of a plan (`harness.config.plan.Plan`) cannot give it: (problem, hint)."""
        return []

    @abstractmethod
    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """Fill it with the episodes that its `where` lets through. Raises `SpecError`."""


def _is_key(offer: Offer) -> bool:
    return isinstance(offer.value, Mapping) and bool(offer.value.get("key"))


def kind_of(entry: Any) -> tuple[type[TableKind] | None, list[str]]:
    """The kind of table that an entry takes (None: a plain one), and why it is not one."""
    if not isinstance(entry, Mapping):
        return None, []
    offered = offers("tables")
    words = [name for name, offer in offered.items() if not _is_key(offer)]
    taken = [(name, name) for name, offer in offered.items() if _is_key(offer) and name in entry]
    if "kind" in entry:
        if entry["kind"] not in words:
            advice = bringer(str(entry["kind"]), "tables") or near(str(entry["kind"]), words)
            return None, [f"'kind' is {entry['kind']!r}. {advice}"]
        taken.insert(0, ("kind", entry["kind"]))
    others = [f"{taken[0][0]}: {key} is another kind of table: make one entry of each" for key, _ in taken[1:]]
    return (offered[taken[0][1]].load() if taken else None), others


@functools.cache
def entry_type(kind: type[TableKind] | None) -> Any:
    """The `TypedDict` of an entry that takes this kind."""
    return TableEntry if kind is None else _with_keys([kind])


def whole_entry_type() -> Any:
    """The `TypedDict` with the keys of all kinds there are, for editors."""
    return _with_keys([offer.load() for offer in offers("tables").values()])


def _with_keys(kinds: Iterable[type[TableKind]]) -> Any:
    hints = [typing.get_type_hints(one, include_extras=True) for one in (TableEntry, *(kind.entry for kind in kinds))]
    return TypedDict("TableEntry", {name: hint for part in hints for name, hint in part.items()}, total=False)  # type: ignore[operator]


def owners(key: str) -> list[str]:
    """How an entry takes the kinds that have this key: "kind: ranks", "compare"."""
    return [
        name if _is_key(offer) else f"kind: {name}"
        for name, offer in offers("tables").items()
        if key in typing.get_type_hints(offer.load().entry)
    ]
