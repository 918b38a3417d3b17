"""Whether the plugins of a plan keep their contracts, and whether what agents know at the start gives answers away."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from harness.api import Case, Channel, Move, Protocol, Task, Turn
from harness.config.plan import Condition, Plan
from harness.extensions.games.worlds import SteppedTask
from harness.extensions.yaml_tasks import conformance
from harness.extensions.yaml_tasks.conformance import leaks
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe

MOST: Final = 12
"""Different tasks, and protocols with a task, that are looked at: a matrix of sizes names one task many times."""
_BATCHES: Final = 40
"""Batches in which agents have their first turn; one that comes later is not looked at."""


def broken(plan: Plan) -> tuple[list[str], str]:
    """(what breaks a contract, each once; what was looked at, in words)."""
    found: list[str] = []
    tasks, pairs, channels = set[str](), set[str](), set[str]()
    for condition in _different(plan):
        task, protocol = condition.task, condition.protocol
        name = type(task).__name__
        tasks.add(repr(task))
        leaked = set(_leaks_of_contexts(task))
        found += [f"{name}: {one}" for one in _tried(conformance.check_task, task) if one not in leaked]
        if isinstance(task, SteppedTask):
            found += [f"{name}: {one}" for one in _tried(conformance.check_world, task)]
        pair = f"{type(protocol).__name__} with {name}"
        if pair not in pairs:
            pairs.add(pair)
            found += [f"{pair}: {one}" for one in _tried(conformance.check_protocol, protocol, task)]
        channel = getattr(protocol, "channel", None)
        if isinstance(channel, Channel) and repr(channel) not in channels:
            channels.add(repr(channel))
            found += [
                f"{type(channel).__name__}: {o}" for o in _tried(conformance.check_channel, channel, task.example())
            ]
    metrics = {name: metric for name, metric in plan.metrics.items() if metric.measured_by is None}
    for name, metric in metrics.items():
        found += [f"{name}: {one}" for one in _tried(conformance.check_metric, metric)]
    counts = ((tasks, "task"), (pairs, "protocol"), (channels, "channel"), (metrics, "metric"))
    return list(dict.fromkeys(found)), ", ".join(counted(len(some), what) for some, what in counts if some)


def leaked(plan: Plan) -> tuple[list[str], str]:
    """(where agents find right answers before anyone has said a thing; what was looked at, in words)."""
    found: list[str] = []
    cases = 0
    conditions = _different(plan)
    for condition in conditions:
        task = condition.task
        some = [condition.assign_groups(case, plan.seed) for case in leaks.cases_of(task, plan.seed)]
        cases += len(some)
        places = [
            *leaks.in_context(task, some),
            *leaks.in_first_turns(task, _first_turns(condition.protocol, task, some)),
        ]
        found += [f"{type(task).__name__}: {place}" for place in places]
    return list(dict.fromkeys(found)), f"{counted(cases, 'case')} of {counted(len(conditions), 'task')}"


def _different(plan: Plan) -> list[Condition]:
    """Conditions with different tasks, or different protocols: the first and the last of more than `MOST`, evenly."""
    seen: dict[str, Condition] = {}
    for condition in plan.conditions:
        seen.setdefault(f"{condition.task!r} {type(condition.protocol).__name__}", condition)
    conditions = [*seen.values()]
    if len(conditions) <= MOST:
        return conditions
    return [conditions[i * (len(conditions) - 1) // (MOST - 1)] for i in range(MOST)]


def _leaks_of_contexts(task: Task) -> Iterator[str]:
    yield from _tried(lambda: leaks.in_context(task, leaks.cases_of(task, 0)))


def _first_turns(protocol: Protocol, task: Task, cases: Sequence[Case]) -> Iterator[tuple[Case, int, Any]]:
    """(case, number of the agent, what its first turn shows), where all agents before it did nothing."""
    for case in cases:
        wanted = {agent: number for number, agent in enumerate(case.agents[: leaks.AGENTS])}
        with Steps(protocol, task, case, random.Random(0)) as game:
            while game.batch is not None and wanted and game.number < _BATCHES:
                for turn in game.batch:
                    if (number := wanted.pop(turn.agent, None)) is not None:
                        yield case, number, {**turn.context, **turn.observation}
                game.send([_idle(turn) for turn in game.batch])


def _idle(turn: Turn) -> Move:
    return Move(turn.agent, turn.name, turn.reply.noop)


def _tried(check: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """What a check finds; a plugin that raises breaks its contract."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check(*arguments)
        except Exception as error:
            return [describe(error)]


def counted(number: float, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "task"), counted(1200, "task")
    ('1 task', '1,200 tasks')
    """
    return f"{number:,.12g} {what}{'' if number == 1 else 's'}"
