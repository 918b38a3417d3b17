"""What engines must be able to do for a plan, known before anything is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from harness.api import Turn
from harness.config.plan import Condition, Group, Plan
from harness.engine_api import ComputesLikelihoods, ContinuesText
from harness.errors import SpecError, UserError
from harness.replies.likelihoods import likelihoods_of

from .conformance import drive


def lacking(plan: Plan) -> Iterator[SpecError]:
    """Yield what an engine of the plan cannot do and agents of it need: each once for an engine.

    An engine that computes log-likelihoods costs nothing here. For one that does not, all cases are looked at, and an
    episode of each condition is played with idle agents.
    """
    for name, engine in plan.engines.items():
        playing = [
            (c, g) for c in plan.conditions for g in c.groups if g.policy is None and (g.model or "model") == name
        ]
        sets = next((group.prompts for _, group in playing if group.prompts.continues), None)
        if sets is not None and not isinstance(engine, ContinuesText):
            what = f"prompt set {sets.name!r} gives a text to continue; the engine of {engine.model} continues no text"
            yield _refusal(plan, what, "prompts", ContinuesText)
        if not isinstance(engine, ComputesLikelihoods):
            scored = next((turn for c, g in playing for turn in _scored(plan, c, g)), None)
            if scored is not None:
                what = (
                    f"{scored} is scored by log-likelihoods; the engine of {engine.model} computes no log-likelihoods"
                )
                yield _refusal(plan, what, "task", ComputesLikelihoods)


def _scored(plan: Plan, condition: Condition, group: Group) -> Iterable[str]:
    """Scored turns of the group's agents, in words."""
    task = condition.task
    with contextlib.suppress(Exception):  # what a plugin does wrong is for `examine` and for the run
        example = condition.assign_groups(task.example(), plan.seed)

        def ours(turn: Turn) -> bool:
            return condition.group_of(example, turn.agent) is group and likelihoods_of(turn.reply) is not None

        yield from (f"turn {turn.name!r}" for turn in drive(condition.protocol, task, example).turns() if ours(turn))
        for case in task.cases(plan.limit, plan.seed):
            if any(likelihoods_of(task.reply(case, agent)) is not None for agent in case.agents):
                yield f"case {case.id!r}"


def _refusal(plan: Plan, what: str, key: str, ability: type) -> SpecError:
    names = []
    for entry in plan.project.listing("engines"):
        with contextlib.suppress(UserError):
            if issubclass(plan.project.load("engines", entry.name), ability):
                names.append(entry.name)
    return SpecError(what, place=plan.spec.place(key), hint=f"Engines that can: {', '.join(names)}.")
