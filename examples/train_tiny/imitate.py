"""Imitation: scripted policies play the training cases, and the decoder learns to write what they do."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable, Sequence

import torch
from model import Decoder, Words

from harness.api import Place, Policy, Turn
from harness.config.building import make, parts_of
from harness.extensions.training import PendingTurn, TrainingEnv

Example = tuple[str, str]
"""A prompt's last message, and the reply."""


def scripted(env: TrainingEnv, act: Callable[[PendingTurn], str]) -> Callable[[list[PendingTurn]], list[str]]:
    """Writes what policies do. `act`: a turn → the expression of the policy that plays it."""
    at = Place("imitate.py")

    @functools.cache
    def policy(expression: str) -> Policy:
        reference = {"use": "expression", "act": expression}
        made: Policy = make(*parts_of("policies", reference, env.plan.project, lambda *_: at), lambda *_: at)
        return made

    def reply(turn: PendingTurn) -> str:
        asked = Turn(turn.agent, turn.turn, turn.observation, turn.reply, turn.context)
        return turn.reply.written(policy(act(turn)).choose(asked, random.Random(turn.seed)))

    return lambda turns: [reply(turn) for turn in turns]


def examples(env: TrainingEnv, teachers: Sequence[str], episodes: int) -> list[Example]:
    """What scripted policies wrote in about so many episodes; each agent of an episode follows one of them."""

    def drawn(turn: PendingTurn) -> str:
        return random.Random(f"{turn.episode} {turn.agent}").choice(teachers)

    tasks = env.tasks[:episodes]
    rollouts = env.batched(scripted(env, drawn), tasks, max(1, episodes // len(tasks)))
    return [
        (one.messages[step.message - 1]["content"], one.messages[step.message]["content"])
        for rollout in rollouts
        for one in rollout.conversations
        for step in one.replies
    ]


def imitate(
    decoder: Decoder, words: Words, data: list[Example], steps: int, seed: int, batch: int = 128
) -> list[float]:
    """Train on the examples. Returns the mean loss of each step, in nats a token."""
    chance = random.Random(seed)
    pairs = [(tuple(words.prompt([{"content": asked}])), (*words.encode(reply), words.end)) for asked, reply in data]
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 20) * (1 - 0.9 * step / steps)
    )
    losses = []
    for _ in range(steps):
        drawn = Counter(chance.choices(pairs, k=batch))
        times = torch.tensor([*drawn.values()])
        logs, _ = decoder.logprobs([prompt for prompt, _ in drawn], [reply for _, reply in drawn])
        loss = -(times * logs.sum(1)).sum() / sum(times * torch.tensor([len(reply) for _, reply in drawn]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
    return losses
