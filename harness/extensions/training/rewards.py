"""What an episode pays: its team, each agent, each turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.api import Episode
from harness.config.plan import Job, Plan
from harness.tables import EpisodeScore, HeadlineSpec


@dataclass(frozen=True)
class Rewards:
    """The rewards of one episode.

    Attributes:
        agents: agent → its reward for the whole episode, what the team is paid included.
        turns: (agent, index of its turn) → the reward of that turn alone.
        parts: name of a part → its number, before weights; for logs.
    """

    agents: Mapping[str, float]
    turns: Mapping[tuple[str, int], float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)


class RewardRule(Protocol):
    """Says what an episode pays."""

    async def pay(self, job: Job, episode: Episode, score: EpisodeScore, learners: Collection[str]) -> Rewards | None:
        """The rewards of the learning agents; None where the episode has no number.

        `episode` is graded; `score` has its metrics.
        """


class HeadlineReward:
    """The number of the spec's headline, for every agent; its negative where lower is better."""

    def __init__(self, plan: Plan) -> None:
        self.headline = HeadlineSpec.of(plan.spec.data, plan.metrics)

    async def pay(self, job: Job, episode: Episode, score: EpisodeScore, learners: Collection[str]) -> Rewards | None:
        """As `RewardRule.pay`."""
        number = score.number(self.headline.metric)
        if number is None:
            return None
        reward = number if self.headline.better == "higher" else -number
        return Rewards(dict.fromkeys(learners, reward), parts={self.headline.metric: number})
