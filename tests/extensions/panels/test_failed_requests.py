"""What a server answers in place of its model is never shown to an agent, whatever protocol its turn is in."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.api import Move, Turn
from harness.config.plan import Condition
from harness.runtime.steps import FAILED, Steps
from tests.extensions.panels.test_margins import MARK, PLAYED, answered, conditions, shown

ERROR = f"{MARK} Error code: 400 - {{'error': {{'message': 'reasoning_content must be passed back'}}}}"
KINDS = ("engine", "request", "refused", "context_length")
BATCHES = 6


def played(condition: Condition, share: float) -> Iterator[str]:
    """What agents are asked where this share of their requests fails, and what their answers have led to."""
    names = [group.name for group in condition.groups]
    case = condition.task.example()
    agents = condition.protocol.possible_agents(case)
    roles = {agent: names[i % len(names)] for i, agent in enumerate(agents)}
    case = replace(case, roles={agent: role for agent, role in roles.items() if role != "default"})
    rng = random.Random(condition.id)

    def move(turn: Turn) -> Move:
        if rng.random() >= share:
            return answered(turn, "The answer is 42.")
        return Move(turn.agent, turn.name, None, ERROR, rng.choice(KINDS))

    with Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
        while game.batch is not None and game.number < BATCHES:
            for turn in game.batch:
                yield f"{turn.context}{turn.observation}{turn.call_results}{turn.peer_texts}"
                templates = condition.group_of(case, turn.agent).prompts
                yield from shown(templates, turn, Move(turn.agent, turn.name))
            game.send([move(turn) for turn in game.batch])
        yield f"{game.outcome}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PLAYED)
def test_no_prompt_shows_what_a_server_answers_in_an_error(name: str) -> None:
    for condition in conditions(name):
        for share in (0.5, 1.0):
            assert [text for text in played(condition, share) if MARK in text or "Error code" in text] == [], (
                condition.id
            )


def test_agents_of_silo_read_that_the_request_failed() -> None:
    said = "".join(played(conditions("silo_calls")[0], 0.5))
    assert f"error: {FAILED}; nothing was done" in said
