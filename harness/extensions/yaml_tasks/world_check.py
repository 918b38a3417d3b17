"""Whether a declared world comes to anything: its agents can act, and its `end` is reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.api.errors import Place
from harness.config.plan import Condition, Plan
from harness.extensions.games.worlds import SteppedTask
from harness.runtime.seats import seats, without_models
from harness.storage.plugin_errors import describe

from .play_out import Clock, LateError, play_out

SECONDS = 2.0
"""CPU time in which the spec's own policies play a world whose `end` random agents do not reach."""


def warning(
    condition: Condition, facts: Sequence[Mapping[str, Any]], plays: Sequence[tuple[Plan, Place]]
) -> str | None:
    """What is wrong with the course of a world; None if nothing is, or the task is none.

    Args:
        facts: of the outcomes of cases that random agents played to their end.
        plays: the spec's plans: the policies of any of them may reach the end.
    """
    if not isinstance(condition.task, SteppedTask) or not facts:
        return None
    count = f"{len(facts)} {'case' if len(facts) == 1 else 'cases'}"
    if not any(one.get("timesteps") for one in facts):
        return f"warning: no agent could act in any of {count}: see `turn`, and `when` of the actions"
    if getattr(condition.task, "end", None) is None or any(one.get("end") != "limit" for one in facts):
        return None
    if any(_reaches(plan, condition) for plan, _ in plays):
        return None
    limit = f"max_timesteps: {getattr(condition.protocol, 'max_timesteps', '?')}"
    who = (
        "random agents"
        if not any(_has_policies(plan) for plan, _ in plays)
        else "random agents and the spec's policies"
    )
    return f"warning: `end` was not reached in {count}: {who} all played on to {limit}"


def _has_policies(plan: Plan) -> bool:
    return any(group.policy is not None for condition in plan.conditions for group in condition.groups)


def _reaches(plan: Plan, condition: Condition) -> bool:
    """Whether the policies of a plan reach the end of the condition's example, or cannot be asked."""
    own = next((one for one in plan.conditions if one.id == condition.id), None)
    if own is None or not any(group.policy is not None for group in own.groups):
        return False
    try:
        case = own.assign_groups(own.task.example(), plan.seed)
        choose = Clock(SECONDS).watching(without_models(seats(plan, own, case, 0)))
        outcome = play_out(plan, own, case, choose).outcome
        return outcome is None or outcome.facts.get("end") != "limit"
    except LateError:
        return True  # not known
    except Exception as error:  # a policy that fails: `simulate_policy` says so
        return bool(describe(error))
