"""Each pass over the tasks has another chance of everything; the first one that of `harness eval`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from harness.api import Completion
from harness.extensions.training import PendingTurn, Rollout, TrainingEnv, advantages
from harness.extensions.training.rows import play_rows, prompts

DUEL: dict[str, Any] = {
    "name": "duel",
    "task": {
        "use": "openspiel",
        "game": "repeated_game(stage_game=matrix_rps(),num_repetitions=10)",
        "instances": 2,
    },
    "protocol": {"use": "steps", "max_timesteps": 20},
    "prompts": "games/standard",
    "agents": {"default": "model", "rival": {"policy": "random", "agents": ["Player-1"]}},
    "metrics": ["score"],
    "rewards": {"agent": "returns", "turn": {"use": "credit", "by": "random", "of": "returns"}},
}
"""Against an opponent that draws, with a reference that draws."""
RACE: dict[str, Any] = {
    "name": "race",
    "task": {
        "use": "world",
        "agents": 3,
        "state": {"won": "''"},
        "rules": "Grab.",
        "actions": {"GRAB": {"effects": {"won": "won if won else me"}}, "WAIT": None},
        "noop": "WAIT",
        "conflict": "random",
        "scores": {"score": "float(won == agents[0])"},
    },
    "protocol": {"use": "steps", "order": "simultaneous", "max_timesteps": 1},
    "prompts": "world/standard",
    "metrics": [{"use": "grade", "of": "score", "name": "score"}],
    "headline": {"metric": "score"},
}
"""All want the same thing, and chance says who gets it."""


def rock(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return seat.reply.written((seat.reply.options or ())[0])


def rival(rollout: Rollout) -> tuple[Any, ...]:
    """What the opponent did."""
    return tuple(move.action for move in rollout.episode.moves() if move.agent == "Player-1")


def credits(rollout: Rollout) -> tuple[float, ...]:
    assert rollout.rewards is not None
    return tuple(rollout.rewards.turns.values())


def test_a_second_pass_has_another_chance_of_everything() -> None:
    seeds: dict[str, set[int]] = {}

    def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        seeds.setdefault(seat.episode, set()).add(seat.seed)
        return rock(messages, tools, sampling, seat)

    with TrainingEnv(DUEL) as env:
        passes = [env.rollouts(generate, group_size=2) for _ in range(3)]
    for number, rollouts in enumerate(passes):
        assert [one.epoch for one in rollouts] == [number] * 4
        for one, other in zip(rollouts[::2], rollouts[1::2], strict=True):  # a group shares its chance
            assert rival(one) == rival(other) and credits(one) == credits(other)
    assert len({rival(rollouts[0]) for rollouts in passes}) == 3
    assert len({credits(rollouts[0]) for rollouts in passes}) == 3
    assert len(seeds) == 12 and len(set().union(*seeds.values())) == sum(map(len, seeds.values()))
    assert {*seeds} == {one.id for rollouts in passes for one in rollouts}


def test_the_chance_of_a_world_is_another_one() -> None:
    with TrainingEnv(RACE) as env:
        scores = [env.rollouts(rock)[0].score.number("score") for _ in range(12)]
    assert {*scores} == {0.0, 1.0}


def test_an_epoch_can_be_played_again() -> None:
    with TrainingEnv(DUEL) as env:
        first, second = env.rollouts(rock), env.rollouts(rock)
        for epoch, expected in ((0, first), (1, second)):
            again = env.rollouts(rock, epoch=epoch)
            assert [rival(one) for one in again] == [rival(one) for one in expected]
            assert [credits(one) for one in again] == [credits(one) for one in expected]
        assert env.rollouts(rock)[0].epoch == 2  # what was asked for by its number does not count
        assert rival(env.rollouts(rock, epoch="step 7")[0]) != rival(env.rollouts(rock, epoch="step 8")[0])


def by_rollouts(env: TrainingEnv) -> list[Rollout]:
    return env.rollouts(rock, env.tasks[:1])


def by_batches(env: TrainingEnv) -> list[Rollout]:
    return env.batched(lambda turns: [rock((), (), {}, turn) for turn in turns], env.tasks[:1])


def one_by_one(env: TrainingEnv) -> list[Rollout]:
    return [asyncio.run(env.rollout(env.tasks[0], rock))]


def step_by_step(env: TrainingEnv) -> list[Rollout]:
    with env.start(env.tasks[0]) as game:
        while game.pending:
            game.answer({turn.agent: rock((), (), {}, turn) for turn in game.pending})
        return [game.rollout]


@pytest.mark.parametrize("play", [by_rollouts, by_batches, one_by_one, step_by_step])
def test_every_way_to_play_begins_with_the_first_epoch(play: Callable[[TrainingEnv], list[Rollout]]) -> None:
    with TrainingEnv(DUEL) as env:
        expected = [rival(env.rollouts(rock, env.tasks[:1], epoch=epoch)[0]) for epoch in range(3)]
        assert [rival(one) for _ in range(3) for one in play(env)] == expected


def test_samples_of_a_task_share_their_epoch_however_often_each_was_played() -> None:
    with TrainingEnv(DUEL) as env:
        task = env.tasks[0]
        assert [one.epoch for one in env.rollouts(rock, [task], 2)] == [0, 0]
        assert [one.epoch for one in env.rollouts(rock, [task], 3)] == [1, 1, 1]
        assert [one.epoch for one in env.rollouts(rock, [(task, 5), (task, 0)])] == [2, 2]
        twice = env.rollouts(rock, [task, env.tasks[1], task])
        assert [one.epoch for one in twice] == [3, 0, 4] and rival(twice[0]) != rival(twice[2])


def test_epochs_are_groups_of_their_own() -> None:
    with TrainingEnv(DUEL) as env:
        rollouts = [one for _ in range(2) for one in env.rollouts(rock, env.tasks[:1], 2)]
    found = advantages(rollouts)
    assert found.groups == 2 and found.flat == [env.tasks[0].id, f"{env.tasks[0].id}@1"]


def test_rows_of_a_later_batch_have_another_chance() -> None:
    seen: list[str] = []

    async def generate(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> Completion:
        seen.append(seat.episode)
        return Completion("0", prompt_token_ids=(1,) * len(messages), token_ids=(1,), logprobs=(-0.5,))

    with TrainingEnv("teams/star", limit=1) as env:
        batch, own = prompts(env, env.tasks[:1]) * 2, env.tasks[0].id
        for _ in range(2):
            asyncio.run(play_rows(env, batch, generate))
        asyncio.run(play_rows(env, batch[:1], generate, epoch="a prompt"))
    assert {*seen} == {own, f"{own}#1", f"{own}#0@1", f"{own}#1@1", f"{own}#0@a prompt"}
