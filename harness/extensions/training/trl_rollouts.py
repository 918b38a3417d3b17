"""Specs in TRL's `GRPOTrainer`: several learning agents by `rollout_func`, one by `environment_factory`.

    env = TrainingEnv("agentsnet_quick", limit=8)
    trainer = GRPOTrainer(
        model, reward, args=GRPOConfig(…), train_dataset=dataset(env), rollout_func=rollout_func(env)
    )

A row is an agent of a task: GRPO compares its replies in `num_generations` episodes of the same case. All agents of an
episode are played by the model that learns.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from harness.api.errors import DataError

from .conversations import TokenSample
from .environment import TrainingEnv
from .game import SteppedRollout
from .rollout import EnvTask, Rollout
from .transformers_model import TransformersModel


def dataset(env: TrainingEnv, tasks: Sequence[EnvTask] | None = None) -> Any:
    """A `datasets.Dataset` with a row for each learning agent of each task; its `prompt` names them."""
    from datasets import Dataset

    chosen = env.tasks if tasks is None else tasks
    rows = [{"prompt": _row(task.id, agent)} for task in chosen for agent in env.learners(task)]
    return Dataset.from_list(rows)


def _row(task: str, agent: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": json.dumps({"task": task, "agent": agent})}]


def reward(completions: Sequence[Any], reward: Sequence[float | None], **fields: Any) -> list[float | None]:
    """A reward function for `GRPOTrainer`: what the environment has paid; None where the episode failed."""
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

    The n-th row of a task and an agent in a batch belongs to sample n of the task. `env_mask` marks what the model
    wrote; the reward holds for the whole conversation.

    Args:
        env: whose tasks the rows name.
        max_new_tokens, temperature: of a reply; None: the trainer's max_completion_length and temperature.
        concurrency: how many episodes are open at once.
        on_rollout: is shown every episode.

    Where a prompt does not continue the tokens of what was said before, the row has the model's tokens of the last
    part only. The function raises `DataError` where an agent has several conversations: its turns begin anew.
    """

    def play(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        rows: list[tuple[str, str, int]] = []
        seen: Counter[tuple[str, str]] = Counter()
        for prompt in prompts:
            named = json.loads(prompt[-1]["content"])
            key = named["task"], named["agent"]
            rows.append((*key, seen[key]))
            seen[key] += 1
        model = TransformersModel(
            trainer.accelerator.unwrap_model(trainer.model),
            trainer.processing_class,
            max_new_tokens=max_new_tokens or trainer.args.max_completion_length,
            temperature=trainer.args.temperature if temperature is None else temperature,
        )
        size = {task: max(n for name, _, n in rows if name == task) + 1 for task, _, _ in rows}
        played: dict[tuple[str, int], Rollout] = {}
        for group in sorted({*size.values()}):
            tasks = [env.task(name) for name, own in size.items() if own == group]
            for rollout in env.batched(model, tasks, group, concurrency=concurrency):
                played[rollout.task.id, rollout.sample] = rollout
                on_rollout(rollout)
        output: dict[str, list[Any]] = {
            key: [] for key in ("prompt_ids", "completion_ids", "logprobs", "env_mask", "reward")
        }
        for task, agent, sample in rows:
            one = _sample_of(played[task, sample], agent)
            first = one.mask.index(True)
            output["prompt_ids"].append(one.token_ids[:first])
            output["completion_ids"].append(one.token_ids[first:])
            output["logprobs"].append((one.logprobs or [0.0] * len(one.mask))[first:])
            output["env_mask"].append([int(own) for own in one.mask[first:]])
            output["reward"].append(played[task, sample].paid(agent))
        return output

    return play


def _sample_of(rollout: Rollout, agent: str) -> TokenSample:
    """The agent's conversation in tokens. Raises `DataError` if it has not one."""
    own = [one for one in rollout.conversations if one.agent == agent]
    if len(own) != 1:
        message = f"{agent} has {len(own)} conversations in episode {rollout.task.id}"
        hint = "A row of TRL is one conversation: take a protocol whose agents remember their turns."
        raise DataError(message + (f" ({rollout.error})" if rollout.error else ""), hint=hint)
    return own[0].samples()[-1]


class TurnTools:
    """An environment for `environment_factory`: one agent learns, and acts by calling the tool `act`.

    `reset(task=…)` begins an episode (each row of the dataset names its task) and returns what the agent is shown.
    """

    def __init__(self, env: TrainingEnv) -> None:
        self._env = env
        self._game: SteppedRollout | None = None

    def reset(self, task: str | None = None, **row: Any) -> str:
        """Begin an episode; returns the agent's first prompt.

        Args:
            task: the id of the task; None for the first.
            row: other fields of the dataset's row.
        """
        self._close()
        self._game = self._env.start(self._env.tasks[0] if task is None else self._env.task(task))
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

    def get_reward(self) -> float:
        """What the episode has paid; an agent that has stopped before its end says nothing from there on."""
        if self._game is None:
            return 0.0
        while self._game.pending:
            self._game.answer({turn.agent: "" for turn in self._game.pending})
        rollout = self._game.rollout
        [agent] = self._env.learners(rollout.task)
        return rollout.paid(agent) or 0.0

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
    """An `environment_factory` for a spec in which one agent learns. Raises `DataError` if there are more."""
    env.single_learner()
    return lambda: TurnTools(env)


def task_dataset(env: TrainingEnv, prompt: str = "You take part in a game. Act by the tool.\n\n") -> Any:
    """A `datasets.Dataset` for `environment_factory`: a row a task. The episode's first prompt follows `prompt`."""
    from datasets import Dataset

    rows = [{"prompt": [{"role": "user", "content": prompt}], "task": task.id} for task in env.tasks]
    return Dataset.from_list(rows)
