"""The rows or the columns of a table: which label values there are, in which order, and how they are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .spec import TableSpec
from .table import Cell, Row, text

Key = tuple[str, ...]
"""Label values as text, in the order of an axis's labels."""


class Axis:
    """The values of its labels in order of appearance, those of `order:` first, and how they are shown."""

    def __init__(self, labels: tuple[str, ...], table: TableSpec) -> None:
        self.labels = labels
        self.keys: dict[Key, None] = {}
        self._display = table.labels
        first = {"metric": table.cells, **table.order}
        self._rank = {label: {value: i for i, value in enumerate(first.get(label, ()))} for label in labels}
        self._raw: dict[str, dict[str, Any]] = {label: {} for label in labels}

    def key(self, values: Mapping[str, Any]) -> Key:
        """The key of these labels; new values come last."""
        key = tuple(text(values.get(label)) for label in self.labels)
        if key not in self.keys:
            self.keys[key] = None
            for label, value in zip(self.labels, key, strict=True):
                self._rank[label].setdefault(value, len(self._rank[label]))
                self._raw[label].setdefault(value, values.get(label))
        return key

    def sorted(self, keys: Iterable[Key]) -> list[Key]:
        """The keys, by their first label's order, then the second's, …"""
        return sorted(keys, key=lambda key: [self._rank[x][v] for x, v in zip(self.labels, key, strict=True)])

    def metric(self, key: Key) -> str | None:
        """The metric that a key names, if this axis has a level for metrics."""
        return key[self.labels.index("metric")] if "metric" in self.labels else None

    def title(self, value: str) -> str:
        """The text that the table shows for a value or a label, by its `labels:`."""
        return self._display.get(value, value)

    def heads(self, key: Key) -> tuple[str, ...]:
        """What stands above a column. A number says of which label it is, "size 8", unless the table renames it."""
        values = self.values(key)
        return tuple(
            f"{self.title(label)} {value}"
            if isinstance(values[label], int | float) and value not in self._display
            else self.title(value)
            for label, value in zip(self.labels, key, strict=True)
        )

    def values(self, key: Key) -> dict[str, Any]:
        """Label → value with its type in the first episode that has it (keys have texts)."""
        return {label: self._raw[label][value] for label, value in zip(self.labels, key, strict=True)}

    def row(self, key: Key, cells: Sequence[Cell], published: str | None = None) -> Row:
        """The row of a key."""
        return Row(self.values(key), tuple(map(self.title, key)), tuple(cells), self.metric(key), published)


def meets(labels: Mapping[str, Any], where: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether every label of `where` has one of the values wanted there."""
    return all(text(labels.get(label)) in allowed for label, allowed in where.items())
