"""Imitation: scripted policies play the training cases, and the decoder learns to write what they did."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from model import Decoder, Words
from tasks import project, teachers

import harness
from harness.extensions.exports import export

Example = tuple[str, str]
"""A prompt's last message, and the reply."""


def examples(task: str) -> list[Example]:
    """What the teachers of a task wrote in its training cases: `harness export RUN --to chat --kind replies`."""
    spec, agents = teachers(task)
    with tempfile.TemporaryDirectory() as folder:
        run = harness.evaluate(spec, project=project(), output_path=Path(folder) / "run")
        done = export(run, "chat", folder, kind="replies", group=agents)
        rows = [json.loads(line) for line in done.files[0].read_text("utf-8").splitlines()]
    return [(row["prompt"][-1]["content"], row["completion"][0]["content"]) for row in rows]


def imitate(
    decoder: Decoder, words: Words, data: Sequence[Sequence[Example]], steps: int, seed: int, batch: int = 128
) -> list[float]:
    """Train on the examples of tasks, as many of each task. Returns the mean loss of each step, in nats a token."""
    chance = random.Random(seed)
    tasks = [
        [(tuple(words.prompt([{"content": asked}])), (*words.encode(reply), words.end)) for asked, reply in examples]
        for examples in data
    ]
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 20) * (1 - 0.9 * step / steps)
    )
    losses = []
    for _ in range(steps):
        drawn = Counter(chance.choice(pairs) for pairs in chance.choices(tasks, k=batch))
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
