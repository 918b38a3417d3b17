"""Who plays which agent of an episode: the one place that gives agents their groups' players, prompts and seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.api import Action, Case, Engine, Facts, Task, Turn, derive_seed
from harness.config.plan import Condition, Group, Plan, agent_seed
from harness.engines.sampling import normalize
from harness.runtime.players import ModelPlayer, Player

if TYPE_CHECKING:
    from harness.runtime.policy_players import PolicyPlayer


@dataclass(frozen=True)
class Seat:
    """An agent of an episode, and what it is played with.

    Attributes:
        agent: the agent.
        group: its group: prompts, and a model's name or a policy.
        case: the case, with its groups assigned.
        seed: of the player's own chance.
        case_seed: the seed for policies that know the case: the same for all agents and conditions.
        sampling: generation_kwargs of a model.
        structured_output: whether a model decodes within the reply's form.
    """

    agent: str
    group: Group
    case: Case
    seed: int
    case_seed: int
    sampling: Facts
    structured_output: bool

    @property
    def model(self) -> str:
        """The name in the spec of the model that plays it, if one does."""
        return self.group.model or "model"

    def player(self, engines: Mapping[str, Engine], episode: str) -> Player:
        """A new player. `engines`: by the names that groups use; `episode`: the id, first part of request ids."""
        if self.group.policy is not None:
            return self.policy_player()
        engine = engines[self.model]
        prompts = self.group.prompts
        name = f"{episode}/{self.agent}"
        return ModelPlayer(engine, prompts, self.sampling, self.structured_output, name, self.seed)

    def policy_player(self) -> PolicyPlayer:
        """A new player with the group's policy. Raises `TypeError` if a model plays."""
        from harness.runtime.policy_players import PolicyPlayer  # what models alone do not need

        return PolicyPlayer(lambda: self.group.make_policy(self.agent, self.case, self.case_seed), self.seed)


def seats(plan: Plan, condition: Condition, case: Case, repeat: int) -> dict[str, Seat]:
    """Agent → its seat, for all agents of an episode, in their order.

    `case` has its groups assigned (`Condition.assign_groups`). Raises what a plugin raises.
    """
    agents = condition.protocol.possible_agents(case)
    own = normalize(case.sampling) if case.sampling else {}
    has_policies = any(group.policy is not None for group in condition.groups)
    case_seed = seed_of(plan.seed, condition.task, case, repeat) if has_policies else 0
    seated: dict[str, Seat] = {}
    for agent in agents:
        group = condition.group_of(case, agent)
        seed = agent_seed(plan, condition, case, repeat, agent)
        sampling = {**own, **group.sampling} if own else group.sampling
        seated[agent] = Seat(agent, group, case, seed, case_seed, sampling, condition.structured_output)
    return seated


def seed_of(seed: int, task: Task, case: Case, repeat: int) -> int:
    """The seed for policies that know a case. It does not depend on the condition, so all methods face the same panel.

    It depends on the question: rows of two splits may have the same ids, and a panel that is calibrated on one of them
    must not know how it will do on the other.
    """
    return derive_seed(seed, "simulated", case.id, task.question_text(case), repeat)


def without_models(seated: Mapping[str, Seat]) -> Callable[[Turn], Action]:
    """Actions without models: policies choose, and agents of models are idle."""
    players = {agent: seat.policy_player() for agent, seat in seated.items() if seat.group.policy is not None}

    def choose(turn: Turn) -> Action:
        player = players.get(turn.agent)
        return player.decide(turn).action if player is not None else turn.reply.noop

    return choose
