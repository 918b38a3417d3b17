"""Episodes → numbers. The same code scores during a run and, with no model, long after it ended."""

from __future__ import annotations

import contextlib
import json
import numbers
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from harness import storage
from harness.api import Case, CorpusMetric, Engine, Episode, Metric, RatioMetric, Task
from harness.api.errors import SetupError
from harness.config.permissions import confined
from harness.config.plan import Condition, Plan
from harness.engines.usage import billed, billed_inner
from harness.runtime.players import LIMITED
from harness.storage.error_log import ErrorLog
from harness.tables import CorpusRecord, EpisodeScore, Number
from harness.tables.scores import INNER_LIMITED, is_countable

_UNLOGGED = ErrorLog()


def labels(plan: Plan, condition: Condition, case: Case) -> dict[str, Any]:
    """The labels by which result tables can group an episode."""
    return {**condition.labels, **case.labels, "model": plan.model}


def _number(value: Any) -> float | None:
    """`value` as a number that tables count with, None if there is none. Raises `TypeError` for anything else."""
    if value is None or type(value) in (int, float):
        return value if value is None or is_countable(value) else None
    if isinstance(value, numbers.Real):  # True, a numpy float, a fraction
        return _number(float(value))
    raise TypeError(f"gave {value!r:.80}, which is not a number")


def _json(value: Any) -> Any:
    """`value` as it is after it was written as JSON and read again. Raises `TypeError` if JSON has no such value."""
    try:
        return json.loads(json.dumps(value, default=_plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"gave {value!r:.80}, which JSON does not keep: {error}") from None


def _plain(value: Any) -> Any:
    """A numpy number or array as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return float(value)


def _graded(value: Any) -> Any:
    """A grade: a finite number, None, or a JSON value for a `CorpusMetric`."""
    return _json(value) if isinstance(value, str | list | tuple | dict) else _number(value)


def as_grade(task: Task, grades: Mapping[str, Any]) -> dict[str, Any]:
    """What a task's `grade` gave, as episodes keep it.

    Raises:
        RuntimeError: one of the task's grades is not there.
        TypeError: a grade is nothing that JSON keeps.
    """
    if lacking := sorted(set(task.grades) - set(grades)):
        raise RuntimeError(f"{type(task).__name__}.grade gives no {', '.join(lacking)}")
    return {name: _graded(value) for name, value in grades.items()}


def _measured(metric: Metric, episode: Episode) -> Number:
    """What the metric gives, as JSON keeps it: a number, a `RatioMetric`'s two parts, a `CorpusMetric`'s record."""
    value = metric.measure(episode)
    if isinstance(metric, CorpusMetric):
        return None if value is None else CorpusRecord(_json(value))
    if not isinstance(metric, RatioMetric) or value is None:
        return _number(value)
    top, bottom = (_number(part) for part in value)
    return None if top is None or not bottom else (top, bottom)


def measure(
    episode: Episode, metrics: Mapping[str, Metric], errors: ErrorLog = _UNLOGGED
) -> tuple[dict[str, Number], str | None]:
    """(metric → number, parts or None; error). A failed episode has no numbers; a metric that raises fails it."""
    if episode.error is not None:
        return dict.fromkeys(metrics), episode.error
    measured: dict[str, Number] = {}
    for name, metric in metrics.items():
        try:
            measured[name] = _measured(metric, episode)
        except (Exception, SystemExit) as error:
            return dict.fromkeys(
                metrics
            ), f"metric {name}: {errors.record(error, f'metric {name}', episode.id, plugin=metric)}"
    return measured, None


def grade(
    episode: Episode, condition: Condition, case: Case, errors: ErrorLog = _UNLOGGED, provider: str = "process"
) -> Episode:
    """The episode with its task's grade, or with the error that grading raised.

    Args:
        errors: where what a plugin raises is written down.
        provider: what confines programs that are run to grade them.

    Raises:
        SetupError: if such a program cannot be confined on this machine.
    """
    if episode.error is not None or episode.outcome is None:
        return episode
    fence: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
    if condition.task.grading == "executes":
        fence = confined(provider)
    try:
        with fence:
            graded = condition.task.grade(case, episode.outcome)
        return replace(episode, grade=as_grade(condition.task, graded))
    except SetupError:  # no fault of this episode: the machine lacks what all of them need
        raise
    except (Exception, SystemExit) as error:
        return replace(episode, error=f"grade: {errors.record(error, 'grade', episode.id, plugin=condition.task)}")


def turns_of(episode: Episode, condition: Condition, case: Case) -> dict[str, dict[str, int]]:
    """`EpisodeScore.turns`. Policies are asked nothing; an episode that failed has none, since its last batch is not
    whole."""
    turns: dict[str, Counter[str]] = {}
    for move in episode.moves() if episode.outcome is not None else ():
        if move.was_asked:
            counts = turns.setdefault(condition.group_of(case, move.agent).model or "model", Counter())
            counts["asked"] += 1
            counts["answered"] += bool(move.calls)
            if move.error_kind is not None:
                counts[move.error_kind if move.error_kind != LIMITED or move.asked_no_more else INNER_LIMITED] += 1
    return {name: dict(counts) for name, counts in turns.items()}


def usage_of(
    episode: Episode,
    condition: Condition,
    case: Case,
    engines: Mapping[str, Engine],
    inner: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, dict[str, float]]:
    """`EpisodeScore.usage`.

    Args:
        engines: name of a model in the spec → what answers for it.
        inner: as in `Plan`. A program's inner calls are billed, and not its replies.
    """
    usage: dict[str, Counter[str]] = {}  # counts may be USD

    def of(name: str) -> tuple[Counter[str], bool]:
        engine = engines.get(name)
        model, in_batch = (name, False) if engine is None else (engine.model, engine.collects)
        return usage.setdefault(model, Counter()), in_batch

    for move in episode.moves() if engines else ():
        name = condition.group_of(case, move.agent).model or "model"
        if move.inner_calls is not None and name in inner:
            counts, _ = of(inner[name])
            counts.update(billed_inner(move.inner_calls))
            counts.update({"replies": len(move.calls), "inner_calls": move.inner_calls.calls})
            continue
        for call in move.calls:
            counts, in_batch = of(name)
            counts.update(billed(call, in_batch))
    return {model: {kind: count for kind, count in counts.items() if count} for model, counts in usage.items()}


def _unanswered(episode: Episode) -> str | None:
    """Why an episode has no number: models were asked, and none of them answered once."""
    failed = [move.error for move in episode.moves() if move.error_kind in storage.UNANSWERED]
    if not failed or any(move.calls for move in episode.moves()):
        return None
    return f"no model answered: all {len(failed)} requests failed, the first with: {failed[0]}"


def score(
    episode: Episode,
    metrics: Mapping[str, Metric],
    uses_ground_truth: bool = False,
    errors: ErrorLog = _UNLOGGED,
    turns: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    usage: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> EpisodeScore:
    """The line of `scores.jsonl` for an episode; `uses_ground_truth` says that players knew the right answer."""
    if episode.error is None and (why := _unanswered(episode)) is not None:
        episode = replace(episode, error=why)
    numbers, error = measure(episode, metrics, errors)
    limited = any(move.asked_no_more for move in episode.moves())
    dropped = Counter(name for move in episode.moves() for name in move.dropped_fields)
    marks = uses_ground_truth, limited, turns, dict(dropped), usage
    return EpisodeScore(episode.id, episode.condition, dict(episode.labels), numbers, error, *marks)
