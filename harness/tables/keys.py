"""Keys of entries of `tables:` beside those of all tables, by `[table_keys]` of manifests: rows of groups, costs, …

    [table_keys]
    groups = "tables.groups:Groups"

Next: `harness.tables.build`, which asks them when it fills a table.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from harness.plugins.extension import Offer
from harness.plugins.lookup import loadable_classes
from harness.plugins.manifests import offers

if TYPE_CHECKING:
    from harness.api import Metric

    from .axis import Axis, Key
    from .entry import Means
    from .scores import EpisodeScore
    from .spec import DerivedCell, TableSpec
    from .table import Row

    Behind = Callable[[Key, Key | None, str | None], tuple[Sequence[EpisodeScore], Means]]
    """Key of a row, key and metric of a column (as in `more_rows`) → the episodes, and how their mean is taken."""


class TableKey:
    """A key that an extension adds to entries of `tables:`. Subclasses are dataclasses.

    All methods have a default that changes nothing; those that a manifest names need `read`. A caller may add what no
    entry says to a parsed `TableSpec`.

    Attributes:
        entry: a `TypedDict` with the key, and keys that can stand beside it.
        with_kinds: whether it can stand in a table of another kind (`TableKind`), and not only in a plain one.
    """

    entry: ClassVar[Any]
    with_kinds: ClassVar[bool] = False

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Self:
        """Read the key of an entry whose keys and types are right."""
        return cls()

    def problems(self, table: TableSpec) -> list[str]:
        """Keys that are valid alone and invalid together, as messages."""
        return []

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[Any]]) -> list[str]:
        """What is wrong with it in a spec whose episodes have these labels (with their values, where known)."""
        return []

    def labels(self, known: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """The labels of the table, if those of episodes are known; each with its values, where known. Asked first."""
        return known

    def relabelled(self, labels: Mapping[str, Any]) -> Mapping[str, Any]:
        """An episode's labels as the table has them."""
        return labels

    def cells(self) -> Mapping[str, DerivedCell]:
        """New name, to be used in `cell` → how it is made."""
        return {}

    def models(self, table: TableSpec) -> Iterable[str]:
        """The models of which `more_rows` has numbers: the table distinguishes them from those of the episodes."""
        return ()

    def place(self, table: TableSpec, rows: Axis, columns: Axis) -> None:
        """Let the axes know the labels of `more_rows`, so that these have columns too."""

    def has_errors(self) -> bool:
        """Whether numbers of `more_rows` have errors that others have computed."""
        return False

    def with_episodes(self, behind: Behind) -> TableKey:
        """The key, with access to the episodes behind the table's numbers: for `more_rows`, where it needs them."""
        return self

    def more_rows(
        self,
        table: TableSpec,
        rows: Mapping[Key, Row],
        columns: Sequence[tuple[Key | None, str | None]],
        metrics: Mapping[str, Metric],
    ) -> tuple[list[Row], list[str]]:
        """Rows to put below the table's own, and notes on them.

        Args:
            table: the entry.
            rows: values of the row labels, as text → row; those of the episodes alone.
            columns: of each column the values of its labels, as text (None for the overall one), and its metric (None
                if rows say it).
            metrics: name → metric.
        """
        return [], []

    def notes(self, table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterable[str]:
        """What a reader must know."""
        return ()


T = TypeVar("T")


def loaded(offer: Offer, base: type[T]) -> type[T]:
    """The class that a manifest names. Raises as `Offer.load_class`; `PluginError` too without `entry` or `read`."""
    found = offer.load_class(base)
    if not typing.is_typeddict(getattr(found, "entry", None)):
        raise offer.mistake(f"the class {found.__name__} has no `entry`, a TypedDict with the keys that it adds")
    if getattr(getattr(found, "read", None), "__func__", None) is vars(TableKey)["read"].__func__:
        raise offer.mistake(f"the class {found.__name__} has no `read`: nothing would come of what entries say")
    return found


def keys_in(entry: Mapping[str, Any]) -> dict[str, type[TableKey]]:
    """Name → class of the keys of extensions that an entry has."""
    return {name: loaded(offer, TableKey) for name, offer in offers("table_keys").items() if name in entry}


def all_loaded(point: str, base: type[T]) -> dict[str, type[T]]:
    """Name → class of everything offered at a point, without classes that cannot be loaded."""
    return {name: one for name, one in loadable_classes(point, base).items() if hasattr(one, "entry")}
