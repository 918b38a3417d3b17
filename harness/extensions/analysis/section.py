"""A benchmark's part of a leaderboard: runs that can be compared, their standings, their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores, shown_names
from harness.extensions.analysis.standings import Standings
from harness.tables import Table


@dataclass(frozen=True)
class Section:
    """Comparable runs of one spec.

    Attributes:
        runs: each with its numbers, under its name here.
        board: the standings.
        tables: the spec's tables over all of them.
        is_main: whether these are the spec's runs on the page over all benchmarks; of several groups that cannot be
            compared with each other one is.
    """

    runs: Sequence[tuple[RunScores, Run]]
    board: Standings
    tables: Sequence[Table]
    is_main: bool

    @property
    def spec(self) -> str:
        """The name of the spec."""
        return self.runs[0][0].spec

    def run_of(self) -> Mapping[str, tuple[RunScores, Run]]:
        """A row's model → the run that it is of."""
        by_id = {scores.id: (scores, run) for scores, run in self.runs}
        names = shown_names([scores for scores, _ in self.runs])
        return {shown: by_id[run] for (run, _), shown in names.items()}
