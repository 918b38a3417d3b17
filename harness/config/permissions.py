"""Whether what a spec would run or send is permitted. Programs that models write run confined, and only if allowed."""

from __future__ import annotations

import functools
import json
import re
import warnings
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from harness.api import Engine
from harness.api.errors import SetupError
from harness.api.printable import clean_name
from harness.config.spec import Spec
from harness.plugins import approvals
from harness.plugins.approvals import NotApprovedError
from harness.plugins.lookup import part
from harness.plugins.needed_approval import NeededApproval

if TYPE_CHECKING:
    from harness.config.plan import Plan

_CONFINED = "what confines programs that models wrote, which run confined only,"


def engine_approvals(spec: Spec, name: str, engine: Engine) -> list[NeededApproval]:
    """What a model of the spec would run or send that the user's own documents do not permit."""
    documents = functools.partial(spec.documents, "models", name)
    return list(approvals.foreign(approvals.of(engine), documents, f"models: {in_quotes(name)}"))


def in_quotes(text: str) -> str:
    """A text of a spec within a sentence: in quotes, unless it is a plain word, so that it cannot pass for ours."""
    return text if re.fullmatch(r"[\w./-]{1,60}", text) else json.dumps(clean_name(text), ensure_ascii=False)


def check_execution(plan: Plan, allowed: bool, provider: str, *, playing: bool = True) -> None:
    """Check that all that a spec would run or send is approved (`plugins.approvals`), programs of models included.

    Warns if the confinement has holes that the user asked for.

    Args:
        plan: what is to be run.
        allowed: whether the user allows execution (`--allow_code_execution`).
        provider: the name of what confines programs.
        playing: whether engines are asked; False where recorded answers are only graded.

    Raises:
        NotApprovedError: something is not approved.
        SetupError: this machine lacks something that the provider needs.
    """
    grading = sorted({type(c.task).__name__ for c in plan.conditions if c.task.grading == "executes"})
    if grading and not allowed:
        raise SetupError(
            f"{' and '.join(grading)} runs programs that models wrote, to grade them",
            hint="If you want that, give --allow_code_execution; docs/how-to/sandbox.md describes its protection.",
        )
    with approvals.allowing(allowed):
        _require_approved(plan, playing)
    if grading or (playing and any(engine.confined for engine in plan.engines.values())):
        warning = part("confinement_warning", _CONFINED)(provider)
        if warning:
            warnings.warn(warning, stacklevel=2)


def _require_approved(plan: Plan, playing: bool, *, programs: bool = True) -> None:
    played = [part for condition in plan.conditions for part in (condition.task, condition.protocol)]
    for name in sorted(plan.declared) if playing else ():
        entry = plan.entry(name)
        needed = engine_approvals(plan.spec, entry, plan.engines[name])
        if not programs:  # another one every time, so that no digest stands for it
            needed = [one for one in needed if one.digest]
        approvals.require(needed, plan.spec.place("models", entry))
    approvals.require(one for thing in (*played, *plan.metrics.values()) for one in approvals.of(thing))
    if playing and not all(map(approvals.may_read_all, plan.spec.documents())):
        from harness.config.foreign_data import readings  # where nothing is asked, nothing of the data leaves

        approvals.require(readings(plan.spec, plan.project), plan.spec.place())


def lacking(plan: Plan) -> NotApprovedError | None:
    """What `check_execution` would refuse before models are asked; None if nothing.

    Programs that models write are left out: only the command that runs them can permit them.
    """
    try:
        _require_approved(plan, playing=True, programs=False)
    except NotApprovedError as error:
        return error
    return None


def confined(provider: str) -> AbstractContextManager[None]:
    """Within this context, the provider confines programs that models wrote. Raises `SetupError` if it cannot."""
    context: AbstractContextManager[None] = part("confinement", _CONFINED)(provider)
    return context
