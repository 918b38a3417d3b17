"""How many turns an episode is likely to have, before any has ended."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence

from harness.api import Move
from harness.config.plan import Job
from harness.runtime.steps import Steps

_SAMPLED_EPISODES, _MAX_SAMPLED_TURNS = 4, 2000
"""Episodes that are played with idle agents to know how many turns they have, and the most turns of one."""


def planned_turns(episodes: Sequence[Job]) -> float | None:
    """How many turns of models an episode has where its agents are idle: the mean of a few, evenly spread ones. None if
    none can be played so, or one has more than `_MAX_SAMPLED_TURNS`."""
    counts = []
    for condition, case, _ in episodes[:: max(1, len(episodes) // _SAMPLED_EPISODES)][:_SAMPLED_EPISODES]:
        count = 0
        # What a plugin does wrong is for the run.
        with contextlib.suppress(Exception), Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
            while (batch := game.batch) is not None:
                count += sum(condition.group_of(case, turn.agent).policy is None for turn in batch)
                if count > _MAX_SAMPLED_TURNS:
                    return None
                game.send([Move(turn.agent, turn.name, turn.reply.noop) for turn in batch])
            counts.append(count)
    return sum(counts) / len(counts) if counts else None
