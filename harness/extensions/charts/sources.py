"""What charts are made from: runs of one spec side by side, their headline, and what distinguishes their episodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from harness.api import Metric
from harness.api.errors import DataError, near
from harness.config.plan import Plan
from harness.extensions.analysis.leaderboard import RunScores, combined
from harness.tables import EpisodeScore, HeadlineSpec, text
from harness.tables.cost import Price

from .tally import Tally, Use, tally

SIZES: Final = ("size", "agents", "philosophers", "n", "nodes", "members", "players", "team")
"""Labels that say how large a group is, the likeliest first."""
WAYS: Final = ("method", "protocol", "condition", "backend", "setting", "variant", "problem", "task", "panel")
"""Labels that say how a group works, the likeliest first."""
_FEW: Final = 12


@dataclass(frozen=True)
class ChartRun:
    """A finished run.

    Attributes:
        run: its numbers.
        folder: where its journals are.
        plan: makes its plan, for charts that need the cases.
        tallies: folder → what its journals say, once they were read.
    """

    run: RunScores
    folder: Path
    plan: Callable[[], Plan]
    tallies: dict[Path, Tally] = field(default_factory=dict, repr=False)

    @property
    def tally(self) -> Tally:
        """What its journals say; read once, even if `dataclasses.replace` makes another of it."""
        if self.folder not in self.tallies:
            self.tallies[self.folder] = tally(self.folder)
        return self.tallies[self.folder]


@dataclass(frozen=True)
class ChartOptions:
    """What a chart is to show; None leaves it to the chart.

    Attributes:
        x: the numeric label along the axis of `scaling`.
        metric: the metric instead of the spec's headline.
        by: the label that makes series, points or bars.
        condition: only this condition's episodes.
        episode: the episode of `heatmap` and `blame`.
    """

    x: str | None = None
    metric: str | None = None
    by: str | None = None
    condition: str | None = None
    episode: str | None = None


@dataclass(frozen=True)
class PlayedEpisode:
    """One finished episode: which run it is of (an index), its score under its model's name here, what it used."""

    run: int
    score: EpisodeScore
    use: Use


@dataclass(frozen=True)
class Material:
    """Runs of one spec, as charts read them.

    Attributes:
        sources: the runs.
        scores: all episodes, run after run, under their models' names here.
        prices: model, by that name → price.
    """

    sources: tuple[ChartRun, ...]
    scores: list[EpisodeScore] = field(repr=False)
    prices: Mapping[str, Price]

    @classmethod
    def of(cls, sources: Sequence[ChartRun]) -> Material:
        """Put runs side by side. Raises `DataError` as `harness.extensions.analysis.leaderboard`."""
        scores, prices, _ = combined([source.run for source in sources])
        return cls(tuple(sources), scores, prices)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The spec's metrics."""
        return self.sources[0].run.metrics

    @property
    def tallies(self) -> list[Tally]:
        """What each run's journals say; read once."""
        return [source.tally for source in self.sources]

    def played(self) -> Iterator[PlayedEpisode]:
        """Every episode that was played, also those that failed."""
        scores = iter(self.scores)
        for i, source in enumerate(self.sources):
            uses = self.tallies[i].uses
            for _, score in zip(source.run.scores, scores, strict=False):
                if score.id in uses:
                    yield PlayedEpisode(i, score, uses[score.id])

    @functools.cached_property
    def models(self) -> list[str]:
        """The models' names here, in order of appearance."""
        return list(dict.fromkeys(score.model for score in self.scores))

    @functools.cached_property
    def labels(self) -> dict[str, list[Any]]:
        """Label → its values in order of appearance."""
        values: dict[str, dict[str, Any]] = {}
        for score in self.scores:
            for name, value in score.labels.items():
                values.setdefault(name, {}).setdefault(text(value), value)
        return {name: [*found.values()] for name, found in values.items()}

    def headline(self, metric: str | None = None) -> HeadlineSpec:
        """The headline, or the metric that stands for it. Raises `DataError` for one that does not exist."""
        own = self.sources[0].run.headline
        if own is not None and metric in (None, own.metric):
            name = own.name if own.declared else self.shown(own.metric)
            return replace(own, table=replace(own.table, title=name[:1].upper() + name[1:]))
        if metric is None or metric not in self.metrics:
            raise DataError(f"there is no metric {metric!r}", hint=near(str(metric), self.metrics))
        of = HeadlineSpec.of({"headline": {"metric": metric, "title": self.shown(metric)}}, self.metrics)
        return of if own is None else replace(of, table=replace(of.table, cluster=own.table.cluster))

    def shown(self, name: Any) -> str:
        """A label, its value or a metric, as the spec's tables call it."""
        plain = text(name)
        return next((t.labels[plain] for t in self.sources[0].run.tables if plain in t.labels), plain)

    def only(self, condition: str | None) -> Material:
        """The same with one condition's episodes alone. Raises `DataError` for one that does not exist."""
        if condition is None:
            return self
        conditions = dict.fromkeys(score.condition for score in self.scores)
        if condition not in conditions:
            raise DataError(f"there is no condition {condition!r}", hint=near(condition, conditions))
        return self.where(lambda score: score.condition == condition)

    def where(self, holds: Callable[[EpisodeScore], bool]) -> Material:
        """The same with those episodes alone for which this holds."""
        sources, scores, shown = [], [], iter(self.scores)
        for source in self.sources:
            pairs = [pair for pair in zip(source.run.scores, shown, strict=False) if holds(pair[1])]
            sources.append(replace(source, run=replace(source.run, scores=[own for own, _ in pairs])))
            scores += [score for _, score in pairs]
        return Material(tuple(sources), scores, self.prices)

    def readable(self, headline: HeadlineSpec) -> tuple[Material, str]:
        """The same without models that have no number because too few of their turns were read; why, in words."""
        unread = headline.unread(self.scores)
        if not unread:
            return self, ""
        return self.where(lambda score: score.model not in unread), " " + " ".join(unread.values())

    def way(self, by: str | None) -> str:
        """The label that makes points and bars: the model where there are several, else what the spec compares.

        Raises:
            DataError: for a label that does not exist.
        """
        if by is not None:
            if by not in self.labels:
                raise DataError(f"no episode has the label {by!r}", hint=near(by, self.labels))
            return by
        if len(self.models) > 1:
            return "model"
        varied = self.swept
        return next((name for name in (*WAYS, *varied) if name in varied and len(varied[name]) <= _FEW), "model")

    @functools.cached_property
    def swept(self) -> dict[str, list[Any]]:
        """Labels with several values of which each condition has one: those that the spec compares."""
        by_condition: dict[str, dict[str, set[str]]] = {}
        for score in self.scores:
            seen = by_condition.setdefault(score.condition, {})
            for name, value in score.labels.items():
                seen.setdefault(name, set()).add(text(value))
        return {
            name: values
            for name, values in self.labels.items()
            if name != "model" and len(values) > 1 and all(len(s.get(name, ())) <= 1 for s in by_condition.values())
        }


def numeric(values: Sequence[Any]) -> bool:
    """Whether these are several different numbers."""
    return len(values) > 1 and all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
