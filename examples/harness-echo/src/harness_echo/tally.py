"""A kind of table: `{title: T, kind: tally, of: METRIC}` counts the episodes that have a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

from harness.api import Metric
from harness.tables import Cell, Column, EpisodeScore, Row, Table, TableKind, TableSpec


class TallyEntry(TypedDict, total=False):
    """The keys that the kind adds to an entry."""

    of: str


@dataclass(frozen=True)
class Tally(TableKind):
    """How many episodes a metric has numbers of."""

    entry: ClassVar[Any] = TallyEntry
    needs: ClassVar[tuple[str, ...]] = ("of",)
    names_metrics: ClassVar[str] = "of"

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Tally:
        """It has no parameters: the metric is among the cells of the `TableSpec`."""
        return cls()

    def problems(self, table: TableSpec) -> list[str]:
        """Keys that are wrong together."""
        return [] if len(table.cells) == 1 else ["of: name one metric"]

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """One row, one column."""
        [name] = table.cells
        count = sum(score.number(name) is not None for score in scores)
        return Table(
            title=table.title,
            row_labels=("metric",),
            column_labels=("statistic",),
            columns=(Column({"statistic": "n"}, ("n",), form="count"),),
            rows=(Row({"metric": name}, (name,), (Cell(count, n=count),), metric=name),),
        )
