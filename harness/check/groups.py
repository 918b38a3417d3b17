"""Whether the groups of a plan find their agents, as far as that is known before cases are read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.config.plan import Condition, Plan
from harness.errors import SpecError


def misassigned(plan: Plan) -> Iterator[SpecError]:
    """Yield why groups (`agents:`) find no agents: each group once.

    Where the protocol brings the agents, the task's example says who plays. Where cases do, an example may be smaller
    than they are: the first case decides.
    """
    seen: set[str] = set()
    for condition in plan.conditions:
        problem = _problem(condition, plan) if len(condition.groups) > 1 else None
        if problem is not None and str(problem.place) not in seen:
            seen.add(str(problem.place))
            yield problem


def _problem(condition: Condition, plan: Plan) -> SpecError | None:
    try:
        example = condition.task.example()
        try:
            condition.assign_groups(example, plan.seed)
        except SpecError as error:
            if condition.protocol.possible_agents(example) != example.agents:
                return error
            first = next(iter(condition.task.cases(1, plan.seed)))
        else:
            return None
    except Exception:  # what a plugin does wrong, and data that is not here, are for `examine` and for the run
        return None
    try:
        condition.assign_groups(first, plan.seed)
    except SpecError as error:
        return error
    return None
