"""Which episodes of a run are trained on, what each of them pays, and whose replies."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.api.errors import DataError, Place, near
from harness.api.run_files import SCORES
from harness.config.plan import Plan
from harness.evaluation.run import Run
from harness.tables import EpisodeScore

WHERE, REWARD, AGENT, GROUP = (Place(f"--{name}") for name in ("where", "reward", "agent", "group"))
_FIXED: Final = ("episode", "condition", "case", "repeat")


@dataclass(frozen=True)
class Chosen:
    """The episodes of a run to train on.

    Attributes:
        rewards: the episode's id → its reward.
        reward: what the reward is, in words.
        failed: how many episodes failed or were not run.
        others: how many more were not chosen.
    """

    rewards: Mapping[str, float]
    reward: str
    failed: int
    others: int


def chosen(run: Run, where: str | None, reward: str | None) -> Chosen:
    """The episodes of a run that meet a condition.

    Args:
        run: the run.
        where: an expression over metrics, labels, `episode`, `condition`, `case` and `repeat`; None: all episodes.
        reward: the metric that says what an episode is worth; None: that of the headline. Where lower is better the
            headline's number counts negatively.

    Raises:
        DataError: there is no such metric, a chosen episode has no number for it, or no episode is chosen.
        PluginError: the condition cannot be read, or fails at an episode.
    """
    metric, sign = _reward(run, reward)
    meets = _condition(run, where) if where is not None else lambda score: True
    rewards: dict[str, float] = {}
    failed = others = 0
    for line, score in enumerate(run.scores, 1):
        if score.error is not None:
            failed += 1
        elif not meets(score):
            others += 1
        elif (number := score.number(metric)) is None:
            hint = f"`--where '{metric} != None'` leaves such episodes out; --reward takes another metric."
            place = Place(str(run.folder / SCORES), line, 1)
            raise DataError(f"the episode {score.id} has no number for the reward {metric}", place=place, hint=hint)
        else:
            rewards[score.id] = sign * number
    if not rewards:
        unmet = f"none of its {others} episodes meets {where!r:.200}" if others else f"all its {failed} episodes failed"
        raise DataError(f"{run.folder}: {unmet}", place=WHERE if others else None)
    return Chosen(rewards, metric if sign > 0 else f"−{metric} (lower is better)", failed, others)


def _reward(run: Run, name: str | None) -> tuple[str, int]:
    """(the metric, 1 or, where less of it is better, −1)."""
    if not run.metrics:
        raise DataError(f"{run.folder} has no metric to reward episodes by", place=REWARD)
    if name is not None and name not in run.metrics:
        raise DataError(f"{run.folder} has no metric {name!r:.200}", place=REWARD, hint=near(name[:200], run.metrics))
    headline = run.headline
    metric = name if name is not None else headline.metric
    return metric, -1 if metric == headline.metric and headline.better == "lower" else 1


def _condition(run: Run, text: str) -> Callable[[EpisodeScore], bool]:
    """The condition as a function of a score. Raises `PluginError`, the function too."""
    from harness.extensions.yaml_tasks.expressions import (  # what only a condition needs
        FUNCTIONS,
        RANDOM,
        Expression,
        ExpressionError,
        compiled,
        names,
    )

    labels = {label for score in run.scores for label in score.labels}
    taken = {*FUNCTIONS, *RANDOM, *keyword.kwlist}
    known = {name for name in (*_FIXED, *labels, *run.metrics) if name.isidentifier() and name[0] != "_"} - taken
    expression = compiled(Expression.at(text, WHERE), known)

    def meets(score: EpisodeScore) -> bool:
        try:
            value = expression.value(names(_values(score, run.metrics, expression.uses)))
        except ExpressionError as error:
            raise ExpressionError(f"{error.message} (at the episode {score.id})", place=WHERE) from None
        if not isinstance(value, bool) and value not in (0, 1):
            message = f"{text:.200} is {value!r:.80} at the episode {score.id}, and neither true nor false"
            raise DataError(message, place=WHERE, hint="Compare it: 'score >= 0.5'.")
        return bool(value)

    return meets


def _values(score: EpisodeScore, metrics: Collection[str], uses: Iterable[str]) -> dict[str, Any]:
    """What a condition can name of an episode: metrics come before labels of their name."""
    fixed = {"episode": score.id, "condition": score.condition, "case": score.case}
    known: dict[str, Any] = {**fixed, "repeat": int(score.id.rpartition("/")[2]), **score.labels}
    return {name: score.number(name) if name in metrics else known.get(name) for name in uses}


def check_seats(plans: Sequence[Plan], agents: Sequence[str], groups: Sequence[str]) -> None:
    """Raise `DataError` if no condition of any plan has one of these agents or groups."""
    known = {group.name for plan in plans for condition in plan.conditions for group in condition.groups}
    for name in groups:
        if name not in known:
            raise DataError(f"no condition has a group {name!r:.200}", place=GROUP, hint=near(name[:200], known))
    there = {
        agent
        for plan in plans
        if agents
        for condition, case, repeat in plan.episodes()
        if repeat == 0
        for agent in condition.protocol.possible_agents(case)
    }
    for name in agents:
        if name not in there:
            raise DataError(f"no condition has an agent {name!r:.200}", place=AGENT, hint=near(name[:200], there))
