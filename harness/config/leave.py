"""What a spec would run or send that is not one's own; programs that models write run with leave and confined only."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from harness import approvals
from harness.approvals import NeededApproval
from harness.config.spec import Spec
from harness.engine_api import Engine, RunsPrograms
from harness.errors import SetupError
from harness.manifests import offers

if TYPE_CHECKING:
    from harness.config.plan import Plan


def engine_approvals(spec: Spec, name: str, engine: Engine) -> list[NeededApproval]:
    """What a model of the spec would run or send that one's own documents give no leave for."""
    documents = functools.partial(spec.documents, "models", name)
    return list(approvals.foreign(approvals.of(engine), documents, f"models: {name}"))


# ------------------------------------------------------------------------------------------ programs


def check_execution(plan: Plan, allowed: bool, provider: str, *, playing: bool = True) -> None:
    """Nothing that a spec would run or send, and no program that a model wrote, without leave (`harness.approvals`).

    Warns of a fence with holes, which the person who gives the command asked for.

    Args:
        plan: what is to be run.
        allowed: what that person says.
        provider: who builds the fence around programs.
        playing: whether engines are asked; False where recorded answers are only graded.

    Raises:
        NotApprovedError: something has no leave.
        SetupError: the fence lacks something on this machine.
    """
    grading = sorted({type(c.task).__name__ for c in plan.conditions if c.task.grading == "executes"})
    if grading and not allowed:
        raise SetupError(
            f"{' and '.join(grading)} runs programs that models wrote, to grade them",
            hint="If you want that, give --allow_code_execution; docs/how-to/sandbox.md describes its protection.",
        )
    played = [part for condition in plan.conditions for part in (condition.task, condition.protocol)]
    with approvals.allowing(allowed):
        for name in sorted(plan.declared) if playing else ():
            needed = engine_approvals(plan.spec, name, plan.engines[name])
            approvals.require(needed, plan.spec.place("models", name))
        approvals.require(one for thing in (*played, *plan.metrics.values()) for one in approvals.of(thing))
    programs = [e for e in plan.engines.values() if isinstance(e, RunsPrograms) and e.programs and playing]
    if grading or any(engine.confined for engine in programs):
        warning = _confinement("check")(provider)
        if warning:
            warnings.warn(warning, stacklevel=2)


def confined(provider: str) -> AbstractContextManager[None]:
    """Within it programs that models wrote run behind the provider's fence. Raises `SetupError` where there is none."""
    fence: AbstractContextManager[None] = _confinement("using")(provider)
    return fence


def _confinement(what: str) -> Callable[[str], Any]:
    """A function of the extension that confines programs, by its name in the manifest. Raises `SetupError`."""
    if (offer := offers("confinement").get(what)) is None:
        raise SetupError("programs that models wrote run confined only, and no installed extension confines them")
    function: Callable[[str], Any] = offer.load_function()
    return function
