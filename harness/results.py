"""A finished run, read back from its folder: `Run`, with its scores, tables, transcripts and rows.

Next: `harness.extensions.transcripts`, which reads the journal.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness import storage
from harness.api import Metric
from harness.config import resolve
from harness.config.project import Project, find
from harness.config.spec import Spec, load
from harness.errors import DataError, near
from harness.manifests import report_part
from harness.runtime import manifest
from harness.tables import (
    EpisodeScore,
    HeadlineSpec,
    Table,
    TableSpec,
    build,
    load_scores,
    rows,
)

if TYPE_CHECKING:
    import pandas


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
    """

    folder: Path
    meta: Mapping[str, Any]
    spec: Spec
    scores: list[EpisodeScore]
    metrics: Mapping[str, Metric] = field(repr=False)
    project: Project | None = field(default=None, repr=False)
    unfinished: str = ""

    @classmethod
    def load(cls, folder: Path | str, project: Project | None = None, *, unfinished: bool = False) -> Run:
        """Read a run's folder. Raises `DataError` if it holds none or is damaged.

        Args:
            folder: the run's.
            project: where its plugins are looked up.
            unfinished: also read an unfinished run, with its finished episodes in the order in which they ended.
                Otherwise such a run is a `DataError`.
        """
        opened = cls.load_unscored(folder, project, unfinished=unfinished)
        if not (opened.folder / "scores.jsonl").is_file():
            return opened._so_far()
        scores = load_scores(opened.folder / "scores.jsonl")
        planned = opened.meta.get("planned")
        if planned is not None and len(scores) != planned:
            message = f"the run in {opened.folder} has scores of {len(scores)} episodes, and its plan has {planned}"
            hint = f"`harness score {opened.folder}` writes scores.jsonl again, from the journal."
            raise DataError(message, hint=hint)
        return replace(opened, scores=scores)

    @classmethod
    def load_unscored(cls, folder: Path | str, project: Project | None = None, *, unfinished: bool = False) -> Run:
        """Read a run's folder without its scores, which may be damaged. Errors as in `load`."""
        folder = run_folder(folder)
        if not (folder / manifest.META).is_file():
            raise DataError(f"{folder} holds no run (no run.json)", hint="Give the folder that `harness eval` named.")
        project = project or find()
        meta = manifest.read_meta(folder / manifest.META)
        if not unfinished and not (folder / "scores.jsonl").is_file():
            end = meta.get("stopped")
            counted = f" ({end.get('episodes')} of {end.get('of')} episodes)" if isinstance(end, Mapping) else ""
            why = f": {manifest.why_stopped(meta)}{counted}" if end else ""
            far = f"`harness report {shlex.quote(str(folder))}` shows what is there."
            hint = f"Give the same eval command again to resume; {far}"
            raise DataError(f"the run in {folder} is not finished{why}", hint=hint)
        if not (folder / manifest.SPEC).is_file():
            raise DataError(
                f"the run in {folder} has lost its {manifest.SPEC}", hint="Give the same eval command again."
            )
        resolved = load(str(folder / manifest.SPEC), project)
        metrics = resolve.metrics(resolved, project)
        for name, metric in metrics.items():
            metric.recall(name, meta)
        return cls(folder, meta, resolved, [], metrics, project)

    def _so_far(self) -> Run:
        """The run with the episodes that its journals hold. Raises `DataError` for damaged ones."""
        manifest.check_journals(self.meta, self.folder)
        ends = storage.JournalState(*storage.journals(self.folder)).ends
        scores = [EpisodeScore.from_json({"id": name, **end}) for name, end in ends.items()]
        planned = self.meta.get("planned")
        lacking = f"{planned - len(scores)} of {planned}" if isinstance(planned, int) else "some"
        why = f"{lacking} episodes are missing ({manifest.why_stopped(self.meta)})"
        return replace(self, scores=scores, unfinished=f"Not finished: {why}. The same eval command goes on.")

    @property
    def tables(self) -> list[Table]:
        """The spec's tables as plain data."""
        return self.with_published(())

    @property
    def table_specs(self) -> list[TableSpec]:
        """The spec's `tables:` entries."""
        return [TableSpec.parse(table) for table in self.spec.tables]

    @property
    def headline(self) -> HeadlineSpec:
        """The number that represents the benchmark."""
        return HeadlineSpec.of(self.spec.data, self.metrics)

    def with_published(self, published: Iterable[Any]) -> list[Table]:
        """The spec's tables with figures of publications (`published`) as marked rows."""
        entries = self.table_specs
        if figures := [*published]:
            entries = [report_part("beside", "what shows published figures")(table, figures) for table in entries]
        tables = (build(table, self.scores, self.metrics) for table in entries)
        return [replace(table, notes=(*table.notes, *filter(None, [self.unfinished]))) for table in tables]

    def published(self) -> list[Any]:
        """Published figures; those in this run's tables say how the run differs from the published one."""
        found: list[Any] = report_part("published", "what shows published figures")(self)
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard result rows: {schema, run, model, condition, labels, metric, value, stderr, n, failed}."""
        result: list[dict[str, Any]] = rows(self.scores, self.metrics, str(self.meta["run"]))
        return result

    @property
    def failed(self) -> list[EpisodeScore]:
        """Episodes that raised: counted and shown, never scored as wrong."""
        return [score for score in self.scores if score.error is not None]

    @property
    def tidy(self) -> Any:
        """Makes the rows of `episodes` and `turns`; has their columns (`episode_columns`, `turn_columns`)."""
        return report_part("tidy", "what makes rows of episodes")(self)

    def transcripts(self) -> Iterator[Any]:
        """Every finished episode, with the conversations of its agents, one in memory at a time.

        They come in the order in which they finished. Raises `DataError` for a damaged journal.
        """
        manifest.check_journals(self.meta, self.folder)
        found: Iterator[Any] = report_part("transcripts", "what reads transcripts")(self)
        return found

    def episode(self, id: str) -> Any:
        """One episode: its `turns`, `replay(change={…})`, `blame(by)`. Raises `DataError` if the run has none."""
        return report_part("episode", "what reads one episode")(self, id)

    def episodes(self) -> Iterator[dict[str, Any]]:
        """One row per episode, with the columns `Run.tidy.episode_columns`. Otherwise as `transcripts`."""
        return (episode for episode, _ in self.tidy.rows(self.transcripts()))

    def turns(self) -> Iterator[dict[str, Any]]:
        """One row per turn, with the columns `Run.tidy.turn_columns`. Otherwise as `transcripts`."""
        return (turn for _, turns in self.tidy.rows(self.transcripts()) for turn in turns)

    def to_pandas(self, rows: Literal["results", "episodes", "turns"] = "results") -> pandas.DataFrame:
        """Result rows (a column per label), episodes or turns as a data frame (pandas). Raises `ValueError`."""
        frame: pandas.DataFrame = report_part("frame", "to_pandas()")(self, rows)
        return frame


def run_folder(folder: Path | str) -> Path:
    """The folder of a run as a path. Raises `DataError` if there is none, with runs of similar names beside it."""
    path = Path(folder)
    if path.is_dir():
        return path
    if path.is_file():
        raise DataError(f"{path} is a file", hint="Give the folder of the run, which `harness eval` named.")
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
    except OSError:
        beside = []
    hint = "Give the folder that `harness eval` named."
    raise DataError(f"folder not found: {path}", hint=f"{near(path.name, beside)} {hint}" if beside else hint)
