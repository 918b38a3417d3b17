"""What is kept of an episode once it is scored, and what a metric makes of many."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from harness.api import UNBOUNDED, Bounds, CorpusMetric, Metric, Parts, RatioMetric, Statistic, linearize
from harness.api.errors import DataError, Place, PluginError, UserError
from harness.plugins.approvals import NotApprovedError
from harness.storage import MARKS

from . import stats
from .entry import Means
from .table import text

NOT_RUN: Final = "not run"
"""The `EpisodeScore.error` of an episode that was planned and never finished."""
INNER_LIMITED: Final = "inner_limit"
"""The kind of error in `EpisodeScore.turns` of turns in which an agent's program met a limit of its own model."""


@dataclass(frozen=True, slots=True)
class CorpusRecord:
    """What a `CorpusMetric` keeps of an episode: a JSON value, which is not a number."""

    value: Any


Number = float | Parts | CorpusRecord | None
"""What a metric has for an episode: a number; numerator and denominator of a `RatioMetric`; the record of a
`CorpusMetric`; or nothing."""


@dataclass(frozen=True, slots=True)
class EpisodeScore:
    """One episode's numbers; a line of `scores.jsonl`.

    Attributes:
        id: `condition/case/repeat`, unique in its run.
        condition: the cell of the spec's matrix it belongs to.
        labels: what tables group by: swept values, case labels, and "model".
        numbers: metric → number, None if the metric has none for this episode; of a `RatioMetric` its two parts,
            numerator and denominator; of a `CorpusMetric` its record.
        error: why the episode failed, `NOT_RUN`, or None. A failed episode's numbers are never used.
        uses_ground_truth: whether players knew the right answer (`Policy.uses_ground_truth`); tables say so at its
            numbers.
        limited: whether an agent was not asked (again) because a limit of the spec (`harness.config.limits`) was
            reached.
        turns: name of a model in the spec → {"asked": turns in which it was asked, "answered": those in which it
            answered, readably or not, kind of error: those that ended without an action}.
        dropped_fields: field → the number of replies that have it and of which it was not read.
        usage: model, by its own name → what its replies are billed by: tokens of "input", the "cached" ones among them,
            and of "output", and how many of each were those of batches ("batch_input", …); "usd", what replies say
            themselves that they cost, and their tokens then do not count; "uncounted", how many replies say neither.
            Only models that replied. One that answered the calls of agents' programs also has "inner_calls", how many,
            and "replies", those of the programs meanwhile.
        problem: equal for episodes whose cases ask the same and have the same answer, also in different conditions
            (`harness.config.plan.problem_digest`); "" where an older version wrote the file.
        withheld: the metric whose number is not shown although there is one (`without`); no part of the file.
    """

    id: str
    condition: str
    labels: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)
    error: str | None = None
    uses_ground_truth: bool = False
    limited: bool = False
    turns: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    dropped_fields: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    problem: str = ""
    withheld: str | None = None

    def without(self, metric: str) -> EpisodeScore:
        """The episode for tables that do not show its number of a metric; it is withheld, and not missing."""
        return replace(self, numbers={**self.numbers, metric: None}, withheld=metric)

    @property
    def model(self) -> str:
        """The model's name as text; "–" if the labels have none."""
        return text(self.labels.get("model"))

    @property
    def case(self) -> str:
        """The id of the case that was played, from `id`."""
        return self.id[len(self.condition) + 1 :].rpartition("/")[0]

    @property
    def answered(self) -> dict[str, int]:
        """Name of a model in the spec → turns in which it answered; only models that did."""
        return {name: count for name, turns in self.turns.items() if (count := turns.get("answered", 0))}

    @property
    def unanswered(self) -> int:
        """Turns in which models were asked, if none of them was answered; else 0."""
        return 0 if self.answered else sum(counts.get("asked", 0) for counts in self.turns.values())

    @property
    def failed(self) -> bool:
        """Whether the episode was played and did not finish."""
        return self.error is not None and self.error != NOT_RUN

    def number(self, metric: str) -> float | None:
        """The metric's number, of parts their quotient; None if the episode failed, or has none that counts."""
        value = self.numbers.get(metric)
        if isinstance(value, CorpusRecord):
            return None
        if isinstance(value, Sequence):
            parts = self.parts(metric)
            value = parts[0] / parts[1] if parts else None
        return value if self.error is None and value is not None and is_countable(value) else None

    def parts(self, metric: str) -> Parts | None:
        """Numerator and denominator of a `RatioMetric`; None as for `number`, and for every other metric."""
        value = self.numbers.get(metric)
        if self.error is not None or not isinstance(value, Sequence):
            return None
        top, bottom = value
        return (top, bottom) if is_countable(top) and is_countable(bottom) and bottom > 0 else None

    def record(self, metric: str) -> CorpusRecord | None:
        """The record of a `CorpusMetric`; None if the episode failed or has none, and for every other metric."""
        value = self.numbers.get(metric)
        return value if self.error is None and isinstance(value, CorpusRecord) else None

    def to_json(self) -> dict[str, Any]:
        """A JSON object; numbers that are not finite become null, a record {"record": value}."""
        numbers = {name: _jsonable(x) for name, x in self.numbers.items()}
        line = {name: getattr(self, name) for name in _WRITTEN}
        line |= {"labels": dict(self.labels), "numbers": numbers}
        return {key: value for key, value in line.items() if value or key not in MARKS}

    @classmethod
    def from_json(cls, data: Any) -> EpisodeScore:
        """Read what `to_json` wrote.

        Raises:
            DataError: saying what is wrong with the object.
        """
        if not isinstance(data, dict):
            raise DataError(f"a score is a JSON object, found {type(data).__name__}")
        for name, (kind, article) in _LINE.items():
            if (name in data or name not in MARKS) and not isinstance(data.get(name), kind):
                raise DataError(f"{name} of a score is {article}, found {data.get(name)!r:.80}")
        for model, counts in data.get("turns", {}).items():
            if not isinstance(counts, dict) or not all(type(count) is int for count in counts.values()):
                raise DataError(f"turns of {model} is {counts!r:.80}, not counts")
        if not all(type(count) is int for count in data.get("dropped_fields", {}).values()):
            raise DataError(f"dropped_fields is {data['dropped_fields']!r:.80}, not counts")
        for model, counts in data.get("usage", {}).items():
            if not isinstance(counts, dict) or not all(
                _is_number(x) and not isinstance(x, list) for x in counts.values()
            ):
                raise DataError(f"usage of {model} is {counts!r:.80}, not numbers")
        for name, number in data["numbers"].items():
            if number is not None and not _is_number(number) and not _is_record(number):
                kinds = 'a number, [numerator, denominator], {"record": …}'
                raise DataError(f"{name} is {number!r:.80}, not {kinds} or null")
        # The same names and values in every one of maybe 100,000 scores are kept once.
        shared: dict[str, Any] = {"condition": sys.intern(data["condition"])}
        shared["labels"] = {
            sys.intern(k): sys.intern(v) if isinstance(v, str) else v for k, v in data["labels"].items()
        }
        shared["numbers"] = {
            sys.intern(name): CorpusRecord(number["record"]) if isinstance(number, dict) else number
            for name, number in data["numbers"].items()
        }
        return cls(**{name: data[name] for name in _WRITTEN if name in data} | shared)


_WRITTEN: Final = tuple(one.name for one in fields(EpisodeScore) if one.name != "withheld")
"""The fields that the file has."""


MAX_LABEL_NUMBER: Final = 1e100
"""The largest number of an episode that counts. Means and variances of larger ones leave what a float holds."""
_LINE: Final[dict[str, tuple[Any, str]]] = {
    "id": (str, "a text"),
    "condition": (str, "a text"),
    "labels": (dict, "an object"),
    "numbers": (dict, "an object"),
    "error": (str | None, "a text or null"),
    "turns": (dict, "an object"),
    "dropped_fields": (dict, "an object"),
    "usage": (dict, "an object"),
    "problem": (str, "a text"),
}


def is_countable(value: float) -> bool:
    """Whether tables can count with a number: it is finite, and so are the squares of a million such and their sum."""
    return abs(value) <= MAX_LABEL_NUMBER


def load_scores(path: Path) -> list[EpisodeScore]:
    """Read a run's `scores.jsonl`.

    Raises:
        DataError: with file and line, if it cannot be read.
    """
    scores = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    scores.append(EpisodeScore.from_json(json.loads(line)))
                except (ValueError, RecursionError, DataError) as error:
                    what = error.message if isinstance(error, DataError) else f"not JSON: {error}"
                    raise DataError(what, place=Place(str(path), number, 1)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the scores: {error}", place=Place(str(path))) from error
    return scores


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"record"}


def _jsonable(value: Number) -> Any:
    if isinstance(value, CorpusRecord):
        return {"record": value.value}
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    """Whether JSON keeps the value: a finite number, or two of which the second is above 0."""
    if isinstance(value, list | tuple):
        return len(value) == 2 and all(map(_is_number, value)) and value[1] > 0
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def numbers(scores: Iterable[EpisodeScore], metric: str) -> list[float]:
    """The numbers there are, in order; of parts the values whose mean is the ratio of all of `scores` together."""
    scores = list(scores)
    if parts := all_parts(scores, metric):
        return linearize(parts)
    return [x for score in scores if (x := score.number(metric)) is not None]


def cluster_of(score: EpisodeScore, cluster: Sequence[str]) -> tuple[str, ...]:
    """What makes the episodes of a cluster one observation, by a table's `cluster`.

    Without one the repeats of a case are, also in other conditions in which it asks the same, so that asking again adds
    no case.
    """
    if not cluster:
        return score.problem or score.condition, score.case
    if "episode" in cluster:
        return (score.id,)
    return tuple(score.case if name == "case" else text(score.labels.get(name)) for name in cluster)


def observations(scores: Sequence[EpisodeScore], metric: str, cluster: Sequence[str]) -> list[tuple[Hashable, float]]:
    """`numbers`, each with its cluster. Episodes of different models are never in one cluster."""
    has = EpisodeScore.parts if any(score.parts(metric) for score in scores) else EpisodeScore.number
    keys = [(score.model, *cluster_of(score, cluster)) for score in scores if has(score, metric) is not None]
    return list(zip(keys, numbers(scores, metric), strict=True))


def records(scores: Iterable[EpisodeScore], metric: str) -> list[Any]:
    """The records of a `CorpusMetric`, in order."""
    return [record.value for score in scores if (record := score.record(metric)) is not None]


def all_parts(scores: Iterable[EpisodeScore], metric: str) -> list[Parts]:
    """Numerator and denominator of every episode that has them, in order."""
    return [parts for score in scores if (parts := score.parts(metric)) is not None]


def aggregate(metric: Metric, scores: Sequence[EpisodeScore], name: str) -> Statistic:
    """The metric's own statistic of what the episodes have under `name`; nothing where they have nothing.

    Raises:
        PluginError: if the metric fails, or counts more observations than episodes, such as one for each agent.
        DataError: as `refuse_bare_shares`.
    """
    refuse_bare_shares(metric, scores, name)
    values: Sequence[Any]
    if isinstance(metric, CorpusMetric):
        values = records(scores, name)
    else:
        values = all_parts(scores, name) if isinstance(metric, RatioMetric) else numbers(scores, name)
    if not values:
        return Statistic(None, None, 0)
    try:
        statistic = metric.aggregate(values)
    except NotApprovedError:  # its number is left out, and the reader hears of it (`approvals.refusals`)
        return Statistic(None, None, 0)
    except Exception as error:
        from harness.storage.plugin_errors import describe  # what only a failing plugin needs

        place = error.place if isinstance(error, UserError) else None
        why = error.message if isinstance(error, UserError) and place is not None else describe(error)
        message = f"{type(metric).__name__}.aggregate fails: {why}"
        raise PluginError(message, place=place, hint="Fix it, then `harness score RUN`: no episode is lost.") from error
    if not isinstance(statistic, Statistic):
        raise PluginError(f"{type(metric).__name__}.aggregate gives {statistic!r:.80}, not a Statistic")
    if statistic.n > len(values):
        what = f"{type(metric).__name__}.aggregate counts {statistic.n} observations in {len(values)} episodes"
        hint = (
            "Agents that share an episode share its history: they are one observation. Give `measure` their mean, and "
            "`Statistic` the number of episodes at most."
        )
        raise PluginError(what, hint=hint)
    return statistic


def measured(metric: Metric, scores: Sequence[EpisodeScore], name: str, cluster: Sequence[str]) -> Statistic:
    """`aggregate`, with the standard error that `cluster` wants: that of tables, files, data frames and exports.

    Args:
        metric: the metric.
        scores: the episodes of one condition, or of several that are pooled.
        name: the metric's name in them.
        cluster: a spec's `cluster:`, or a table's own; without one the repeats of a case are one observation.

    Raises:
        PluginError, DataError: as `aggregate`.
    """
    return stats.clustered_error(aggregate(metric, scores, name), [observations(scores, name, cluster)])


def bounds_of(metric: Metric, scores: Iterable[EpisodeScore], name: str) -> Bounds:
    """Between which numbers a metric's lie: the bounds that it declares, or none if one of `scores` is beyond them.

    A task may have another scale than the usual one: the `score` of most lies between 0 and 1, that of others is a
    perplexity or an amount. Numbers without bounds are shares, from 0 to 1, if some are 0, some are 1 and none is
    another one: amounts may all be 0 as well. `scores` are all of a run or of several, so that every table of it has
    the same intervals.
    """
    low, high = metric.bounds
    known = {x for score in scores if (x := score.number(name)) is not None}
    if (low, high) == UNBOUNDED:
        return (0.0, 1.0) if known == {0, 1} and not isinstance(metric, RatioMetric) else UNBOUNDED
    return (low, high) if all(low <= x <= high for x in known) else UNBOUNDED


def refuse_bare_shares(metric: Metric, scores: Iterable[EpisodeScore], name: str) -> None:
    """Raise `DataError` for a ratio's shares without the counts behind them: their mean is another number."""
    if not isinstance(metric, RatioMetric):
        return
    bare = next((s for s in scores if s.number(name) is not None and s.parts(name) is None), None)
    if bare is not None:
        message = f"{name} of {bare.id} is a share without the counts behind it: an older version wrote the scores"
        raise DataError(message, hint="`harness score RUN` counts again, from the journal.")


def by_condition(scores: Iterable[EpisodeScore]) -> dict[tuple[str, str], list[EpisodeScore]]:
    """Scores per model and condition, in order of first appearance."""
    groups: dict[tuple[str, str], list[EpisodeScore]] = {}
    for score in scores:
        groups.setdefault((score.model, score.condition), []).append(score)
    return groups


def averaged_first(scores: Sequence[EpisodeScore], how: Means) -> list[Sequence[EpisodeScore]]:
    """What is averaged first: all episodes together, or each condition's."""
    return [scores] if how == "pooled" else [*by_condition(scores).values()]


def finite(x: float | None) -> float | None:
    """`x`, or None if JSON has no number for it."""
    return x if x is not None and math.isfinite(x) else None
