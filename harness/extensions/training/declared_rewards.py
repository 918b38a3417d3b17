"""The rewards that a spec declares (`rewards:`), as objects: read and checked before anything is played."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness.api import Policy
from harness.api.errors import Place, SpecError, UserError, raise_all
from harness.config.plan import Plan
from harness.extensions.replay.reference import reference_of, try_policy
from harness.extensions.yaml_tasks.expressions import ExpressionError
from harness.tables import HeadlineSpec

from .agent_numbers import RETURNS, Number, idle_example, is_expression, number_of, numbers_of
from .counterfactuals import Counterfactuals, Numbers, TurnKey
from .rewards import HeadlineReward, NoRewardError, PaidEpisode, RewardRule, Rewards, is_zero_sum, mean

_PENALTIES = ("format", "length")


def reward_rule(plan: Plan, sandbox: str = "process") -> RewardRule:
    """What episodes of a plan pay: as its spec declares it, else its headline. Raises as `DeclaredRewards`."""
    declared = plan.spec.get("rewards")
    return DeclaredRewards(plan, declared, sandbox) if declared else HeadlineReward(plan)


@dataclass(frozen=True)
class _Part:
    """A number and its weight."""

    name: str
    weight: float
    number: Number


@dataclass(frozen=True)
class _TurnPart:
    """What single turns are paid. The fields are those of `rewards: {turn: …}`."""

    use: str
    numbers: Numbers
    by: Callable[[], Policy]
    draws: int
    discount: float
    end: str
    weight: float


class DeclaredRewards:
    """`rewards:` of a spec.

    Raises:
        SpecError, PluginError: with their places, for all that is wrong with it.
    """

    def __init__(self, plan: Plan, entry: Mapping[str, Any], sandbox: str = "process") -> None:
        self.plan, self.entry, self.sandbox = plan, entry, sandbox
        self.headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
        self.parts: dict[str, _Part] = {}
        self.turn: _TurnPart | None = None
        self._wrong: list[SpecError] = []
        for name in entry:
            with self._noting():
                if name == "turn":
                    self.turn = self._turn_part(entry[name])
                else:
                    self.parts[name] = self._part(name, entry[name])
        if not self._wrong:
            self._rehearse()
        raise_all(self._wrong)

    async def pay(self, played: PaidEpisode) -> Rewards:
        """As `RewardRule.pay`."""
        team, numbers = 0.0, dict[str, float]()
        own = dict.fromkeys(played.learners, 0.0)
        for name, part in self.parts.items():
            if name == "team":
                numbers[name] = part.number(played, None)
                team = part.weight * numbers[name]
                continue
            each = {agent: part.number(played, agent) for agent in played.learners}
            numbers[name] = mean(each)
            own = {agent: own[agent] + part.weight * each[agent] for agent in own}
        turns: Mapping[TurnKey, float] = {}
        if self.turn is not None:
            credits = await self._credits(self.turn, played)
            numbers["turn"] = sum(credits.values()) / len(own) if own else 0.0
            turns = {key: self.turn.weight * credit for key, credit in credits.items()}
        return Rewards({agent: team + reward for agent, reward in own.items()}, turns, numbers, team)

    async def _credits(self, part: _TurnPart, played: PaidEpisode) -> Mapping[TurnKey, float]:
        total: dict[TurnKey, float] = {}
        for draw in range(part.draws):
            whatif = Counterfactuals(played, part.by, part.numbers, draw, self.sandbox)
            if part.use == "credit":
                credits = await whatif.credits()
            else:
                credits = await whatif.shaping(part.discount, 0.0 if part.end == "zero" else None)
            for key, credit in credits.items():
                total[key] = total.get(key, 0.0) + credit / part.draws
        return total

    def _rehearse(self) -> None:
        """Note expressions that fail where agents do nothing: in an example of each kind of task and protocol."""
        kinds = {(type(one.task), type(one.protocol)): one for one in reversed(self.plan.conditions)}
        for condition in kinds.values() if any(is_expression(part.number) for part in self.parts.values()) else ():
            played = idle_example(self.plan, condition)
            if played is None:
                continue
            for name, part in self.parts.items():
                try:
                    part.number(played, None if name == "team" else next(iter(played.learners)))
                except NoRewardError as error:
                    if isinstance(failure := error.__cause__, ExpressionError):
                        what = f"{failure.message}, where agents do nothing ({condition.id})"
                        self._wrong.append(SpecError(what, place=failure.place, hint=failure.hint))

    # ------------------------------------------------------------------ reading

    def _place(self, *path: Any) -> Place:
        return self.plan.spec.place("rewards", *path)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except UserError as error:
            place = error.place or self._place()
            self._wrong.append(SpecError(error.message, place=place, hint=error.hint))

    def _part(self, name: str, entry: str | Mapping[str, Any]) -> _Part:
        number = number_of(entry, self.plan, partial(self._place, name), of_agents=name != "team")
        metric = entry if isinstance(entry, str) else str(entry["use"])
        default = -1.0 if name in _PENALTIES else self._towards(metric) if name == "team" else 1.0
        return _Part(name, _weight(entry, default), number)

    def _towards(self, metric: str) -> float:
        """Which way a metric is better, where the headline says so."""
        return -1.0 if metric == self.headline.metric and self.headline.better == "lower" else 1.0

    def _turn_part(self, entry: str | Mapping[str, Any]) -> _TurnPart:
        body: Mapping[str, Any] = {"use": entry} if isinstance(entry, str) else entry
        use, by = str(body["use"]), body.get("by", self.headline.floor)
        if by is None:
            hint = f"Say which: turn: {{use: {use}, by: POLICY}}."
            raise SpecError(
                f"{use} needs a reference policy, and the headline names no floor", place=self._place("turn"), hint=hint
            )
        for key in ("discount", "end"):
            if key in body and use == "credit":
                raise SpecError(f"credit takes no {key}:", place=self._place("turn", key), hint="shaping does.")
        of = str(body.get("of", RETURNS if all(map(is_zero_sum, self.plan.conditions)) else self.headline.metric))
        numbers = numbers_of(of, self.plan, self._place("turn", *(["of"] if "of" in body else [])))
        at = self._place("turn", "by") if "by" in body else self.plan.spec.place("headline", "floor")
        reference = reference_of(self.plan, by, at)
        try_policy(self.plan, self.plan.conditions, reference, at)
        weight = _weight(body, self._towards(of))
        end, draws = str(body.get("end", "value")), int(body.get("draws", 1))
        return _TurnPart(use, numbers, reference, draws, float(body.get("discount", 1)), end, weight)


def _weight(entry: str | Mapping[str, Any], default: float) -> float:
    return default if isinstance(entry, str) else float(entry.get("weight", default))
