"""Rehearsal of a spec's policies: episodes without a model, for what only turns can say about them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

from harness.api import Policy
from harness.api.errors import Place, SpecError, UserError
from harness.checks.trial_episodes import unmeasured
from harness.config.plan import Condition, Plan, protocol_seed
from harness.runtime.scoring import grade
from harness.runtime.seats import seats, without_models
from harness.storage.plugin_errors import describe

from .expressions import Expression
from .play_out import Clock, LateError, play_out
from .yaml_task import YamlTask

SECONDS = 0.1
"""CPU time in which policies that are Python play conditions; those of expressions play all of them."""


MAX_SECONDS = 10.0
"""CPU time in which one of them is played: a world of ten thousand agents is not played to its end."""


def check_policies(plays: Sequence[tuple[Plan, Place]]) -> Iterator[UserError]:
    """Rehearse every plan, as `simulate_policy`; mistakes without a place of their own stand where the plan's policies
    do."""
    for plan, place in plays:
        yield from simulate_policy(plan, place)


def simulate_policy(plan: Plan, place: Place | None = None) -> Iterator[UserError]:
    """Yield what is wrong with the plan's policies where it is the spec's: each mistake once.

    Which names an expression may use depends on the task and the protocol, so every condition with policies whose
    parameters are expressions plays its example case, and the spec's metrics measure it. So do policies in Python where
    the spec declares the task: no test suite has seen them together. A mistake that knows no place of its own is at
    `place`.
    """
    messages: set[str] = set()
    failed: set[str] = set()
    seen: set[tuple[str, str]] = set()
    deadline = time.process_time() + SECONDS
    met: set[tuple[str, str]] = set()
    for condition in plan.conditions:
        if condition.base is not None:  # each contestant plays once
            pairs = {(condition.base, group.name) for group in condition.groups[1:]}
            if pairs <= met:
                continue
            met |= pairs
        policies = [group.policy() for group in condition.groups if group.policy is not None]
        declared = isinstance(condition.task, YamlTask)
        if not any(map(_has_expressions, policies)):
            key = repr(condition.task), repr(condition.protocol)
            if not declared or not policies or key in seen or time.process_time() > deadline:
                continue
            seen.add(key)
        problems: list[UserError] = []
        try:
            problems += _play(condition, plan, failed)
        except UserError as error:
            problems.append(type(error)(error.message, place=error.place or place, hint=error.hint))
        except Exception as error:
            if not declared:  # what else fails is for `check_plan` and for the run, which name the plugin's line
                continue
            problems.append(SpecError(f"{condition.id}: {describe(error)}", place=place))
        for problem in problems:
            if problem.message not in messages:
                messages.add(problem.message)
                yield problem


def _has_expressions(policy: Policy) -> bool:
    values = vars(policy).values()
    inner = (one for value in values for one in (value.values() if isinstance(value, dict) else [value]))
    return any(isinstance(value, Expression) for value in inner)


def _play(condition: Condition, plan: Plan, failed: set[str]) -> list[SpecError]:
    """What is wrong with how the example ends; nothing where it takes too long for it. Raises what playing does."""
    case = condition.assign_groups(condition.task.example(), plan.seed)
    choose = without_models(seats(plan, condition, case, 0))
    with contextlib.suppress(LateError):
        seed = protocol_seed(plan, condition, case, 0)
        episode = play_out(plan, condition, case, Clock(MAX_SECONDS).watching(choose), seed)
        if condition.task.grading == "quick":
            return list(unmeasured(plan, grade(episode, condition, case), failed))
    return []
