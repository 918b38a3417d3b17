"""Advantages in groups of rollouts, and training sets that hold evaluation cases."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import harness
from harness.api.errors import DataError
from harness.extensions.training import PendingTurn, Rollout, TrainingEnv, advantages

DILEMMA = {
    "name": "dilemma",
    "task": {"use": "openspiel", "game": "matrix_pd", "instances": 3},
    "protocol": "steps",
    "prompts": "games/standard",
    "metrics": ["score"],
    "rewards": {"agent": "returns"},
}


def drawn(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return seat.reply.written(random.Random(seat.seed).choice(list(seat.reply.options or ())))


def always(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    return seat.reply.written((seat.reply.options or ())[0])


def played(generate: Any, size: int = 6) -> list[Rollout]:
    with TrainingEnv(DILEMMA) as env:
        return env.rollouts(generate, group_size=size)


@pytest.mark.parametrize("baseline", ["shared", "group", "agent"])
@pytest.mark.parametrize("scale", [True, False])
def test_advantages_are_centered_in_their_group(baseline: Literal["shared", "group", "agent"], scale: bool) -> None:
    rollouts = played(drawn)
    found = advantages(rollouts, baseline, scale=scale)
    assert found.groups == 3 * (2 if baseline == "agent" else 1) and not found.unpaid
    seats = [["Player-0"], ["Player-1"]] if baseline == "agent" else [["Player-0", "Player-1"]]
    for task in {one.task.id for one in rollouts}:
        own = [i for i, one in enumerate(rollouts) if one.task.id == task]
        for agents in seats:
            gains = [found.each[i][agent] for i in own for agent in agents]
            assert statistics.fmean(gains) == pytest.approx(0)
            if scale and any(gains):
                assert statistics.pstdev(gains) == pytest.approx(1)
            paid = [
                (rollouts[i].rewards.agents[a], found.each[i][a]) for i in own for a in agents if rollouts[i].rewards
            ]
            assert sorted(paid) == sorted(paid, key=lambda one: (one[1], one[0]))  # the same order


def test_a_baseline_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no baseline 'leave_one_out': it is one of shared, group, agent"):
        advantages([], "leave_one_out")  # type: ignore[arg-type]


def test_groups_without_variance_are_named() -> None:
    found = advantages(played(always))
    assert found.groups == 3 and len(found.flat) == 3 and str(found) == "3 groups, 3 without variance"
    assert all(set(one.values()) == {0.0} for one in found.each)


def test_rollouts_without_rewards_are_named() -> None:
    def fails(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
        if seat.episode.endswith("#1"):
            raise OSError("out of memory")
        return drawn(messages, tools, sampling, seat)

    found = advantages(played(fails, 2))
    assert len(found.unpaid) == 3 and all("out of memory" in why for why in found.unpaid.values())
    assert [bool(one) for one in found.each] == [True, False] * 3


NETWORK: dict[str, Any] = {
    "extends": "agentsnet_quick",
    "matrix": {"problem": ["coloring"], "graphs": ["small_world"], "size": [4]},
}


def test_tasks_of_another_environment_are_not_played() -> None:
    """Else an evaluation's own tasks would be trained on, whatever `holdout` says."""
    own = {"task.source=seeded"}
    with (
        TrainingEnv(NETWORK, limit=1) as evaluation,
        TrainingEnv(NETWORK, limit=1, seed=7, overrides=own, holdout=[NETWORK]) as env,
        TrainingEnv(NETWORK, limit=1, seed=7, overrides=own) as again,
    ):
        [other] = evaluation.tasks
        plays: list[Callable[[], Any]] = [
            lambda: env.rollouts(lambda *_: "0", [other]),
            lambda: env.rollouts(lambda *_: "0", [(other, 1)]),
            lambda: env.batched(lambda turns: ["0"] * len(turns), [other]),
            lambda: asyncio.run(env.rollout(other, lambda *_: "0")),
            lambda: env.start(other),
        ]
        for play in plays:
            with pytest.raises(DataError, match=r"has another case|there is no task"):
                play()
        [rollout] = env.rollouts(lambda *_: "0", again.tasks)
        assert rollout.task is env.tasks[0]


def test_a_training_set_with_an_evaluation_case_is_refused(tmp_path: Path) -> None:
    own = {"task.source=seeded"}
    run = harness.evaluate(NETWORK, limit=2, output_path=tmp_path / "run")
    for evaluation in (NETWORK, run, run.folder, str(run.folder)):
        with pytest.raises(DataError, match=r"holdout\[0\]: 1 of 1 cases .*small_world-4-0.*\n.*another seed"):
            TrainingEnv(NETWORK, limit=1, holdout=[evaluation])
    renamed = {**NETWORK, "name": "other", "agents": {"default": "model", "liar": {"count": 1, "scored": False}}}
    with pytest.raises(DataError, match="1 of 1 cases"):
        TrainingEnv(renamed, limit=1, holdout=[NETWORK])
    assert TrainingEnv(NETWORK, limit=1, seed=7, overrides=own, holdout=[NETWORK]).tasks
    assert TrainingEnv(DILEMMA, holdout=[NETWORK]).tasks
    with pytest.raises(DataError, match=r"holdout\[1\]"):
        TrainingEnv(NETWORK, limit=1, holdout=[DILEMMA, NETWORK])
