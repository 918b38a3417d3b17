"""Specs in TRL's `GRPOTrainer`: several learning agents by `rollout_func`, one by `environment_factory`.

    env = TrainingEnv("agentsnet_quick", limit=8)
    trainer = GRPOTrainer(
        model, reward, args=GRPOConfig(…), train_dataset=dataset(env), rollout_func=rollout_func(env)
    )

A row is an agent of a task: GRPO compares its replies in `num_generations` episodes of the same case. All agents of an
episode are played by the model that learns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .environment import TrainingEnv
from .game import SteppedRollout
from .rollout import EnvTask, Rollout
from .rows import named, prompts, row_of
from .transformers_model import TransformersModel


def dataset(env: TrainingEnv, tasks: Sequence[EnvTask] | None = None) -> Any:
    """A `datasets.Dataset` with a row for each learning agent of each task; its `prompt` names them."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": prompt} for prompt in prompts(env, tasks)])


def reward(completions: Sequence[Any], reward: Sequence[float | None], **fields: Any) -> list[float | None]:
    """A reward function for `GRPOTrainer`: what the environment has paid; None where the episode failed, which TRL
    leaves out of the group's baseline, with an advantage of 0."""
    return list(reward)


def rollout_func(
    env: TrainingEnv,
    *,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    concurrency: int = 64,
    on_rollout: Callable[[Rollout], None] = lambda rollout: None,
) -> Callable[[list[Any], Any], dict[str, list[Any]]]:
    """A `rollout_func` that plays the episodes of a batch's rows.

    `env_mask` marks what the model wrote; the reward holds for the whole conversation. The trainer's step is the epoch:
    a task that comes again has another chance.

    Args:
        env: whose tasks the rows name.
        max_new_tokens, temperature: of a reply; None: the trainer's max_completion_length and temperature.
        concurrency: how many episodes are open at once.
        on_rollout: is shown every episode.

    The function raises `DataError` as `rows.row_of`.
    """

    def play(batch: list[Any], trainer: Any) -> dict[str, list[Any]]:
        model = TransformersModel(
            trainer.accelerator.unwrap_model(trainer.model),
            trainer.processing_class,
            max_new_tokens=max_new_tokens or trainer.args.max_completion_length,
            temperature=trainer.args.temperature if temperature is None else temperature,
        )
        chosen = named(batch)
        samples = {(task, sample): (env.task(task), sample) for task, _, sample in chosen}
        step = trainer.state.global_step  # all processes have the same, and a run that goes on the next
        rollouts = env.batched(model, samples.values(), concurrency=concurrency, epoch=step)
        played = dict(zip(samples, rollouts, strict=True))
        for rollout in played.values():
            on_rollout(rollout)
        rows = [row_of(played[task, sample], agent) for task, agent, sample in chosen]
        return {
            "prompt_ids": [row.prompt_ids for row in rows],
            "completion_ids": [row.completion_ids for row in rows],
            "logprobs": [row.logprobs for row in rows],
            "env_mask": [row.mask for row in rows],
            "reward": [row.reward for row in rows],
        }

    return play


class _Batches:
    """Counts the batches that TRL plays with a pool of environments.

    TRL resets as many of the pool as a batch has rows, each once: one that is reset again begins the next batch.
    """

    def __init__(self) -> None:
        self._number = 0
        self._reset: set[TurnTools] = set()

    def of(self, one: TurnTools) -> int:
        """The number of the batch, from 0, in which an environment is reset now."""
        if one in self._reset:
            self._number += 1
            self._reset.clear()
        self._reset.add(one)
        return self._number


class TurnTools:
    """An environment for `environment_factory`: one agent learns, and acts by calling the tool `act`.

    `reset(task=…)` begins an episode (each row of the dataset names its task) and returns what the agent is shown. Its
    epoch is the number of the batch, so a group shares its chance.
    """

    def __init__(self, env: TrainingEnv, batches: _Batches) -> None:
        self._env = env
        self._batches = batches
        self._game: SteppedRollout | None = None

    def reset(self, task: str | None = None, **row: Any) -> str:
        """Begin an episode; returns the agent's first prompt.

        Args:
            task: the id of the task; None for the first.
            row: other fields of the dataset's row.
        """
        chosen = self._env.tasks[0] if task is None else self._env.task(task)
        self._close()
        self._game = self._env.start(chosen, epoch=self._batches.of(self))
        return self._shown()

    def act(self, reply: str) -> str:
        """Act in your turn.

        Args:
            reply: What you say or do in this turn, in the form that the task asks for.

        Returns:
            What happens next, up to your next turn.
        """
        if self._game is None or not self._game.pending:
            return "The episode is over."
        self._game.answer({turn.agent: reply for turn in self._game.pending})
        return self._shown()

    def get_reward(self) -> float | None:
        """What the episode has paid; an agent that has stopped before its end says nothing from there on.

        None where the episode failed, as for `reward`.
        """
        if self._game is None:
            return None
        while self._game.pending:
            self._game.answer({turn.agent: "" for turn in self._game.pending})
        rollout = self._game.rollout
        [agent] = self._env.learners(rollout.task)
        return rollout.paid(agent)

    def _shown(self) -> str:
        assert self._game is not None
        if not self._game.pending:
            return "The episode is over."
        [turn] = self._game.pending
        return turn.shown

    def _close(self) -> None:
        if self._game is not None:
            self._game.close()


def environment_factory(env: TrainingEnv) -> Callable[[], TurnTools]:
    """An `environment_factory` for a spec in which one agent learns. Raises `DataError` if there are more,
    `SpecError` where rewards count tokens."""
    env.single_learner()
    env.check_texts()
    batches = _Batches()
    return lambda: TurnTools(env, batches)


def task_dataset(env: TrainingEnv, prompt: str = "You take part in a game. Act by the tool.\n\n") -> Any:
    """A `datasets.Dataset` for `environment_factory`: a row a task. The episode's first prompt follows `prompt`."""
    from datasets import Dataset

    rows = [{"prompt": [{"role": "user", "content": prompt}], "task": task.id} for task in env.tasks]
    return Dataset.from_list(rows)
