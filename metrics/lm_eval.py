from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

from harness.api import UNBOUNDED, Bounds, CorpusMetric, Episode, PluginError, Range, Statistic, plugin
from harness.extensions.lm_eval import needed
from harness.extensions.lm_eval.aggregation import BOOTSTRAPS, OfTexts, declared, mean, registered, statistic
from harness.plugins.approvals import NeedsApproval
from harness.plugins.needed_approval import NeededApproval


@plugin
class LmEval(CorpusMetric, NeedsApproval):
    """A metric of lm-eval's tasks that is not a mean over documents: F1, BLEU, perplexities, a task's own.

    The number and its standard error are those that the package prints, by its own functions. Specs of the task
    `lm_eval` without `metrics:` have these entries by themselves; plain means are {use: grade, of: "acc,none"}.

    Attributes:
        metric: the metric's name in the task's `metric_list`.
        filter: the filter behind which it is measured.
        aggregation: the package's name of the function that makes one number of all values, such as f1 or perplexity;
            None: the one that `task` declares for this metric.
        task: the task or tasks that declare it.
        include_path: a folder with more tasks, or several.
        bootstrap_iters: resamples of a bootstrapped standard error; 0: no standard error.
        bounds: between which numbers the value lies.
    """

    metric: str
    filter: str = "none"
    aggregation: str | None = None
    task: str | list[str] | None = None
    include_path: str | list[str] | None = None
    bootstrap_iters: Annotated[int, Range(ge=0, le=10_000_000)] = BOOTSTRAPS
    bounds: Bounds = UNBOUNDED  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.needs = (self.grade,)
        self._known: dict[str, Statistic] = {}
        if self.aggregation is None and self.task is None:
            hint = "Give aggregation, such as f1, or the task that declares it."
            raise PluginError(f"how is one number made of all {self.metric} values?", hint=hint, at=("metric",))
        if not self.bounds[0] < self.bounds[1]:
            raise PluginError(f"no number lies between {self.bounds[0]} and {self.bounds[1]}", at=("bounds",))

    @property
    def grade(self) -> str:
        """The grade that has the values."""
        return f"{self.metric},{self.filter}"

    def measure(self, episode: Episode) -> Any:
        """The document's value, as the task gives it."""
        return episode.grade.get(self.grade)

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """The package's number of all values. A bootstrap is done once for the same values."""
        if self.aggregation == "mean":
            return mean(numbers)
        key = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()
        if key not in self._known:
            self._known[key] = statistic(self._function, numbers, self.metric, self.bootstrap_iters, self._of_texts)
        return self._known[key]

    def approvals(self) -> Iterable[NeededApproval]:
        """The files of the task that declares the metric, where they are not the user's own."""
        return needed(*self._where) if self.aggregation is None else ()

    @property
    def _where(self) -> tuple[list[str], list[str]]:
        folders = [self.include_path] if isinstance(self.include_path, str) else self.include_path or []
        return [self.task] if isinstance(self.task, str) else self.task or [], folders

    @functools.cached_property
    def _function(self) -> Callable[[Sequence[Any]], Any]:
        return registered(self.aggregation) if self.aggregation is not None else declared(self.metric, *self._where)

    @functools.cached_property
    def _of_texts(self) -> OfTexts:
        return OfTexts(self.metric, self.aggregation, self._where)
