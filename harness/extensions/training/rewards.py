"""What an episode pays: its team, each agent, each turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.api import Episode
from harness.config.plan import Condition, Job, Plan
from harness.extensions.games.game_task import GameTask
from harness.runtime.seats import Seat
from harness.tables import EpisodeScore, HeadlineSpec


@dataclass(frozen=True)
class Rewards:
    """The rewards of one episode.

    Attributes:
        team: what every agent is paid alike; part of `agents`.
        agents: agent → its reward for the whole episode, without that of single turns.
        turns: (agent, index of its turn) → the reward of that turn alone.
        parts: name of a part → its number, before weights, over all learning agents the mean; for logs.
    """

    agents: Mapping[str, float]
    turns: Mapping[tuple[str, int], float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    team: float = 0.0

    def total(self, agent: str) -> float:
        """The agent's reward for the whole episode, its turns' own included."""
        return self.agents[agent] + sum(reward for (name, _), reward in self.turns.items() if name == agent)


@dataclass(frozen=True)
class PaidEpisode:
    """An episode as rewards are paid for it.

    Attributes:
        plan: whose episode it is, with the seed of its epoch.
        job: its condition, case and repeat.
        episode: graded.
        score: its metrics.
        seats: agent → who sat there, in the agents' order.
        learners: the agents that learn.
    """

    plan: Plan
    job: Job
    episode: Episode
    score: EpisodeScore
    seats: Mapping[str, Seat]
    learners: Collection[str]


class NoRewardError(Exception):
    """An episode has no reward; the message says which number it lacks."""


class RewardRule(Protocol):
    """Says what an episode pays."""

    async def pay(self, played: PaidEpisode) -> Rewards:
        """The rewards of the learning agents. Raises `NoRewardError` where the episode lacks a number."""


class HeadlineReward:
    """The number of the spec's headline, for every agent; its negative where lower is better.

    In zero-sum games (`GameTask.zero_sum`), where that number says nothing of an agent, each agent's own return.
    """

    def __init__(self, plan: Plan) -> None:
        self.headline = HeadlineSpec.of(plan.spec.data, plan.metrics)

    async def pay(self, played: PaidEpisode) -> Rewards:
        """As `RewardRule.pay`."""
        if is_zero_sum(played.job[0]):
            returns = returns_of(played.episode)
            own = {agent: returns[agent] for agent in played.learners}
            return Rewards(own, parts={"returns": mean(own)})
        number = played.score.number(self.headline.metric)
        if number is None:
            raise NoRewardError(f"metric {self.headline.metric!r} has no number in this episode")
        reward = number if self.headline.better == "higher" else -number
        return Rewards(dict.fromkeys(played.learners, reward), parts={self.headline.metric: number}, team=reward)


def is_zero_sum(condition: Condition) -> bool:
    """Whether what one agent gets there, others lose."""
    return isinstance(condition.task, GameTask) and condition.task.zero_sum()


def returns_of(episode: Episode) -> Mapping[str, float]:
    """Agent → its return. Raises `NoRewardError` for a game that has none."""
    returns = episode.grade.get("returns")
    if not isinstance(returns, Mapping):
        raise NoRewardError("the game came to no end: agents have no returns")
    return {str(agent): float(one) for agent, one in returns.items()}


def mean(numbers: Mapping[str, float]) -> float:
    """Over all agents; 0 of none."""
    return sum(numbers.values()) / len(numbers) if numbers else 0.0
