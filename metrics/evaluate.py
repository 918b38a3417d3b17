from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from harness.api import CorpusMetric, Episode, Range, Statistic, plugin
from harness.extensions.datasets.batch_metric import BatchMetric
from harness.extensions.datasets.libraries import library_metric, needed
from harness.plugins.approvals import NeedsApproval, NotApprovedError
from harness.plugins.needed_approval import NeededApproval

from ._pairs import Pair, grade_name, pairs, statistic


@plugin
class Evaluate(CorpusMetric, NeedsApproval):
    """A metric of the package `evaluate`, of all answers to a data set's questions together.

    Its code is a script, of a folder on this machine or of the package's own cache; no code is fetched.

    Attributes:
        metric: the metric's name, such as bleu, rouge or accuracy.
        path: a folder or file with its script, where the cache has none.
        config_name: the configuration, where a metric has several.
        result: which of its numbers; None: the one with the metric's name, else the first.
        filter: the filter behind which answers are read; None: the first.
        kwargs: further arguments of its `compute`, such as {average: macro}.
        bootstrap: how often episodes are resampled for a standard error; 0: no standard error.
    """

    metric: str
    path: str | None = None
    config_name: str | None = None
    result: str | None = None
    filter: str | None = None
    kwargs: dict[str, Any] | None = None
    bootstrap: Annotated[int, Range(ge=0, le=100_000)] = 0

    def __post_init__(self) -> None:
        self.needs = (grade_name(self.filter),)
        with contextlib.suppress(NotApprovedError):  # a run refuses then, and readers do without its number
            _ = self._number_of

    @functools.cached_property
    def _number_of(self) -> BatchMetric:
        return library_metric(self.metric, self.path, self.config_name)

    def approvals(self) -> Iterable[NeededApproval]:
        """The script and what lies beside it, where they are not the user's own."""
        return needed(self.metric, self.path)

    def measure(self, episode: Episode) -> Any:
        """Each answer beside the right ones."""
        return pairs(episode, self.filter)

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """The metric's number of all pairs, and its bootstrapped standard error."""
        return statistic(numbers, self._number, self.bootstrap)

    def _number(self, answers: list[Pair]) -> float:
        return float(self._number_of(answers, self.result, self.kwargs or {}))
