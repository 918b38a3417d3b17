"""A spec as an environment of OpenEnv: one agent learns, the others are declared.

app = create_app("my_spec", learn=["me"], opponents={"others": "random"})   # for uvicorn; `me` is a group of one agent
"""

from __future__ import annotations

import random
from typing import Any

from harness.api import Engine
from harness.api.errors import DataError, SetupError

from .environment import TrainingEnv
from .game import SteppedRollout
from .rollout import Epoch

try:
    from fastapi import FastAPI
    from openenv.core.env_server import Environment, create_fastapi_app
    from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
    from pydantic import Field
except ModuleNotFoundError as error:
    hint = "Install it: pip install 'mas-eval-harness[openenv]'"
    raise SetupError(f"the package openenv cannot be imported: {error}", hint=hint) from None


class ReplyAction(Action):
    """What the agent says in its turn."""

    text: str = Field(description="the reply, in the form that the prompt asks for")


class TurnObservation(Observation):
    """What the agent is shown."""

    prompt: str = Field(default="", description="what it was shown since it last spoke")
    messages: list[dict[str, Any]] = Field(default_factory=list, description="the whole conversation")
    turn: str = Field(default="", description="the name of the turn")
    legal: list[Any] | None = Field(default=None, description="all legal actions, where they are few")
    metrics: dict[str, float | None] = Field(default_factory=dict, description="of the episode, at its end")
    error: str | None = Field(default=None, description="why the episode pays nothing, at its end")


class EpisodeState(State):
    """Where the episode is."""

    task: str = Field(default="", description="the id of the task")


class OpenEnvEnvironment(Environment[ReplyAction, TurnObservation, EpisodeState]):
    """One learning agent's side of a spec's episodes.

    `reset(seed=…)` draws a task and all chance of the episode; without a seed both are drawn anew each time.
    `reset(task=id)` names the task, `reset(epoch=0)` asks for the chance of `harness eval`. The reward comes with the
    last observation: that of the agent and of its turns. Raises `DataError` where several agents learn.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, spec: Any, **options: Any) -> None:
        super().__init__()
        self.env = TrainingEnv(spec, **options)
        self.env.single_learner()
        self.env.check_texts()
        self.rng = random.Random()
        self.game: SteppedRollout | None = None
        self._state = EpisodeState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task: str | None = None,
        epoch: Epoch | None = None,
        **more: Any,
    ) -> TurnObservation:
        """Begin an episode."""
        if seed is not None:
            self.rng = random.Random(seed)
        drawn, chance = self.rng.choice(self.env.tasks), self.rng.getrandbits(32)
        chosen = drawn if task is None else self.env.task(task)
        if self.game is not None:
            self.game.close()
        self.game = self.env.start(chosen, epoch=chance if epoch is None else epoch)
        self._state = EpisodeState(episode_id=episode_id or chosen.id, task=chosen.id)
        return self._shown()

    def step(self, action: ReplyAction, timeout_s: float | None = None, **more: Any) -> TurnObservation:
        """The agent replies; returns its next turn, or the end. Raises `RuntimeError` where no turn waits for it."""
        if self.game is None or not self.game.pending:
            where = "no episode has begun" if self.game is None else "the episode is over"
            raise RuntimeError(f"{where}: reset begins one")
        self.game.answer({turn.agent: action.text for turn in self.game.pending})
        self._state.step_count += 1
        return self._shown()

    @property
    def state(self) -> EpisodeState:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """The spec's name and description."""
        spec = self.env.plan.spec
        return EnvironmentMetadata(name=spec.name, description=str(spec.get("description", spec.name)), version="1")

    def close(self) -> None:
        """End the episode and what plays it."""
        if self.game is not None:
            self.game.close()
        self.env.close()

    def _shown(self) -> TurnObservation:
        assert self.game is not None
        if self.game.pending:
            [turn] = self.game.pending
            options = turn.reply.options
            return TurnObservation(
                prompt=turn.shown,
                messages=[dict(one) for one in turn.messages],
                turn=turn.turn,
                legal=None if options is None else list(options),
            )
        rollout = self.game.rollout
        [agent] = self.env.learners(rollout.task)
        numbers = {name: rollout.score.number(name) for name in rollout.score.numbers}
        return TurnObservation(
            done=True, reward=rollout.paid(agent), metrics=numbers, error=rollout.error or rollout.unpaid
        )


def create_app(spec: Any, max_sessions: int = 16, **options: Any) -> FastAPI:
    """A server's application, for uvicorn; each session has an environment of its own.

    Args:
        spec: as of `TrainingEnv`, which takes the `options`.
        max_sessions: the most sessions at once.

    Raises `DataError` for an engine among the opponents: it would be shared by sessions, each of which closes its own.
    """
    given = options.get("opponents") or {}
    if engines := [name for name, one in given.items() if isinstance(one, Engine)]:
        hint = "Declare it under models: of the spec; each session then has its own."
        raise DataError(f"opponents: {engines[0]!r} is an engine, which sessions cannot share", hint=hint)
    OpenEnvEnvironment(spec, **options).close()  # mistakes show now
    return create_fastapi_app(
        lambda: OpenEnvEnvironment(spec, **options),
        ReplyAction,
        TurnObservation,
        max_concurrent_envs=max_sessions,
        state_cls=EpisodeState,
    )
