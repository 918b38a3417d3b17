"""Opponents of a model that learns: a pool of policies, engines and earlier checkpoints, one drawn for each group."""

from __future__ import annotations

import functools
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from harness.api import Engine, Policy, derive_seed
from harness.api.errors import Place, SpecError, near
from harness.config import building
from harness.config.building import Reference, policy_name
from harness.config.plan import Plan
from harness.extensions.replay.reference import reference_of, try_policy
from harness.runtime.seats import Seat

By = Literal["uniform", "recent", "rating"]
ENGINE: Final = "pool: "
"""What the name of an opponent's engine begins with."""
START, STEP, SCALE = 1000.0, 32.0, 400.0
"""Elo: the first rating, the most that a game changes, and by how much one who wins 10 of 11 is rated higher."""
_REMEMBERED = 100_000
"""Draws that are remembered."""
NEWEST = 0.8
"""How often `recent` draws the newest opponent (OpenAI Five: Berner et al. 2019, Section 3.3)."""


@dataclass(frozen=True)
class Opponent:
    """Who may play the agents that do not learn: a policy or an engine."""

    name: str
    policy: Callable[[], Policy] | None = None
    engine: Engine | None = None

    def seat(self, seat: Seat) -> Seat:
        """The seat with this opponent in it."""
        model = None if self.policy is not None else ENGINE + self.name
        return replace(seat, group=replace(seat.group, model=model, policy=self.policy))


@dataclass
class League:
    """A pool of opponents, and who is drawn.

    Args:
        by: `uniform`; `recent`: the newest four times out of five, else another one; `rating`: those of like strength
            more often, with weight p(1 − p), where p is the chance to beat them by their Elo ratings (AlphaStar's
            prioritized fictitious self-play, Vinyals et al. 2019).
        seed: of the draws.

    Attributes:
        pool: name → opponent, the newest last.
        ratings: name → Elo rating, by the results of this league alone.
        own: the rating of the model that learns.
    """

    by: By
    seed: int
    pool: dict[str, Opponent] = field(default_factory=dict)
    ratings: dict[str, float] = field(default_factory=dict)
    own: float = START
    _drawn: OrderedDict[tuple[str, int | str], str] = field(default_factory=OrderedDict)

    def add(self, opponent: Opponent) -> None:
        """One more; a checkpoint begins with the rating of the model that learns. Raises `ValueError` for a name that
        another one has."""
        if opponent.name in self.pool:
            raise ValueError(f"there is an opponent {opponent.name!r} already")
        self.ratings[opponent.name] = self.own
        self.pool[opponent.name] = opponent

    def chance(self, name: str) -> float:
        """The chance of the model that learns to beat an opponent, by their ratings."""
        return float(1 / (1 + 10 ** ((self.ratings[name] - self.own) / SCALE)))

    def meet(self, task: str, epoch: int | str) -> str:
        """Whom a task meets in an epoch: whoever asks for the same epoch again gets the same one."""
        if (task, epoch) not in self._drawn:
            rng = random.Random(derive_seed(self.seed, "opponent", task, epoch))
            self._drawn[task, epoch] = self._draw(rng)
            if len(self._drawn) > _REMEMBERED:
                self._drawn.popitem(last=False)
        return self._drawn[task, epoch]

    def _draw(self, rng: random.Random) -> str:
        names = [*self.pool]
        if self.by == "recent" and len(names) > 1:
            return names[-1] if rng.random() < NEWEST else rng.choice(names[:-1])
        if self.by == "rating":
            chances = [self.chance(name) for name in names]
            return rng.choices(names, [p * (1 - p) for p in chances])[0]
        return rng.choice(names)

    def record(self, name: str, result: float) -> None:
        """A game against an opponent: 1 won, 0.5 drawn, 0 lost."""
        change = STEP * (result - self.chance(name))
        self.own += change
        self.ratings[name] -= change


def league_of(plan: Plan, entry: Mapping[str, Any]) -> League:
    """The league that `opponents:` declares.

    Raises:
        SpecError, PluginError: with their places: there is no such policy or model, two have one name, a policy cannot
            play, or ratings are asked for where agents get no returns.
    """

    def at(*path: Any) -> Place:
        return plan.spec.place("opponents", *path)

    by: By = entry.get("by", "uniform")
    if by == "rating":
        lacking = next((one for one in plan.conditions if "returns" not in one.task.grades), None)
        if lacking is not None:
            message = f"by: rating needs games that pay agents returns; {lacking.id!r} has none, so nobody wins it"
            raise SpecError(message, place=at("by"), hint="`uniform` and `recent` draw in any task.")
    league = League(by, plan.seed)
    for i, one in enumerate(entry["pool"]):
        opponent = _opponent(plan, one, functools.partial(at, "pool", i))
        if opponent.name in league.pool:
            raise SpecError(
                f"two opponents are called {opponent.name!r}", place=at("pool", i), hint="Give one a label:."
            )
        league.add(opponent)
    return league


def opponent_of(plan: Plan, name: str, given: Reference | Engine, place: Place) -> Opponent:
    """An opponent that is given: an engine, or a policy as YAML has it. Raises as `league_of`."""
    if isinstance(given, Engine):
        return Opponent(name, engine=given)
    policy = reference_of(plan, given, place)
    try_policy(plan, plan.conditions, policy, place)
    return Opponent(name, policy=policy)


def _opponent(plan: Plan, one: str | Mapping[str, Any], at: Callable[..., Place]) -> Opponent:
    models = plan.spec.get("models", {})
    if isinstance(one, str):
        one = {"model": one} if one in models else {"policy": one}
    if len(own := one.keys() & {"model", "policy"}) != 1:
        what = "has a model and a policy: one of them" if own else "names neither a policy nor a model"
        raise SpecError(f"an opponent {what}", place=at())
    if "policy" in one:
        name = str(one.get("label") or policy_name(one["policy"]))
        return opponent_of(plan, name, one["policy"], at("policy") if "policy" in own else at())
    if (model := str(one["model"])) not in models:
        raise SpecError(f"there is no model {model!r} under models:", place=at("model"), hint=near(model, models))
    built = building.engine(models[model], plan.project, functools.partial(plan.spec.place, "models", model))
    return Opponent(str(one.get("label") or model), engine=built)


def result(returns: Mapping[str, float], own: Sequence[str], others: Sequence[str]) -> float | None:
    """1 where learning agents got more than the others on average, 0 where less, else 0.5; None without both."""
    if not own or not others:
        return None
    mine, theirs = (sum(returns[agent] for agent in some) / len(some) for some in (own, others))
    return 0.5 if mine == theirs else float(mine > theirs)
