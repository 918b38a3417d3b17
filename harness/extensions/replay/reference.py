"""Who plays in the place of recorded moves: a policy that was named, and models that answer from the record first."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from harness.api import Engine, Policy
from harness.api.errors import Place, SpecError, UserError
from harness.config.building import Reference, make, parts_of
from harness.config.plan import Condition, Plan
from harness.runtime.seats import seats
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe

from .base_run import BaseRun
from .recorded_engine import Memory, RecordedEngine


def reference_of(plan: Plan, given: Reference, at: Place) -> Callable[[], Policy]:
    """Makes the policy that was named at this place, whose moves take the place of others. Raises `SpecError`."""
    cls, arguments = parts_of("policies", given, plan.project, lambda *path: at)
    return functools.partial(make, cls, arguments, lambda *path: at)


def try_policy(plan: Plan, conditions: Iterable[Condition], policy: Callable[[], Policy], at: Place) -> None:
    """Raise `SpecError` where a policy cannot play these conditions: it says so, or fails in the first turns of an
    example, since not every policy can tell by the task alone."""
    for condition in {id(one): one for one in conditions}.values():
        why, hint = policy().misfit(condition.task), None
        if why is None:
            why, hint = _failure(plan, condition, policy)
        if why is not None:
            raise SpecError(f"this policy cannot play {condition.id}: {why}", place=at, hint=hint)


def _failure(plan: Plan, condition: Condition, policy: Callable[[], Policy]) -> tuple[str | None, str | None]:
    """Why the policy fails in the first turns of the condition's example, and what to do; None if it does not."""
    seated = seats(plan, condition, condition.task.example(), 0)
    with Steps(condition.protocol, condition.task, condition.task.example(), random.Random(0)) as game:
        while game.batch == []:
            game.send([])
        for turn in game.batch or ():
            seat = seated[turn.agent]
            try:
                replace(seat, group=replace(seat.group, model=None, policy=policy)).policy_player().decide(turn)
            except UserError as error:
                return error.message, error.hint
            except Exception as error:
                return describe(error), None
    return None, None


def engines_of(parent: BaseRun, models: Mapping[str, Engine], max_calls: int | None) -> dict[str, RecordedEngine]:
    """For each model of the run its recorded replies, and where a prompt is another one that of `models`, if any.

    Args:
        parent: the run.
        models: by the names that groups use; "model" is the one under test, and the same for all that have no other.
        max_calls: of each.
    """
    plan, memory = parent.plan, Memory(parent)
    groups = [group for condition in plan.conditions for group in condition.groups if group.policy is None]
    names = dict.fromkeys(group.model or "model" for group in groups)
    return {
        name: RecordedEngine(memory, models.get(name), plan.model, {}, max_calls=max_calls, once=True) for name in names
    }
