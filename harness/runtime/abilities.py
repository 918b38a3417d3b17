"""What engines must be able to do for a plan, known before anything is asked."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from harness.api import Case, Turn
from harness.config.plan import Condition, Group, Job, Plan
from harness.engine_api import CallsTools, ComputesLikelihoods, ContinuesText, Engine
from harness.errors import SpecError, UserError
from harness.replies.likelihoods import likelihoods_of
from harness.runtime.steps import drive


def lacking(plan: Plan, episodes: Sequence[Job]) -> Iterator[SpecError]:
    """Yield what an engine of the plan, whose episodes are these, cannot do and agents of it need: each once for it.

    An engine that can do all costs nothing here. For others an episode of each condition is played with idle agents,
    and for one that computes no log-likelihoods all cases are looked at.
    """
    cases: dict[str, list[Case]] = defaultdict(list)
    for name, engine in plan.engines.items():
        own = ((c, g) for c in plan.conditions for g in c.groups if g.policy is None and (g.model or "model") == name)
        # Where each player sits changes nothing.
        playing = [*{(c.origin, g.name): (c, g) for c, g in own}.values()]
        sets = next((group.prompts for _, group in playing if group.prompts.continues), None)
        if sets is not None and not isinstance(engine, ContinuesText):
            what = f"prompt set {sets.name!r} gives a text to continue; the engine of {engine.model} continues no text"
            yield _refusal(plan, what, "prompts", ContinuesText)
        if not isinstance(engine, ComputesLikelihoods):
            if not cases:
                for condition, case, repeat in episodes:
                    cases[condition.origin] += [case] if repeat == 0 else []
            scored = next((turn for c, g in playing for turn in _scored(plan, c, g, cases[c.origin])), None)
            if scored is not None:
                what = (
                    f"{scored} is scored by log-likelihoods; the engine of {engine.model} computes no log-likelihoods"
                )
                yield _refusal(plan, what, "task", ComputesLikelihoods)
        yield from _toolless(plan, engine, playing)
    yield from unconstrained(plan)


def _toolless(plan: Plan, engine: Engine, playing: Sequence[tuple[Condition, Group]]) -> Iterator[SpecError]:
    """Why agents of an engine cannot be offered the tools that a turn of theirs has."""
    problem = engine.tools_problem if isinstance(engine, CallsTools) else "it offers no tools to a model"
    seen: set[tuple[object, ...]] = set()
    for condition, group in playing:
        key = (repr(condition.protocol), type(condition.task), group.name, group.prompts.name)
        if (problem is None and not group.prompts.continues) or key in seen:
            continue
        seen.add(key)
        turn = next((turn for turn in _turns(plan, condition, group) if turn.reply.tools), None)
        if turn is None:
            continue
        what = f"turn {turn.name!r} offers tools (calls: tools)"
        if problem is None:
            what = f"{what}; prompt set {group.prompts.name!r} gives a text to continue, and tools need a conversation"
            yield SpecError(what, place=plan.spec.place("prompts"), hint="Say calls: text, or take another prompt set.")
        elif isinstance(engine, CallsTools):
            what = f"{what}; the engine of {engine.model} offers none: {problem}"
            yield SpecError(what, place=plan.spec.place("protocol"), hint="Set it, or say calls: text.")
        else:
            yield _refusal(plan, f"{what}; the engine of {engine.model} offers none", "protocol", CallsTools)
        return


def unconstrained(plan: Plan) -> Iterator[SpecError]:
    """Why `constrained: true` changes nothing: none of the turns has a form that decoding could keep to."""
    seen: set[tuple[object, ...]] = set()
    why: dict[str, str] = {}
    for condition, group in ((c, g) for c in plan.conditions if c.constrained for g in c.groups if g.policy is None):
        if (key := (repr(condition.protocol), id(condition.task), group.name)) in seen:
            continue
        seen.add(key)
        for turn in _turns(plan, condition, group):
            if turn.reply.constraint() is not None:
                return
            scored, tools = likelihoods_of(turn.reply) is not None, bool(turn.reply.tools)
            what = "{} is scored by log-likelihoods" if scored else "{} calls tools" if tools else "any text answers {}"
            mend = "" if scored else ", or say calls: text" if tools else ", or give the answer a form, such as letter"
            why[what.format(f"turn {turn.name!r}")] = f"Leave it out{mend}."
    if why:
        what = f"constrained: true has nothing to keep to: {', '.join(why)}"
        yield SpecError(what, place=plan.spec.place("constrained"), hint=next(iter(why.values())))


def _turns(plan: Plan, condition: Condition, group: Group) -> Iterator[Turn]:
    """The turns of the group's agents in the task's example."""
    with contextlib.suppress(Exception):  # what a plugin does wrong is for `examine` and for the run
        example = condition.assign_groups(condition.task.example(), plan.seed)
        for turn in drive(condition.protocol, condition.task, example).turns():
            if condition.group_of(example, turn.agent) is group:
                yield turn


def _scored(plan: Plan, condition: Condition, group: Group, cases: Iterable[Case]) -> Iterable[str]:
    """Scored turns of the group's agents, in words."""
    yield from (f"turn {t.name!r}" for t in _turns(plan, condition, group) if likelihoods_of(t.reply) is not None)
    task = condition.task
    with contextlib.suppress(Exception):
        for case in cases:
            if any(likelihoods_of(task.reply(case, agent)) is not None for agent in case.agents):
                yield f"case {case.id!r}"


def _refusal(plan: Plan, what: str, key: str, ability: type) -> SpecError:
    names = []
    for entry in plan.project.listing("engines"):
        with contextlib.suppress(UserError):
            if issubclass(plan.project.load("engines", entry.name), ability):
                names.append(entry.name)
    return SpecError(what, place=plan.spec.place(key), hint=f"Engines that can: {', '.join(names)}.")
