"""The standard result rows: what each metric says of each model in each condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from harness.api import Metric

from .parse_share import ParseShare
from .scores import EpisodeScore, by_condition, finite, measured
from .table import SCHEMA


class _Marks(TypedDict, total=False):
    """What a result row has besides, where there is something to say."""

    uses_ground_truth: bool
    limited: int
    read: float


class ResultRow(_Marks):
    """A standard result row: what one metric says of one model in one condition.

    Attributes:
        schema: the version of the format.
        run: the run's id.
        model: the model's name in tables.
        condition: the cell of the spec's matrix.
        labels: those that all episodes of the condition share.
        metric: the metric's name.
        value: None if there is no number.
        stderr: standard error; None below two observations.
        n: how many numbers are behind the value.
        failed: episodes that failed; an episode in neither was not run or had no number for this metric.
        uses_ground_truth: there, and true, where players knew the right answer.
        limited: in how many episodes a limit was reached, where there are some.
        read: the share of the model's turns that was parsed, where a model was asked.
    """

    schema: int
    run: str
    model: str
    condition: str
    labels: dict[str, Any]
    metric: str
    value: float | None
    stderr: float | None
    n: int
    failed: int


def rows(
    scores: Iterable[EpisodeScore], metrics: Mapping[str, Metric], run: str, cluster: Sequence[str] = ()
) -> list[ResultRow]:
    """The standard result rows: one for each model, condition and metric, in order of first appearance.

    `stderr` is that of `measured`: `cluster` says which episodes are one observation, as in the run's tables.
    """
    result: list[ResultRow] = []
    for (model, condition), group in by_condition(scores).items():
        shared = {k: v for k, v in group[0].labels.items() if k != "model" and all(s.labels.get(k) == v for s in group)}
        failed = sum(score.failed for score in group)
        marks: _Marks = {"uses_ground_truth": True} if any(score.uses_ground_truth for score in group) else {}
        if limited := sum(score.limited for score in group):
            marks["limited"] = limited
        if (read := ParseShare.of(group).share) is not None:
            marks["read"] = read
        for name, metric in metrics.items():
            stat = measured(metric, group, name, cluster)
            row: ResultRow = {
                "schema": SCHEMA,
                "run": run,
                "model": model,
                "condition": condition,
                "labels": shared,
                "metric": name,
                "value": finite(stat.value),
                "stderr": finite(stat.stderr),
                "n": stat.n,
                "failed": failed,
                **marks,
            }
            result.append(row)
    return result
