"""Reinforcement: the decoder plays groups of episodes, and what was paid above the group's mean becomes likelier."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import torch
from model import Decoder, Words

from harness.api import Completion
from harness.extensions.training import EnvTask, PendingTurn, Rollout, TrainingEnv

Pair = tuple[tuple[int, ...], tuple[int, ...]]
"""A prompt and a reply, in token ids."""


def writer(
    decoder: Decoder, words: Words, chance: torch.Generator | None
) -> Callable[[list[PendingTurn]], list[Completion]]:
    """What `TrainingEnv.batched` asks for replies. `chance`: as in `Decoder.write`."""

    def write(turns: list[PendingTurn]) -> list[Completion]:
        prompts = [words.prompt(turn.messages) for turn in turns]
        return [
            Completion(
                words.decode(ids[:-1] if ids[-1] == words.end else ids),
                prompt_token_ids=tuple(prompt),
                token_ids=tuple(ids),
                logprobs=tuple(min(0.0, log) for log in logs),
            )
            for prompt, (ids, logs) in zip(prompts, decoder.write(prompts, chance), strict=True)
        ]

    return write


def advantages(rollouts: Sequence[Rollout]) -> dict[Pair, tuple[float, float, float]]:
    """Prompt and reply → how often, their advantages in all, and the log-probability of the reply when it was drawn.

    The advantage of a turn is what its agent was paid for the episode and for this turn, less the mean of the same
    agent's turn of this number in the other samples of its task, in standard deviations of all such differences.
    """
    paid: dict[tuple[str, str, int], list[tuple[Pair, float, float]]] = defaultdict(list)
    for rollout in rollouts:
        for one in rollout.conversations:
            for step in one.replies:
                call = step.completion
                assert call.prompt_token_ids is not None and call.token_ids is not None and call.logprobs is not None
                pair = tuple(call.prompt_token_ids), tuple(call.token_ids)
                key = rollout.task.id, one.agent, step.turn
                paid[key].append((pair, (one.reward or 0.0) + step.reward, sum(call.logprobs)))
    differences = []
    for group in paid.values():
        mean = statistics.fmean(reward for _, reward, _ in group)
        differences += [(pair, reward - mean, log) for pair, reward, log in group]
    scale = (sum(one * one for _, one, _ in differences) / max(1, len(differences))) ** 0.5 or 1.0
    found: dict[Pair, tuple[float, float, float]] = {}
    for pair, difference, log in differences:
        times, before, _ = found.get(pair, (0.0, 0.0, 0.0))
        found[pair] = times + 1, before + difference / scale, log
    return found


def update(
    decoder: Decoder,
    optimizer: torch.optim.Optimizer,
    found: Mapping[Pair, tuple[float, float, float]],
    *,
    epochs: int = 3,
    clip: float = 0.2,
    entropy: float = 0.01,
) -> float:
    """Some steps of PPO's clipped objective on the whole batch (Schulman et al. 2017). Returns its last loss.

    Equal turns, which have the same gradient, count once with the sum of their advantages.
    """
    pairs = list(found)
    times, gains, before = (torch.tensor(column) for column in zip(*found.values(), strict=True))
    for _ in range(epochs):
        logs, entropies = decoder.logprobs([p for p, _ in pairs], [r for _, r in pairs])
        ratio = (logs.sum(1) - before).exp()
        clipped = torch.minimum(ratio * gains, ratio.clamp(1 - clip, 1 + clip) * gains)
        loss = -(clipped + entropy * times * entropies.sum(1)).sum() / times.sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 0.5)
        optimizer.step()
    return float(loss.detach())


def reinforce(
    decoder: Decoder,
    words: Words,
    envs: Mapping[str, TrainingEnv],
    updates: int,
    seed: int,
    *,
    tasks: int = 4,
    group_size: int = 8,
    after: Callable[[int], None] = lambda update: None,
) -> list[float]:
    """Train on all environments together.

    Args:
        envs: name → environment; each of an update's batches has `tasks` of its tasks, `group_size` times each.
        after: called with the number of updates made.

    Returns the mean reward of each update's turns.
    """
    chance = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
    means = []
    for step in range(updates):
        batch: dict[Pair, tuple[float, float, float]] = {}
        rewards = []
        for env in envs.values():
            drawn = torch.randperm(len(env.tasks), generator=chance)[:tasks]
            chosen = [env.tasks[int(at)] for at in drawn]
            # results.json is of one chance for each case; of the four tasks only the table has any
            rollouts = env.batched(writer(decoder, words, chance), chosen, group_size, epoch=0)
            batch |= advantages(rollouts)  # prompts name their task, so no two tasks share one
            rewards += [one.rewards.total(agent) for one in rollouts if one.rewards for agent in one.rewards.agents]
        update(decoder, optimizer, batch)
        means.append(statistics.fmean(rewards))
        after(step + 1)
    return means


def evaluate(
    decoder: Decoder | Callable[[list[PendingTurn]], Sequence[str | Completion | None]],
    words: Words | None,
    env: TrainingEnv,
    tasks: Sequence[EnvTask],
    group_size: int,
    seed: int | None = 0,
) -> dict[str, list[float]]:
    """The spec's metrics: a number a task, the mean of its samples. `seed`: of the tokens' draws; None: the most
    probable ones."""
    write: Callable[[list[PendingTurn]], Sequence[str | Completion | None]]
    if isinstance(decoder, Decoder):
        assert words is not None
        write = writer(decoder, words, None if seed is None else torch.Generator().manual_seed(seed))
    else:
        write = decoder
    rollouts = env.batched(write, tasks, group_size, epoch=0)  # the same exam each time
    if failed := next((one.error for one in rollouts if one.error), None):
        raise RuntimeError(failed)
    groups = [rollouts[at : at + group_size] for at in range(0, len(rollouts), group_size)]
    return {
        name: [statistics.fmean(one.score.number(name) or 0.0 for one in group) for group in groups]
        for name in rollouts[0].score.numbers
    }
