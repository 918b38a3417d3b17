"""The column of standings with the size of tasks that a model solves by half, and runs whose means it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from harness.extensions.ability.ability_table import AbilityTable, about, first_ability, of_models
from harness.tables import Cell, Column, EpisodeScore, HeadlineSpec, TableSpec

from .leaderboard import RunScores, listed, shown_names

HALF: Final = "half"
"""The column's name among metrics."""


@dataclass(frozen=True, slots=True)
class HalfColumn:
    """The sizes solved by half, if a spec has a table with `ability:`.

    Attributes:
        table: that table.
    """

    table: TableSpec

    @classmethod
    def of(cls, tables: Iterable[TableSpec]) -> HalfColumn | None:
        """The column of a spec with these tables; None without abilities among them."""
        table = first_ability(tables)
        return None if table is None else cls(table)

    @property
    def column(self) -> Column:
        """The column."""
        assert isinstance(self.table.kind, AbilityTable)
        over = self.table.labels.get(self.table.kind.over, self.table.kind.over)
        return Column({"metric": HALF}, (f"{over} solved by half",), HALF)

    @property
    def note(self) -> str:
        """What its numbers are."""
        assert isinstance(self.table.kind, AbilityTable)
        return about(self.table, self.table.kind)

    def cells(self, scores: Sequence[EpisodeScore]) -> dict[str, Cell]:
        """Model → the size that it solves by half."""
        return {model: curve.cell for model, curve in of_models(self.table, scores).items()}


def uneven(runs: Sequence[RunScores]) -> list[str]:
    """The models, under their names here, whose episodes were chosen: their means are not those of the whole."""
    ends = {run.id: run.run.get("stopped") for run in runs}
    chosen = {name for name, end in ends.items() if isinstance(end, Mapping) and end.get("uneven")}
    return list(dict.fromkeys(name for (run, _), name in shown_names(runs).items() if run in chosen))


def without_headline(
    scores: Sequence[EpisodeScore], models: Iterable[str], headline: HeadlineSpec
) -> list[EpisodeScore]:
    """The episodes, those of these models without the headline's number."""
    hidden = {*models}
    return [
        score.without(headline.metric) if score.model in hidden and headline.covers(score) else score
        for score in scores
    ]


def why_hidden(models: Sequence[str], headline: HeadlineSpec) -> Iterable[str]:
    """The reason why these models have no headline, as a note."""
    if models:
        yield f"No {headline.name} for {listed(models)}: --adaptive chose which sizes were played how often."
