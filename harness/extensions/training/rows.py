"""Episodes for trainers whose batches are rows of one prompt and one completion each, such as TRL, SkyRL and verl.

A row is a learning agent of a task. Its n-th occurrence in a batch belongs to sample n of the task, so that agents of
one task play together, and methods that compare the completions of a prompt compare replies of one agent to one case.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.api.errors import DataError

from .conversations import TokenSample
from .environment import TrainingEnv
from .learner import Generate
from .rollout import EnvTask, Epoch, Rollout

Prompt = list[dict[str, str]]
"""Messages of a dataset's row."""
SILENT = (0,)
"""Stands for the tokens of an agent that said nothing: trainers take no empty rows."""


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One conversation in tokens. All lists but the first have one entry a token of the completion.

    Attributes:
        prompt_ids: the first prompt.
        completion_ids: all that follows: replies, and what the agent was shown between them.
        mask: 1 for what the model generated, else 0.
        logprobs: of what it generated, else 0.0.
        reward: what the agent is paid; None if the episode pays nothing. The mask is then 0 throughout, so that
            nothing is learned from it.
    """

    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    logprobs: list[float]
    reward: float | None


def prompts(env: TrainingEnv, tasks: Iterable[EnvTask] | None = None) -> list[Prompt]:
    """A prompt for each learning agent of each task (default: all); it names both, for `named`."""
    chosen = env.tasks if tasks is None else tasks
    return [
        [{"role": "user", "content": json.dumps({"task": task.id, "agent": agent})}]
        for task in chosen
        for agent in env.learners(task)
    ]


def named(batch: Iterable[Sequence[Mapping[str, str]]]) -> list[tuple[str, str, int]]:
    """(id of the task, agent, sample) of each row of a batch. Raises `DataError` for other prompts."""
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for prompt in batch:
        try:
            content = json.loads(prompt[-1]["content"])
            key = content["task"], content["agent"]
            if not all(isinstance(one, str) for one in key):
                raise TypeError
        except (ValueError, TypeError, LookupError, RecursionError):
            message = f"a row of the dataset names no task and agent: {prompt!r:.100}"
            raise DataError(
                message, hint="Make the dataset from harness.extensions.training.rows.prompts(env)."
            ) from None
        rows.append((*key, seen[key]))
        seen[key] += 1
    return rows


def row_of(rollout: Rollout, agent: str) -> TokenRow:
    """The agent's conversation as a row.

    Where a prompt does not continue the tokens of what was said before, the row has the last part of the conversation
    only. An agent that said nothing, as in an episode that failed at once, has a row of `SILENT` tokens, all masked.
    Raises `DataError` where the agent has several conversations, since its turns begin anew.
    """
    own = [one for one in rollout.conversations if one.agent == agent]
    if not own:
        return TokenRow(list(SILENT), list(SILENT), [0], [0.0], rollout.paid(agent))
    if len(own) > 1:
        message = f"{agent} has {len(own)} conversations in episode {rollout.task.id}"
        hint = "A row is one conversation: take a protocol whose agents remember their turns."
        raise DataError(message, hint=hint)
    samples: list[TokenSample] = own[0].samples()
    if not samples:
        raise DataError(f"the replies of {agent} have no token ids", hint="Return them from generate.")
    last = samples[-1]
    first = last.mask.index(True) if any(last.mask) else len(last.mask)
    paid = rollout.paid(agent)
    return TokenRow(
        last.token_ids[:first],
        last.token_ids[first:],
        [int(one and paid is not None) for one in last.mask[first:]],
        (last.logprobs or [0.0] * len(last.mask))[first:],
        paid,
    )


async def play_rows(
    env: TrainingEnv,
    batch: Iterable[Sequence[Mapping[str, str]]],
    generate: Generate,
    epoch: Epoch | None = None,
) -> list[TokenRow]:
    """Play the episodes of a batch's rows side by side, with a coroutine function that writes the replies.

    All rows have a reward, since trainers take no batch without: where an episode pays nothing, the mean of the same
    agent's other rows in this task, which leaves their baseline where it is; 0.0 without any. `epoch`: as in
    `TrainingEnv.jobs`. Raises as `row_of`.
    """
    chosen = named(batch)
    for task, agent, _ in chosen:
        if agent not in env.learners(env.task(task)):
            raise DataError(f"a row names {agent!r}, which does not learn in task {task!r}")
    samples = list(dict.fromkeys((task, sample) for task, _, sample in chosen))
    jobs = env.jobs([(env.task(task), sample) for task, sample in samples], epoch=epoch)
    plays = (env.rollout(task, generate, sample, epoch=epoch) for task, sample, epoch in jobs)
    played = await asyncio.gather(*plays)
    by_key = dict(zip(samples, played, strict=True))
    rows = [row_of(by_key[task, sample], agent) for task, agent, sample in chosen]
    paid: dict[tuple[str, str], list[float]] = {}
    for (task, agent, _), row in zip(chosen, rows, strict=True):
        if row.reward is not None:
            paid.setdefault((task, agent), []).append(row.reward)
    means = {key: statistics.fmean(rewards) for key, rewards in paid.items()}
    return [
        row if row.reward is not None else replace(row, reward=means.get((task, agent), 0.0))
        for (task, agent, _), row in zip(chosen, rows, strict=True)
    ]
