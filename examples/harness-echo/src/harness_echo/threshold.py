"""A key of tables: `threshold: 0.5` says below a table how many of its episodes reach that number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from harness.tables import EpisodeScore, TableKey, TableSpec


class ThresholdEntry(TypedDict, total=False):
    """The key, and its type."""

    threshold: float


@dataclass(frozen=True)
class Threshold(TableKey):
    """A note for each metric of the table."""

    entry: ClassVar[Any] = ThresholdEntry

    least: float

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Threshold:
        """Read `threshold:`."""
        return cls(entry["threshold"])

    def notes(self, table: TableSpec, scores: Sequence[EpisodeScore]) -> Iterator[str]:
        """Yield one line a metric."""
        for name in table.cells:
            numbers = [number for score in scores if (number := score.number(name)) is not None]
            reached = sum(number >= self.least for number in numbers)
            yield f"{name}: {reached} of {len(numbers)} episodes reach {self.least:g}."
