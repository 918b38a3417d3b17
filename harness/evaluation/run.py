"""A finished run: `Run`, with its scores, tables, transcripts and rows.

Next: `load_run` beside this file, which reads it back from its folder; `harness.transcripts` reads the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.api import Metric
from harness.api.errors import DataError, near
from harness.config.project import Project
from harness.config.spec import Spec
from harness.plugins.lookup import part
from harness.report.provenance import of_run, unpaid
from harness.report.spending import spending_of
from harness.tables import EpisodeScore, HeadlineSpec, ResultRow, Table, TableSpec, build, rows
from harness.tables.spec import as_tuple

if TYPE_CHECKING:
    import pandas

    from harness.tables.cost import Price
    from harness.tables.published_figures import PublishedTable
    from harness.transcripts.reader import Transcripts
    from harness.transcripts.tidy import Tidy
    from harness.transcripts.view_api import Transcript


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, its spec and its results.

    Attributes:
        folder: the run's folder; docs/reference/results.md describes every file in it.
        meta: the content of run.json.
        spec: the resolved spec.
        scores: one entry per episode, in the order of the plan.
        metrics: name → metric, in the order of the spec.
        project: where the run's plugins are; None for the project around the working directory.
        unfinished: what is missing from an unfinished run, and why; "" for a finished one.
        begun: of an unfinished run, episodes that have begun: they have `usage`, which counts in the table of costs.
    """

    folder: Path
    meta: Mapping[str, Any] = field(repr=False)
    spec: Spec = field(repr=False)
    scores: list[EpisodeScore] = field(repr=False)
    metrics: Mapping[str, Metric] = field(repr=False)
    project: Project | None = field(default=None, repr=False)
    unfinished: str = ""
    begun: list[EpisodeScore] = field(default_factory=list, repr=False)

    @cached_property
    def tables(self) -> list[Table]:
        """The spec's tables as plain data; behind them one of costs, where prices are known. They are built once."""
        return self.with_published(())

    @property
    def table_specs(self) -> list[TableSpec]:
        """The spec's `tables:` entries."""
        return [TableSpec.parse(table) for table in self.spec.tables]

    @cached_property
    def headline(self) -> HeadlineSpec:
        """The number that represents the benchmark."""
        return HeadlineSpec.of(self.spec.data, self.metrics)

    @property
    def headline_missing(self) -> str | None:
        """Why the run has no headline, where too few turns of its model were parsed (`min_read`)."""
        return next(iter(self.headline.unread(self.scores).values()), None) if self.metrics else None

    @property
    def prices(self) -> dict[str, Price]:
        """Model → what it costs, by the spec and by the user's `prices.yaml`."""
        from harness.config.user_prices import known_prices  # what only costs need

        return known_prices(self.spec.get("prices"))

    @property
    def cluster(self) -> tuple[str, ...]:
        """Which episodes are one observation, as the spec's `cluster:` says; () for the repeats of a case."""
        return as_tuple(self.spec.get("cluster") or ())

    def with_published(self, published: Iterable[PublishedTable]) -> list[Table]:
        """The spec's tables with figures of publications (`published`) as marked rows, and one of costs if known."""
        entries = self.table_specs
        if figures := [*published]:
            entries = [part("beside", "what shows published figures")(table, figures) for table in entries]
        if any(derived.kind == "cost" for entry in entries for derived in entry.derived.values()):
            from harness.tables.cost import priced

            entries = [priced(entry, self.prices) for entry in entries]
        tables = list[Table]()
        paid = [*self.scores, *self.begun]
        beside = spending_of(self.meta)
        used = [*(score.usage for score in paid), *beside.values()]
        counted = any({*counts} - {"uncounted"} for usage in used for counts in usage.values())
        if counted:
            from harness.tables import spent

            entries = spent.beside_calls(entries, self.scores)
        if entries:
            shown = self.headline.withheld(self.scores)
            tables = [build(table, shown, self.metrics) for table in entries]
            tables = self.headline.explained(entries, tables, self.scores)
        if counted:
            costs = spent.table(paid, self.prices, beside)
            tables += [replace(costs, notes=(*costs.notes, *unpaid(self.meta)))] if costs is not None else []
        further = (*of_run(self.meta), *filter(None, [self.unfinished]))
        return [replace(table, notes=(*table.notes, *further)) for table in tables]

    def published(self) -> list[PublishedTable]:
        """Published figures; those in this run's tables say how the run differs from the published one."""
        found: list[PublishedTable] = part("published", "what shows published figures")(self)
        return found

    @property
    def rows(self) -> list[ResultRow]:
        """Standard result rows: one for each model, condition and metric."""
        return rows(self.scores, self.metrics, str(self.meta["run"]), self.cluster)

    @property
    def failed(self) -> list[EpisodeScore]:
        """Episodes that raised: counted and shown, never scored as wrong."""
        return [score for score in self.scores if score.error is not None]

    @property
    def tidy(self) -> Tidy:
        """Makes the rows of `episodes` and `turns`; has their columns (`episode_columns`, `turn_columns`)."""
        from harness.transcripts.tidy import Tidy

        return Tidy(self.meta, self.scores, self.metrics, self.folder)

    def transcripts(self) -> Iterator[Transcript]:
        """Every finished episode, with the conversations of its agents, one in memory at a time.

        They come in the order in which they finished. Raises `DataError` for a damaged journal.
        """
        return iter(self.reader())

    def episode(self, id: str) -> Transcript:
        """One finished episode, with the conversations of its agents.

        `harness.extensions.replay.replayed` plays it again with a change, and `harness.extensions.blame.blamed` finds
        out which moves made it fail. Raises `DataError` if the run has no such episode, or a damaged journal.
        """
        if (found := self.reader().find(id)) is None:
            names = [score.id for score in self.scores]
            raise DataError(f"{self.folder} has no finished episode {id!r:.200}", hint=near(id, names))
        return found

    def reader(self) -> Transcripts:
        """What reads the run's episodes back, with the plan that they were played by. Raises `DataError`."""
        from harness.runtime.run_schema import check_journals
        from harness.transcripts.reader import Transcripts

        check_journals(self.meta, self.folder)
        return Transcripts(self.folder, self.project)

    def episodes(self) -> Iterator[dict[str, Any]]:
        """One row per episode, with the columns `Run.tidy.episode_columns`. Otherwise as `transcripts`."""
        return (episode for episode, _ in self.tidy.rows(self.transcripts()))

    def turns(self) -> Iterator[dict[str, Any]]:
        """One row per turn, with the columns `Run.tidy.turn_columns`. Otherwise as `transcripts`."""
        return (turn for _, turns in self.tidy.rows(self.transcripts()) for turn in turns)

    def inner_calls(self) -> Iterator[dict[str, Any]]:
        """One row per call that agents' programs made of their model, with the columns `inner_rows.COLUMNS`; none in
        runs without such calls. Otherwise as `transcripts`."""
        from harness.transcripts.inner_rows import inner_rows

        name = str(self.meta["run"])
        return (row for transcript in self.transcripts() for row in inner_rows(name, transcript))

    def to_pandas(self, rows: Literal["results", "episodes", "turns", "inner_calls"] = "results") -> pandas.DataFrame:
        """Result rows (a column per label), episodes, turns or inner calls as a data frame (pandas).

        Raises `ValueError`.
        """
        from harness.transcripts import frame

        if rows == "results":
            return frame.of_results(self.rows)
        if rows == "episodes":
            return frame.of_rows(self.episodes(), self.tidy.episode_columns)
        if rows == "turns":
            return frame.of_rows(self.turns(), self.tidy.turn_columns)
        if rows == "inner_calls":
            from harness.transcripts.inner_rows import COLUMNS

            return frame.of_rows(self.inner_calls(), COLUMNS)
        raise ValueError(f'to_pandas() gives "results", "episodes", "turns" or "inner_calls", not {rows!r}')
