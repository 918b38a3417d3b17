"""One episode in which a trainer's model plays the learning agents, by the runtime of `harness eval`."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.api import Case, Engine, Episode, Move, Outcome, Policy, derive_seed
from harness.config.plan import Condition, Plan, episode_id, protocol_seed
from harness.runtime.episode import STOPS, play
from harness.runtime.players import Player
from harness.runtime.scoring import grade, labels, score, turns_of, usage_of
from harness.runtime.seats import Seat, seed_of
from harness.runtime.steps import Steps
from harness.storage import UNFINISHED
from harness.storage.plugin_errors import describe
from harness.tables import EpisodeScore

from .conversations import AgentConversation
from .learner import ByPolicy, Learner, TrainerError
from .rewards import NoRewardError, PaidEpisode, Rewards

if TYPE_CHECKING:
    from .environment import TrainingEnv


Epoch = int | str
"""Which pass over the tasks an episode belongs to: 0 has the chance of `harness eval`, each other one its own."""


@dataclass(frozen=True)
class EnvTask:
    """An episode that can be played: a case under a condition.

    Attributes:
        condition: its cell of the spec's matrix.
        case: its case, with the groups assigned.
        repeat: which repeat of the case it is: another chance of the environment.
    """

    condition: Condition
    case: Case
    repeat: int = 0

    @property
    def id(self) -> str:
        """`condition/case/repeat`, as in runs."""
        return episode_id(self.condition, self.case, self.repeat)


@dataclass(frozen=True)
class Rollout:
    """An episode that was played.

    Attributes:
        task: what was played.
        sample: which of the group of episodes it is that share the environment's chance, from 0.
        episode: the moves, the outcome and the grade.
        score: the spec's metrics of it.
        conversations: those of the learning agents.
        rewards: what it pays; None if it failed or has no number.
        unpaid: why an episode that did not fail has no rewards: which number it lacks.
        opponents: group → the name of the opponent from the pool that played it.
        epoch: the pass over the tasks whose chance it had.
    """

    task: EnvTask
    sample: int
    episode: Episode
    score: EpisodeScore
    conversations: tuple[AgentConversation, ...]
    rewards: Rewards | None = None
    unpaid: str | None = None
    opponents: Mapping[str, str] = field(default_factory=dict)
    epoch: Epoch = 0

    @property
    def id(self) -> str:
        """Its id, as in `episode` of a turn's seat: no other rollout has the same task, sample and epoch."""
        return self.episode.id

    @property
    def error(self) -> str | None:
        """Why it failed; None if it did not."""
        return self.score.error

    def paid(self, agent: str) -> float | None:
        """All that a learning agent is paid, its single turns included; None if the episode pays nothing."""
        return None if self.rewards is None or agent not in self.rewards.agents else self.rewards.total(agent)


def by_policy(
    seat: Seat, make: Callable[[], Policy], plan: Plan, condition: Condition, case: Case, repeat: int
) -> Seat:
    """The seat with a policy in it, also one that knows the case."""
    group = replace(seat.group, model=None, policy=make)
    return replace(seat, group=group, case_seed=seed_of(plan.seed, condition.task, case, repeat))


@dataclass
class RolloutRun:
    """An episode as it is played.

    Args:
        env: whose it is.
        task: what is played.
        sample: which of its group.
        epoch: which pass over the tasks.
        learner: writes the replies of the learning agents.
        opponents: group → the name of its opponent from the pool.
        on_move: called when an agent's turn is over.

    Attributes:
        waiting: the learning agents whose turns of the present batch are not over.
        raised: what of the trainer's function has ended the episode.
    """

    env: TrainingEnv
    task: EnvTask
    sample: int
    epoch: Epoch
    learner: Learner
    opponents: Mapping[str, str] = field(default_factory=dict)
    on_move: Callable[[], None] = lambda: None
    batches: list[list[Move]] = field(default_factory=list)
    raised: BaseException | None = None
    _over: set[tuple[int, str]] = field(default_factory=set)

    @property
    def waiting(self) -> Collection[str]:
        game, learners = self.learner.game, self.learner.groups
        if game is None or game.batch is None:
            return ()
        return {t.agent for t in game.batch if t.agent in learners and (game.number, t.agent) not in self._over}

    async def play(self) -> Rollout:
        """Play it to its end, score it and pay its rewards.

        What a plugin or the trainer's function raises fails this episode alone. Raises `TrainerError`, and what stops
        a run: an engine that died, a sandbox that is missing.
        """
        task, env, plan, outcome, error = self.task, self.env, self._plan, None, None
        job = task.condition, task.case, task.repeat
        try:
            outcome = await self._moves()
        except (*STOPS, TrainerError):
            raise
        except (Exception, SystemExit) as failure:
            error = describe(failure)
            self.raised = failure if any(failure is one for one in self.learner.raised) else None
        columns = labels(plan, task.condition, task.case)
        facts = task.condition.id, task.case.id, task.repeat, columns, task.case.roles, self.batches, outcome
        episode = Episode(self.learner.episode, *facts, error=error)
        if task.condition.task.grading != "quick":  # others continue meanwhile
            episode = await asyncio.to_thread(grade, episode, task.condition, task.case, provider=env.sandbox)
        else:
            episode = grade(episode, task.condition, task.case)
        asked = turns_of(episode, task.condition, task.case)
        usage = usage_of(episode, task.condition, task.case, {})
        truth = task.condition.uses_ground_truth
        scored = score(episode, plan.metrics, truth, turns=asked, usage=usage)
        rewards = unpaid = None
        if scored.error is None:
            try:
                learners = tuple(self.learner.groups)
                rewards = await env.reward_rule.pay(PaidEpisode(plan, job, episode, scored, self._seats(), learners))
            except NoRewardError as why:
                unpaid = str(why)
        conversations = tuple(self._conversations(rewards))
        return Rollout(task, self.sample, episode, scored, conversations, rewards, unpaid, self.opponents, self.epoch)

    @functools.cached_property
    def _plan(self) -> Plan:
        """The plan with the seed of the epoch, which all chance of an episode derives from; its cases stay."""
        plan = self.env.plan
        return plan if self.epoch == 0 else replace(plan, seed=derive_seed(plan.seed, "epoch", self.epoch))

    def _seats(self) -> dict[str, Seat]:
        """Agent → who sits there."""
        return self.env.seats(self._plan, self.task, self.opponents)

    def _conversations(self, rewards: Rewards | None) -> list[AgentConversation]:
        own = self.learner.conversations({} if rewards is None else rewards.turns)
        return own if rewards is None else [replace(one, reward=rewards.agents.get(one.agent)) for one in own]

    async def _moves(self) -> Outcome:
        task, plan = self.task, self._plan
        job = task.condition, task.case, task.repeat
        engines: Mapping[str, Engine] = self.env.engines
        players: dict[str, Player] = {}
        for agent, seat in self._seats().items():
            if agent in self.learner.groups and isinstance(self.learner.generate, ByPolicy):
                players[agent] = by_policy(seat, self.learner.generate.make, plan, *job).policy_player()
            elif agent in self.learner.groups:
                seed = derive_seed(seat.seed, "sample", self.sample) if self.sample else seat.seed
                players[agent] = replace(seat, seed=seed).player({seat.model: self.learner}, self.learner.episode)
            else:
                players[agent] = seat.player(engines, task.id)
        self.learner.game = game = Steps(
            task.condition.protocol, task.condition.task, task.case, random.Random(protocol_seed(plan, *job))
        )

        def note(batch: int, position: int, index: int, move: Move) -> None:
            if move.error_kind != UNFINISHED:
                self._over.add((batch, move.agent))
                self.on_move()

        return await play(game, players, {}, note, self.batches.append, task.condition.limits)
