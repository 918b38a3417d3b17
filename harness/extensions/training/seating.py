"""Who plays which group in training: the trainer's model, or somebody else in the place of the model under test."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import Engine, Policy
from harness.api.errors import KEY, Place, SpecError, UserError, near, raise_all
from harness.config.building import Reference, make, parts_of
from harness.config.plan import Condition, Group, Plan
from harness.config.spec import Variant
from harness.plugins import parameters

from .declared_rewards import reward_rule
from .league import ENGINE, League, league_of
from .training_keys import OpponentsEntry

_OF_GROUP = "opponent of "
"""What the name of an engine begins with that plays one group alone."""


@dataclass(frozen=True)
class Seating:
    """Who plays.

    Attributes:
        plan: with somebody else in the place of the model under test in groups that do not learn.
        learn: the groups that learn.
        pooled: the groups that opponents from the pool play.
        league: the pool.
        own: engines by the names that the plan's groups use.
    """

    plan: Plan
    learn: frozenset[str]
    pooled: frozenset[str]
    league: League | None
    own: Mapping[str, Engine]

    @property
    def engines(self) -> dict[str, Engine]:
        """The engines of opponents, those of the pool among them."""
        pool = self.league.pool.values() if self.league is not None else ()
        return {**self.own, **{ENGINE + one.name: one.engine for one in pool if one.engine is not None}}


def seated(plan: Plan, learn: str | Iterable[str] | None, opponents: Mapping[str, Any]) -> Seating:
    """Who plays, by the arguments of a `TrainingEnv`, else by the spec.

    Raises `SpecError`: an unknown group, or one that others play; no group learns; no player for one; a wrong pool.
    """
    learning = _learning(plan, learn)
    rest = {g.name for condition in plan.conditions for g in condition.groups if _is_under_test(g)} - learning
    given_by_group = {} if "pool" in opponents else opponents
    by_group: Mapping[str, Reference | Engine] = {k: v for k, v in given_by_group.items() if v is not None}
    entry = opponents if "pool" in opponents else plan.spec.get("opponents")
    if entry is not None:
        wrong = parameters.problems(entry, OpponentsEntry)
        raise_all(SpecError(f"opponents: {what}", place=plan.spec.place("opponents", *path)) for path, what in wrong)
        if not rest:
            hint = f"Say which groups do: learn: [{', '.join(sorted(learning)[:1])}]. Further ones stand under agents:."
            message = "opponents: there is nobody for them to play: all groups of the model under test learn"
            raise SpecError(message, place=plan.spec.place("opponents", KEY), hint=hint)
    if unknown := by_group.keys() - rest:
        name = min(unknown)
        why = "it learns" if name in learning else "the model under test plays no such group"
        raise SpecError(f"opponents: {name!r}: {why}", place=plan.spec.place("agents"), hint=near(name, rest))
    pooled = frozenset(rest - by_group.keys()) if entry is not None else frozenset()
    league = league_of(plan, entry) if entry is not None else None
    engines: dict[str, Engine] = {}
    policies: dict[str, Callable[[], Policy]] = {}
    for name in sorted(pooled | by_group.keys()):
        if name in pooled:
            assert league is not None
            first = next(iter(league.pool.values()))  # until one is drawn
            if first.policy is not None:
                policies[name] = first.policy
            continue
        given = by_group[name]
        if isinstance(given, Engine):
            engines[_OF_GROUP + name] = given
            continue
        policies[name] = _policy(plan, given, plan.spec.place("agents", name))
    variants = plan.spec.variants() if rest - pooled - by_group.keys() else []

    def seat(condition: Condition, group: Group) -> Group:
        if group.name not in rest or not _is_under_test(group):
            return group
        if group.name in policies:
            return replace(group, model=None, policy=policies[group.name])
        if _OF_GROUP + group.name in engines or group.name in pooled:
            return replace(group, model=_OF_GROUP + group.name)
        return replace(group, model=None, policy=_baseline(plan, variants, condition, group.name))

    def seats_of(condition: Condition) -> Condition:
        return replace(condition, groups=tuple(seat(condition, group) for group in condition.groups))

    whole = replace(plan, conditions=tuple(map(seats_of, plan.conditions)))
    return Seating(whole, learning, pooled, league, engines)


def _learning(plan: Plan, learn: str | Iterable[str] | None) -> frozenset[str]:
    """The groups that learn. Raises `SpecError` for one that there is not, or that a policy or another model plays."""
    groups = [group for condition in plan.conditions for group in condition.groups]
    own = {group.name for group in groups if _is_under_test(group)}
    declared = learn is None and plan.spec.get("learn") is not None
    given = plan.spec.get("learn") or () if learn is None else [learn] if isinstance(learn, str) else learn
    names = list(dict.fromkeys(given))
    for i, name in enumerate(names):
        if name not in own:
            there = name in {group.name for group in groups}
            why = f"no model under test plays group {name!r}" if there else f"there is no group {name!r} under agents:"
            place = plan.spec.place("learn", i) if declared else plan.spec.place("agents")
            raise SpecError(f"learn: {why}", place=place, hint=near(name, own))
    if not own:
        message = "no model under test plays here, so nothing can learn"
        raise SpecError(message, place=plan.spec.place("agents"), hint="Let a group under agents: have model: model.")
    if learn is not None and not names:
        hint = f"Name groups, or leave learn= out for all that can: {', '.join(sorted(own))}."
        raise SpecError("learn: no group learns", place=plan.spec.place("agents"), hint=hint)
    return frozenset(names or own)


def _baseline(plan: Plan, variants: Sequence[Variant], condition: Condition, name: str) -> Callable[[], Policy]:
    """The policy that plays a group where no model does: its own baseline, or that of the spec. Raises `SpecError`."""
    labels = condition.labels
    variant = next(one for one in variants if all(labels.get(key) == value for key, value in one.labels.items()))
    body = (variant.data.get("agents") or {}).get(name)
    own = body.get("baseline") if isinstance(body, Mapping) else None
    given = own or variant.data.get("baseline")
    if given is None:
        message = f"no player is given for group {name!r}, which does not learn, and the spec has no baseline"
        hint = f"Say who does: opponents={{{name!r}: 'a policy, or an engine'}}."
        raise SpecError(message, place=plan.spec.place("agents"), hint=hint)
    return _policy(plan, given, plan.spec.place("agents", name) if own else plan.spec.place("baseline"))


def _policy(plan: Plan, given: Reference, place: Place) -> Callable[[], Policy]:
    cls, arguments = parts_of("policies", given, plan.project, lambda *path: place)
    policy: Policy = make(cls, arguments, lambda *path: place)  # wrong values show now
    return functools.partial(type(policy), **arguments)


def _is_under_test(group: Group) -> bool:
    return group.policy is None and (group.model or "model") == "model"


def check_training(plays: Sequence[tuple[Plan, Place]]) -> Iterator[UserError]:
    """What is wrong with `learn:`, `opponents:` and `rewards:` of a spec, for `harness validate`."""
    plan, _ = plays[0]
    for read in (lambda: seated(plan, None, {}), lambda: reward_rule(plan)):
        try:
            if plan.spec.data.keys() & {"learn", "opponents", "rewards"}:
                read()
        except UserError as error:
            yield error
