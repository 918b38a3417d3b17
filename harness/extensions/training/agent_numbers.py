"""Numbers that `rewards:` pays: metrics of an episode or of one agent's own moves, and expressions."""

from __future__ import annotations

import collections
import contextlib
import functools
import keyword
import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from harness.api import CorpusMetric, Episode, Metric
from harness.api.errors import Place, SpecError, near
from harness.config import resolve
from harness.config.building import PlaceOf, make, parts_of
from harness.config.plan import Condition, Plan
from harness.extensions.replay.changes import without_messages
from harness.extensions.yaml_tasks.expressions import (
    FUNCTIONS,
    RANDOM,
    CompiledExpression,
    Expression,
    ExpressionError,
    compiled,
    is_number,
    names,
)
from harness.extensions.yaml_tasks.play_out import Clock
from harness.runtime.scoring import grade, labels, measure, score
from harness.runtime.seats import seats
from harness.runtime.steps import drive
from harness.tables import EpisodeScore

from .rewards import NoRewardError, PaidEpisode, returns_of

OF_EPISODE = ("agents", "answers", "target", "returns", "grade", "facts", "metrics")
"""What expressions know of an episode, besides its metrics by their own names."""
OF_AGENT = ("agent", "role", "answer", "actions", "messages")
"""What they know besides of one agent."""
EXPRESSION = "expression"
RETURNS = "returns"
SECONDS = 0.5
"""CPU time in which the example of a condition is played, to try expressions."""

Number = Callable[[PaidEpisode, str | None], float]
"""The number of an episode, or of one agent in it. Raises `NoRewardError` where there is none."""


def number_of(entry: str | Mapping[str, Any], plan: Plan, at: PlaceOf, of_agents: bool) -> Number:
    """The number that an entry of `rewards:` names.

    Args:
        entry: a name, or `use:` with its arguments.
        plan: whose metrics it may name.
        at: the place of the value at a path below the entry.
        of_agents: whether each agent has its own.

    Raises:
        SpecError, PluginError: there is no such metric, it has no number of an episode, or an expression is wrong.
    """
    body = {"use": entry} if isinstance(entry, str) else {k: v for k, v in entry.items() if k != "weight"}
    whole: PlaceOf = (lambda *_: at()) if isinstance(entry, str) else at
    if body["use"] == RETURNS and of_agents and len(body) == 1:
        _check_returns(plan, whole("use"))
        body = {"use": EXPRESSION, "of": "returns[agent]"}
    if body["use"] == EXPRESSION:
        return _expression(body, plan, whole, of_agents)
    name, metric = metric_of(body, plan, whole)
    return functools.partial(_of_agent, metric, name) if of_agents else functools.partial(_of_episode, metric, name)


def numbers_of(name: str, plan: Plan, at: Place) -> Callable[[Episode], Mapping[str, float]]:
    """Agent → the number of this name in an episode: a metric's, the same for all, or each one's own `returns`. Raises
    as `number_of`; what it returns raises `NoRewardError`."""
    if name == RETURNS and name not in plan.metrics:
        _check_returns(plan, at)
        return returns_of
    _, metric = metric_of({"use": name}, plan, lambda *_: at)

    def numbers(episode: Episode) -> Mapping[str, float]:
        number = measured(metric, name, episode)
        if number is None:
            raise NoRewardError(f"metric {name!r} has no number in this episode, or where the reference plays on")
        return collections.defaultdict(lambda: number)

    return numbers


def _check_returns(plan: Plan, at: Place) -> None:
    lacking = next((one for one in plan.conditions if "returns" not in one.task.grades), None)
    if lacking is not None:
        message = f"returns: {type(lacking.task).__name__} of {lacking.id!r} pays agents no returns"
        hint = "Returns are of games and worlds; `{use: expression, of: …}` pays an agent for what else there is."
        raise SpecError(message, place=at, hint=hint)


def metric_of(body: Mapping[str, Any], plan: Plan, at: PlaceOf) -> tuple[str, Metric]:
    """A metric of the spec by its name, or one that is declared here. Raises as `number_of`."""
    name, arguments = str(body["use"]), {k: v for k, v in body.items() if k != "use"}
    if name in plan.metrics and not arguments:
        metric = plan.metrics[name]
    elif plan.project.file("metrics", name) is None:
        known = [*plan.metrics, *plan.project.files("metrics")]
        raise SpecError(f"there is no metric {name!r}", place=at("use"), hint=near(name, known))
    else:
        metric = make(*parts_of("metrics", body, plan.project, at), at)
        if (why := resolve.unfit(name, metric, plan.conditions)) is not None:
            raise SpecError(why, place=at("use"))
    if isinstance(metric, CorpusMetric) or metric.measured_by is not None:
        when = "of all episodes together" if isinstance(metric, CorpusMetric) else "measured after all episodes"
        raise SpecError(f"metric {name!r} is {when}: an episode has no number", place=at("use"))
    return name, metric


def measured(metric: Metric, name: str, episode: Episode) -> float | None:
    """The metric's number of an episode, of parts their quotient. Raises `NoRewardError` for a metric that fails."""
    found, error = measure(episode, {name: metric})
    if error is not None:
        raise NoRewardError(error)
    return EpisodeScore(episode.id, episode.condition, dict(episode.labels), found).number(name)


def _of_episode(metric: Metric, name: str, played: PaidEpisode, agent: str | None) -> float:
    number = played.score.number(name) if name in played.score.numbers else measured(metric, name, played.episode)
    if number is None:
        raise NoRewardError(f"metric {name!r} has no number in this episode")
    return number


def _of_agent(metric: Metric, name: str, played: PaidEpisode, agent: str | None) -> float:
    """Of an episode with this agent's moves alone."""
    own = [[move for move in batch if move.agent == agent] for batch in played.episode.batches]
    number = measured(metric, name, replace(played.episode, batches=own))
    if number is None:
        raise NoRewardError(f"metric {name!r} has no number of {agent}'s own moves")
    return number


# ------------------------------------------------------------------------------------ expressions


@dataclass(frozen=True)
class _ByExpression:
    """An expression over an episode, or over an agent of it."""

    code: CompiledExpression
    place: Place

    def __call__(self, played: PaidEpisode, agent: str | None) -> float:
        try:
            value = self.code.value(names(values_of(played, agent, self.code.uses)))
        except ExpressionError as error:
            raise NoRewardError(str(error)) from error
        if isinstance(value, bool):
            return float(value)
        if not is_number(value) or not math.isfinite(value):
            raise NoRewardError(f"{self.place}: the expression gives {value!r:.80}, no number")
        return float(value)


def _expression(body: Mapping[str, Any], plan: Plan, at: PlaceOf, of_agents: bool) -> Number:
    if "of" not in body or (more := sorted(body.keys() - {"use", "of"})):
        what = "an expression needs of:, its text" if "of" not in body else f"an expression takes no {more[0]}:"
        raise SpecError(what, place=at("use"), hint='Such as {use: expression, of: "2 * solved - 0.1 * rounds"}.')
    text = Expression.at(str(body["of"]), at("of"))
    known = {*OF_EPISODE, *filter(_is_usable, plan.metrics)} | ({*OF_AGENT} if of_agents else set())
    return _ByExpression(compiled(text, known), at("of"))


def is_expression(number: Number) -> bool:
    """Whether it is one that can fail by its text."""
    return isinstance(number, _ByExpression)


def metrics_of(number: Number, plan: Plan) -> list[Metric]:
    """The metrics that a number is of; of an expression those that it names."""
    if isinstance(number, _ByExpression):
        return [plan.metrics[name] for name in number.code.uses & plan.metrics.keys() - {*OF_EPISODE, *OF_AGENT}]
    assert isinstance(number, functools.partial)
    return [number.args[0]]


def idle_example(plan: Plan, condition: Condition) -> PaidEpisode | None:
    """The condition's example with agents that do nothing, graded; None where it takes long, or cannot be played."""
    case = condition.task.example()
    with contextlib.suppress(Exception):  # what fails there, `harness validate` says
        case = condition.assign_groups(case, plan.seed)
        idle = Clock(SECONDS).watching(lambda turn: turn.reply.noop)
        played = drive(condition.protocol, condition.task, case, idle)
        moves = [[move for _, move in batch] for batch in played.batches]
        facts = "example", condition.id, case.id, 0, labels(plan, condition, case), case.roles, moves, played.outcome
        episode = Episode(*facts)
        if condition.task.grading != "executes":
            episode = grade(episode, condition, case)
            seated = seats(plan, condition, case, 0)
            job = condition, case, 0
            return PaidEpisode(plan, job, episode, score(episode, plan.metrics), seated, tuple(seated))
    return None


def _is_usable(name: str) -> bool:
    taken = name in FUNCTIONS or name in RANDOM or name.startswith("_") or keyword.iskeyword(name)
    return name.isidentifier() and not taken


def values_of(played: PaidEpisode, agent: str | None, wanted: Set[str]) -> dict[str, Any]:
    """What expressions know, by name; `wanted`: those that are needed."""
    (_, case, _), episode, outcome = played.job, played.episode, played.episode.outcome
    numbers = {name: played.score.number(name) for name in played.score.numbers}
    answers = dict(outcome.answers) if outcome is not None else {}
    values: dict[str, Any] = {name: one for name, one in numbers.items() if _is_usable(name)}
    values |= {"agents": [*played.seats], "answers": answers, "target": case.target, "metrics": numbers}
    values |= {"grade": dict(episode.grade), "facts": dict(outcome.facts) if outcome is not None else {}}
    values["returns"] = episode.grade.get("returns") or values["facts"].get("returns") or {}
    if agent is not None:
        moves = [move for move in episode.moves() if move.agent == agent]
        everyone = frozenset(played.seats)
        values |= {"agent": agent, "role": case.roles.get(agent, "default"), "actions": [m.action for m in moves]}
        values["answer"] = answers.get(agent, outcome.group if outcome is not None else None)
        if "messages" in wanted:
            values["messages"] = sum(without_messages(move.action, None, everyone) is not None for move in moves)
    return {name: _plain(value) for name, value in values.items() if name in wanted}


def _plain(value: Any) -> Any:
    """Facts as expressions take them: dicts, lists, sets and plain values; of anything else its text."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str | int) else str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Sequence | Set):
        return [_plain(one) for one in value]
    return str(value)
