"""What engines must be able to do for a plan, known before anything is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from harness.api import Ability, CallsTools, Case, ContinuesText, Engine, Request, Turn
from harness.api.errors import SpecError, UserError
from harness.config.plan import Condition, Group, Job, Plan
from harness.plugins.manifests import offers
from harness.runtime.players import ModelPlayer
from harness.runtime.seats import seats, without_models
from harness.runtime.steps import drive

_Players = Sequence[tuple[Condition, Group]]


def lacking(plan: Plan, episodes: Sequence[Job]) -> Iterator[SpecError]:
    """Yield what an engine of the plan, whose episodes are these, cannot do and agents of it need: each once for it.

    An engine that can do all costs nothing here. For others an episode of each protocol and kind of task is played with
    idle agents, and for one without an `Ability` that extensions offer all cases are looked at.
    """
    for name, engine in plan.engines.items():
        own = [(c, g) for c in plan.conditions for g in c.groups if g.policy is None and (g.model or "model") == name]
        apart = {(repr(c.protocol.play), type(c.task), g.name, g.prompts.name): (c, g) for c, g in own}
        playing = [*apart.values()]
        sets = next((group.prompts for _, group in playing if group.prompts.continues), None)
        if sets is not None and not isinstance(engine, ContinuesText):
            what = f"prompt set {sets.name!r} gives a text to continue; the engine of {engine.model} continues no text"
            yield _refusal(plan, what, "prompts", ContinuesText)
        missing = tuple(_missing(engine))
        unwritten = (one for one in _unwritten(plan, playing, own, episodes) if issubclass(one[1], missing))
        if missing and (first := next(unwritten, None)) is not None:
            who, ability = first
            what = f"{who} {ability.need}; the engine of {engine.model} {ability.lack}"
            yield _refusal(plan, what, "task", ability)
        yield from _toolless(plan, engine, playing)
        yield from _unheld(plan, engine, own, episodes)
        yield from _unanswerable(plan, name, engine, own, episodes)
    yield from unconstrained(plan)


def _missing(engine: Engine) -> Iterator[type[Ability]]:
    """The abilities that extensions offer and an engine lacks."""
    for offer in () if engine.any_request else offers("abilities").values():
        with contextlib.suppress(UserError):  # no form has an ability that cannot be loaded
            ability = offer.load()
            if isinstance(ability, type) and issubclass(ability, Ability) and not isinstance(engine, ability):
                yield ability


def _unwritten(plan: Plan, apart: _Players, own: _Players, jobs: Sequence[Job]) -> Iterator[tuple[str, type[Ability]]]:
    """The turns and cases in which no text is written: which, in words, and what answers them."""
    for condition, group in apart:
        for turn in turns_of(plan, condition, group):
            if (ability := turn.reply.ability) is not None:
                yield f"turn {turn.name!r}", ability
    origins = {condition.origin for condition, _ in own}
    for condition, case, repeat in jobs:
        with contextlib.suppress(Exception):
            if repeat == 0 and condition.origin in origins:
                for reply in [condition.task.reply(case, agent) for agent in case.agents]:
                    if reply.ability is not None:
                        yield f"case {case.id!r}", reply.ability


def _toolless(plan: Plan, engine: Engine, playing: _Players) -> Iterator[SpecError]:
    """Why agents of an engine cannot be offered the tools that a turn of theirs has."""
    problem = engine.tools_problem if isinstance(engine, CallsTools) else "it offers no tools to a model"
    key = "protocol" if plan.spec.get("reply_via") is None else "reply_via"
    for condition, group in playing:
        if problem is None and not group.prompts.continues:
            continue
        turn = next((turn for turn in turns_of(plan, condition, group) if turn.reply.tools), None)
        if turn is None:
            continue
        what = f"turn {turn.name!r} offers tools (reply_via: tool_calls)"
        if problem is None:
            what = f"{what}; prompt set {group.prompts.name!r} gives a text to continue, and tools need a conversation"
            yield SpecError(
                what, place=plan.spec.place("prompts"), hint="Say reply_via: text, or take another prompt set."
            )
        elif isinstance(engine, CallsTools):
            what = f"{what}; the engine of {engine.model} offers none: {problem}"
            yield SpecError(what, place=plan.spec.place(key), hint="Mend that, or say reply_via: text.")
        else:
            yield _refusal(plan, f"{what}; the engine of {engine.model} offers none", key, CallsTools)
        return


def _unheld(plan: Plan, engine: Engine, own: _Players, jobs: Sequence[Job]) -> Iterator[SpecError]:
    """Why an engine cannot hold a reply to the form of a turn, where `structured_output: true` asks for it."""
    if type(engine).constraint_problem is Engine.constraint_problem:  # it holds replies to all forms, or to none
        return
    cases: dict[str, list[Case]] = {}
    for condition, case, repeat in jobs:
        if condition.structured_output and repeat == 0:
            cases.setdefault(condition.id, []).append(case)
    known = set()
    for condition, group in own:
        for kind in _unlike(condition, cases.get(condition.id, ())) if condition.structured_output else ():
            for turn in turns_of(plan, condition, group, kind):
                constraint = turn.reply.constraint()
                if constraint is None or turn.reply.tools or (key := repr(constraint)) in known:
                    continue
                known.add(key)
                if (problem := engine.constraint_problem(constraint)) is not None:
                    what = f"turn {turn.name!r} is held to its form, and the engine of {engine.model} cannot: {problem}"
                    yield SpecError(
                        what, place=plan.spec.place("structured_output"), hint="Or leave structured_output: true out."
                    )
                    return


def _unanswerable(plan: Plan, name: str, engine: Engine, own: _Players, jobs: Sequence[Job]) -> Iterator[SpecError]:
    """Why the engine cannot answer a request, where it knows before: of the first case of each condition."""
    if (check := engine.request_check) is None:
        return
    firsts = {condition.id: case for condition, case, repeat in reversed(jobs)}
    for condition in {id(condition): condition for condition, _ in own}.values():
        for turn, request in _requests(plan, condition, firsts.get(condition.id), name, engine):
            if (problem := check(request)) is not None:
                why, hint = problem
                what = f"turn {turn.name!r} of {turn.agent} {why}"
                yield SpecError(what, place=plan.spec.place("task"), hint=hint)
                return


def _requests(
    plan: Plan, condition: Condition, case: Case | None, name: str, engine: Engine
) -> Iterator[tuple[Turn, Request]]:
    """The requests to an engine in an episode in which models say nothing, each until the next is asked for."""
    with contextlib.suppress(Exception):  # as in `_turns`
        played = condition.assign_groups(condition.task.example() if case is None else case, plan.seed)
        seated = seats(plan, condition, played, 0)
        asked = {agent: seat for agent, seat in seated.items() if seat.group.policy is None}
        players = {a: s.player(plan.engines, "") for a, s in asked.items() if (s.group.model or "model") == name}
        drawn = drive(condition.protocol, condition.task, played, without_models(seated))
        for turn in drawn.turns():
            player = players.get(turn.agent)
            if isinstance(player, ModelPlayer):
                yield turn, player.preview(turn)
                player.thread.add("assistant", "")


def _unlike(condition: Condition, cases: Sequence[Case]) -> Iterator[Case | None]:
    """The task's example (None), and a case of each other kind of form that the task's replies have."""
    yield None
    kinds = set()
    for case in cases:
        kind: Any = None
        with contextlib.suppress(Exception):  # as in `turns_of`
            kind = tuple(sorted({str([*(condition.task.reply(case, a).constraint() or ())]) for a in case.agents}))
        if kind not in kinds:
            kinds.add(kind)
            yield case


def unconstrained(plan: Plan) -> Iterator[SpecError]:
    """Why `structured_output: true` changes nothing: none of the turns has a form that decoding could keep to."""
    playing = [(c, g) for c in plan.conditions if c.structured_output for g in c.groups if g.policy is None]
    apart = {(repr(c.protocol.play), id(c.task), g.name): (c, g) for c, g in playing}
    why: dict[str, str] = {}
    for turn in (turn for condition, group in apart.values() for turn in turns_of(plan, condition, group)):
        if turn.reply.constraint() is not None:
            return
        ability, tools = turn.reply.ability, bool(turn.reply.tools)
        what = f"{{}} {ability.need}" if ability else "{} calls tools" if tools else "any text answers {}"
        mend = "" if ability else ", or say reply_via: text" if tools else ", or give the answer a form, such as letter"
        why[what.format(f"turn {turn.name!r}")] = f"Leave it out{mend}."
    if why:
        what = f"structured_output: true has nothing to keep to: {', '.join(why)}"
        yield SpecError(what, place=plan.spec.place("structured_output"), hint=next(iter(why.values())))


def turns_of(plan: Plan, condition: Condition, group: Group, case: Case | None = None) -> Iterator[Turn]:
    """The turns of the group's agents in a case; None: in the task's example."""
    with contextlib.suppress(Exception):  # what a plugin does wrong is for `check_plan` and for the run
        example = condition.assign_groups(condition.task.example() if case is None else case, plan.seed)
        for turn in drive(condition.protocol, condition.task, example).turns():
            if condition.group_of(example, turn.agent) is group:
                yield turn


def _refusal(plan: Plan, what: str, key: str, ability: type) -> SpecError:
    names = []
    for entry in plan.project.listing("engines"):
        with contextlib.suppress(UserError):
            kind = plan.project.load("engines", entry.name)
            if kind.any_request or issubclass(kind, ability):
                names.append(entry.name)
    return SpecError(what, place=plan.spec.place(key), hint=f"Engines that can: {', '.join(names)}.")
