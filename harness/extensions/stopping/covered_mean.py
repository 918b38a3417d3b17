"""Which mean is to be known: the headline, or that of a metric."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from harness.api import CorpusMetric, Metric, Parts, RatioMetric
from harness.api.errors import Place, SpecError, near
from harness.config.plan import Plan
from harness.tables import EpisodeScore, HeadlineSpec, Number
from harness.tables.axis import meets
from harness.tables.scores import aggregate
from harness.tables.spec import as_tuple

from .estimates import Mean
from .until_options import HEADLINE


class Covered:
    """Which mean is to be known: of which metric, over which episodes, and which of these are one observation.

    Attributes:
        metric: its name.
        plugin: the metric.
        title: what to call the mean.
        where: label → its values in the episodes that the mean is about.
        of_conditions: whether every condition has the same weight.
        cluster: which episodes are one observation, as in tables.
    """

    def __init__(self, headline: HeadlineSpec | None, metric: str, plugin: Metric, cluster: tuple[str, ...]) -> None:
        self.metric, self.plugin, self.cluster = metric, plugin, cluster
        self.title = metric if headline is None else headline.name
        self.where = {} if headline is None else headline.table.where
        self.of_conditions = headline is not None and headline.table.aggregate == "mean_of_conditions"

    @classmethod
    def of(cls, plan: Plan, name: str, place: Place) -> Covered:
        """The mean that a name stands for: the headline, or a metric over all episodes.

        Raises:
            SpecError: there is no such metric, or its value is not a mean of episodes that are scored one by one.
        """
        headline = None
        if name == HEADLINE:
            headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
            name = headline.metric
        if name not in plan.metrics:
            message = f"the spec has no metric {name!r:.60}"
            raise SpecError(message, place=place, hint=near(name, [HEADLINE, *plan.metrics]))
        metric = plan.metrics[name]
        own = cls(headline, name, metric, as_tuple(plan.spec.get("cluster") or ()))
        if why := own._unfit():
            fit = [one for one, plugin in plan.metrics.items() if cls(None, one, plugin, ())._unfit() is None]
            advice = f"Name another metric: {', '.join(fit)}." if fit else None
            raise SpecError(f"no rule can watch {own.title}: {why}", place=place, hint=advice)
        return own

    def _unfit(self) -> str | None:
        """Why no rule can be about the metric."""
        if self.plugin.measured_by is not None:
            return f"{self.metric} is measured once all episodes are played"
        if isinstance(self.plugin, CorpusMetric):
            return f"{self.metric} is a number of all episodes together, and no mean of theirs"
        is_ratio = isinstance(self.plugin, RatioMetric)
        if is_ratio and self.of_conditions:
            return f"{self.metric} is a ratio, and the headline the mean of its conditions' ratios"
        numbers: list[Number] = [(1.0, 4.0), (2.0, 2.0)] if is_ratio else [0.25, 1.0, 0.25]
        scores = [EpisodeScore(f"c/{i}/0", "c", numbers={self.metric: x}) for i, x in enumerate(numbers)]
        if aggregate(self.plugin, scores, self.metric).value != 0.5:
            return f"{self.metric} is not the mean of its episodes' numbers"
        return None

    def covers(self, score: EpisodeScore) -> bool:
        """Whether the mean is about an episode."""
        return meets(score.labels, self.where)

    @property
    def bounds(self) -> tuple[float, float]:
        """Of one episode's number; none of a ratio, whose parts may be of any size."""
        return (-math.inf, math.inf) if isinstance(self.plugin, RatioMetric) else self.plugin.bounds

    def mean(self, ids: Mapping[str, str]) -> Mean:
        """The mean itself. `ids`: episodes that it is about → their conditions."""
        sizes = Counter(ids.values())
        weights = {
            name: 1 / (len(sizes) * sizes[condition]) if self.of_conditions else 1 / len(ids)
            for name, condition in ids.items()
        }
        return Mean(self.title, weights, self.bounds)

    def means_of_conditions(self, ids: Mapping[str, str]) -> list[Mean]:
        """The same of each condition alone."""
        own: dict[str, dict[str, str]] = {}
        for name, condition in ids.items():
            own.setdefault(condition, {})[name] = condition
        return [replace(self.mean(ids), name=f"{self.title} of {condition}") for condition, ids in own.items()]

    def number(self, score: EpisodeScore) -> float | Parts | None:
        """What an episode adds to the mean; None if nothing."""
        return score.parts(self.metric) if isinstance(self.plugin, RatioMetric) else score.number(self.metric)
