"""Episodes as environments of PettingZoo: turn by turn (AEC), or all agents at once (parallel).

from harness.extensions.training.pettingzoo_env import aec_env, parallel_env

env = parallel_env("dpbench_quick", limit=4)
observations, infos = env.reset(seed=1)
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from harness.api.errors import DataError, SetupError

from .degenerate import said
from .environment import TrainingEnv
from .game import SteppedRollout
from .learner import PendingTurn
from .rollout import EnvTask, Rollout

try:
    import numpy
    from gymnasium import spaces
    from pettingzoo import AECEnv, ParallelEnv
except ModuleNotFoundError as error:
    hint = "Install it: pip install 'mas-eval-harness[pettingzoo]'"
    raise SetupError(f"the package pettingzoo cannot be imported: {error}", hint=hint) from None

Actions = Literal["options", "text"]
"""What an action is: the index of one of the turn's legal actions, or a whole reply as text."""


class AnyText(spaces.Text):
    """Texts of any characters."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length=max_length, min_length=0)

    def contains(self, x: Any) -> bool:
        """Whether it is a text, not too long."""
        return isinstance(x, str) and len(x) <= self.max_length


class _Episodes:
    """What both environments share: which episode is played, and what its agents see.

    Args:
        env: the spec; it must stay open.
        actions: what actions are; "options" is for turns with finitely many legal actions.
        max_actions: the most legal actions of a turn.
        max_chars: observations are cut to their last characters.
    """

    def __init__(self, env: TrainingEnv, actions: Actions, max_actions: int, max_chars: int) -> None:
        if actions not in get_args(Actions):
            raise ValueError(f"there are no actions {actions!r}: they are one of {', '.join(get_args(Actions))}")
        self.env, self.actions, self.max_actions, self.max_chars = env, actions, max_actions, max_chars
        env.check_texts()
        self.agents = list(dict.fromkeys(agent for task in env.tasks for agent in env.learners(task)))
        # PettingZoo wants the same object each time, and one for each agent: each has a chance of its own.
        self.action_spaces = {agent: self.action_space() for agent in self.agents}
        self.observation_spaces = {agent: self.observation_space() for agent in self.agents}
        self.rng = random.Random()
        self.game: SteppedRollout | None = None
        self.answers: dict[str, Any] = {}
        self.seen: dict[str, str] = {}

    def action_space(self) -> spaces.Space[Any]:
        """One agent's."""
        if self.actions == "text":
            return AnyText(self.max_chars)
        return spaces.Discrete(self.max_actions)

    def observation_space(self) -> spaces.Dict:
        """One agent's: the prompt as text and as UTF-8, padded with zeros; with options, which are legal now."""
        octets = spaces.Box(0, 255, (self.max_chars,), numpy.uint8)
        shown: dict[str, spaces.Space[Any]] = {"observation": octets, "text": AnyText(self.max_chars)}
        if self.actions == "options":
            shown["action_mask"] = spaces.Box(0, 1, (self.max_actions,), numpy.int8)
        return spaces.Dict(shown)

    def begin(self, seed: int | None, options: Mapping[str, Any] | None) -> list[str]:
        """Start an episode; returns its agents."""
        self.close()
        if seed is not None:
            self.rng = random.Random(seed)
        task: EnvTask = self.rng.choice(self.env.tasks)
        given = {"epoch": self.rng.getrandbits(32), **(options or {})}
        if isinstance(name := given.get("task"), str):
            task = self.env.task(name)
        self.answers, self.seen = {}, {}
        self.game = self.env.start(task, epoch=given["epoch"])
        self.look()
        return list(self.env.learners(task))

    @property
    def pending(self) -> dict[str, PendingTurn]:
        """Agent → its turn, of those that have not acted in this batch."""
        turns = self.game.pending if self.game is not None else ()
        return {turn.agent: turn for turn in turns if turn.agent not in self.answers}

    @property
    def rollout(self) -> Rollout | None:
        """The episode, once it is over."""
        return self.game.rollout if self.game is not None and self.game.is_over else None

    def act(self, agent: str, action: Any) -> None:
        """Take an agent's action; once all that are pending have acted, the episode goes on."""
        assert self.game is not None
        turn = self.pending[agent]
        if self.actions == "options":
            legal = self.legal(turn)
            if not 0 <= int(action) < len(legal):
                raise ValueError(f"{agent} has {len(legal)} legal actions, numbered from 0: there is no {action}")
            action = said(turn.reply, legal[int(action)])
        self.answers[agent] = action
        if not self.pending:
            replies, self.answers = self.answers, {}
            self.game.answer(replies)
            self.look()

    def legal(self, turn: PendingTurn) -> Sequence[Any]:
        """The turn's legal actions. Raises `DataError` where they are not a few."""
        options = turn.reply.options
        if options is None:
            message = f"turn {turn.turn!r} of {turn.agent} has no list of legal actions"
            raise DataError(message, hint='Make the environment with actions="text".')
        if len(options) > self.max_actions:
            message = (
                f"turn {turn.turn!r} of {turn.agent} has {len(options)} legal actions, more than {self.max_actions}"
            )
            raise DataError(message, hint=f"Make the environment with max_actions={len(options)} or more.")
        return options

    def look(self) -> None:
        """What the agents that act next have been shown since they last spoke."""
        self.seen |= {agent: turn.shown[-self.max_chars :] for agent, turn in self.pending.items()}

    def observe(self, agent: str) -> dict[str, Any]:
        """What an agent was shown last, and its legal actions: none while it has no turn."""
        text, turn = self.seen.get(agent, ""), self.pending.get(agent)
        octets = numpy.zeros(self.max_chars, numpy.uint8)
        raw = numpy.frombuffer(text.encode("utf-8", "replace")[-self.max_chars :], numpy.uint8)
        octets[: len(raw)] = raw
        shown = {"observation": octets, "text": text}
        if self.actions == "options":
            shown["action_mask"] = mask = numpy.zeros(self.max_actions, numpy.int8)
            mask[: len(self.legal(turn)) if turn is not None else 0] = 1
        return shown

    def info(self, agent: str) -> dict[str, Any]:
        """`pending`: whether the agent has a turn; then `messages`, the conversation, and `legal`, the actions' names.
        At the end `rollout`, and `error`: why it pays nothing, or None."""
        turn, rollout = self.pending.get(agent), self.rollout
        known: dict[str, Any] = {"pending": turn is not None}
        if turn is not None:
            known |= {"messages": list(turn.messages), "legal": list(turn.reply.options or ())}
        return known | ({} if rollout is None else {"rollout": rollout, "error": rollout.error or rollout.unpaid})

    def rewards(self, agents: Sequence[str]) -> dict[str, float]:
        """What the episode has paid, turns included; 0 where it pays nothing."""
        rollout = self.rollout
        return {agent: float((rollout.paid(agent) if rollout is not None else None) or 0.0) for agent in agents}

    @property
    def failed(self) -> bool:
        """Whether the episode is over and pays nothing: it failed, or lacks a number."""
        return self.rollout is not None and self.rollout.rewards is None

    def close(self) -> None:
        """End the present episode."""
        if self.game is not None:
            self.game.close()


class HarnessParallelEnv(ParallelEnv[str, dict[str, Any], Any]):
    """A spec as a parallel environment of PettingZoo; `parallel_env` makes it.

    `reset(seed=…)` draws a task and all chance of the episode; without a seed both are drawn anew each time.
    `options={"task": id}` names the task, `{"epoch": 0}` asks for the chance of `harness eval`. Agents without a turn
    have an `action_mask` of zeros, and what they do is ignored. The reward comes at the end; an episode that failed,
    or lacks a number, is truncated, and `error` in its infos says why.
    """

    def __init__(self, env: TrainingEnv, actions: Actions, max_actions: int, max_chars: int) -> None:
        self._episodes = _Episodes(env, actions, max_actions, max_chars)
        self.metadata = {"name": env.plan.spec.name, "render_modes": []}
        self.render_mode = None
        self.possible_agents = self._episodes.agents
        self.agents: list[str] = []

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._episodes.action_spaces[agent]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._episodes.observation_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Start an episode."""
        self.agents = self._episodes.begin(seed, options)
        return self._looks(self.agents), self._infos(self.agents)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, dict[str, Any]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """All agents that have a turn act."""
        agents, one = self.agents, self._episodes
        for agent in list(one.pending):
            one.act(agent, actions[agent])
        over = one.rollout is not None
        ended = dict.fromkeys(agents, over and not one.failed), dict.fromkeys(agents, over and one.failed)
        self.agents = [] if over else agents
        return self._looks(agents), one.rewards(agents), *ended, self._infos(agents)

    def _looks(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        return {agent: self._episodes.observe(agent) for agent in agents}

    def _infos(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        return {agent: self._episodes.info(agent) for agent in agents}

    def close(self) -> None:
        """End the episode and close the spec's environment."""
        self._episodes.close()
        self._episodes.env.close()


class HarnessAECEnv(AECEnv[str, dict[str, Any], Any]):
    """A spec as an environment of PettingZoo in which one agent acts after another; `aec_env` makes it.

    Simultaneous turns are asked one by one, and none shows what the others of its batch did. Otherwise as
    `HarnessParallelEnv`.
    """

    def __init__(self, env: TrainingEnv, actions: Actions, max_actions: int, max_chars: int) -> None:
        super().__init__()
        self._episodes = _Episodes(env, actions, max_actions, max_chars)
        self.metadata = {"name": env.plan.spec.name, "render_modes": []}
        self.render_mode = None
        self.possible_agents = self._episodes.agents
        self.agents: list[str] = []

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self._episodes.action_spaces[agent]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self._episodes.observation_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start an episode."""
        self.agents = self._episodes.begin(seed, options)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._go_on()

    def observe(self, agent: str) -> dict[str, Any]:
        """What an agent was shown last, and its legal actions."""
        return self._episodes.observe(agent)

    def step(self, action: Any) -> None:
        """The selected agent acts."""
        agent, one = self.agent_selection, self._episodes
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        one.act(agent, action)
        self._clear_rewards()
        if one.rollout is not None:
            self.rewards = one.rewards(self.agents)
            (self.truncations if one.failed else self.terminations).update(dict.fromkeys(self.agents, True))
        self._go_on()
        self._accumulate_rewards()

    def _go_on(self) -> None:
        self.infos = {agent: self._episodes.info(agent) for agent in self.agents}
        self.agent_selection = next(iter(self._episodes.pending), self.agents[0] if self.agents else "")

    def close(self) -> None:
        """End the episode and close the spec's environment."""
        self._episodes.close()
        self._episodes.env.close()


def parallel_env(
    spec: Any, *, actions: Actions = "options", max_actions: int = 64, max_chars: int = 8192, **options: Any
) -> HarnessParallelEnv:
    """A spec as a parallel environment.

    Args:
        spec: as of `TrainingEnv`, which takes the `options`.
        actions: "options": an action is the index of a legal action; "text": it is the reply.
        max_actions: the most legal actions of a turn.
        max_chars: an observation is cut to its last characters.
    """
    return HarnessParallelEnv(TrainingEnv(spec, **options), actions, max_actions, max_chars)


def aec_env(
    spec: Any, *, actions: Actions = "options", max_actions: int = 64, max_chars: int = 8192, **options: Any
) -> HarnessAECEnv:
    """A spec as an environment in which one agent acts after another. The arguments are those of `parallel_env`."""
    return HarnessAECEnv(TrainingEnv(spec, **options), actions, max_actions, max_chars)
