"""Tasks of SILO-Bench declared in YAML alone: the same instances, right answers and grades as the tasks in Python."""

import json
import random
from functools import cache
from typing import Any

import pytest

from harness.api import Case, Outcome
from harness.config import project, resolve, spec
from harness.extensions.networks.answers import normalize
from harness.extensions.networks.sharded import ShardedTask

BUILTIN = project.builtin()
NAMES = sorted(value["name"] for value in spec.load("sharded/silo", BUILTIN).data["matrix"]["problem"])


@cache
def declared() -> dict[str, ShardedTask]:
    """Name → the task for five agents, as the specs declare it."""
    tasks = {}
    loaded = spec.load("sharded/silo", BUILTIN, ["matrix.agents=[5]", "matrix.protocol=[P2P]"])
    for condition in resolve.plan(loaded, BUILTIN).conditions:
        assert isinstance(condition.task, ShardedTask)
        tasks[str(condition.labels["problem"])] = condition.task
    return tasks


def python(name: str) -> ShardedTask:
    task = BUILTIN.load("tasks", f"silo/{name}")(agents=5)
    assert isinstance(task, ShardedTask)
    return task


def case(task: ShardedTask, seed: int) -> Case:
    return next(iter(task.cases(1, seed)))


def near(truth: Any, rng: random.Random) -> list[Any]:
    """Answers close to a right one: off by a little, too short, too long, with one place wrong, of another kind."""
    if isinstance(truth, (bool, str)):
        return [not truth, "Dave", "Alice", 1]
    if isinstance(truth, (int, float)):
        return [truth + 1, truth - 0.004, truth + 0.006, truth * 1.009, truth * 1.02, -truth, [truth], str(truth)]
    if isinstance(truth, dict):
        key = rng.choice([*truth])
        return [{**truth, key: truth[key] + 1}, {k: v for k, v in truth.items() if k != key}, {**truth, "x": 1}, {}]
    swapped = rng.sample(truth, len(truth))
    return [truth[:-1], [*truth, *truth[:1]], swapped, truth[1:], [truth], truth[::-1], []]


def outcomes(made: Case, written: list[Any], rng: random.Random) -> list[Outcome]:
    """Everyone right, one missing, none, and near misses among right answers; with what agents could know."""
    ways = [written, [None, *written[1:]], [None] * len(written)]
    for wrong in near(written[-1], rng):
        mixed = [normalize(wrong) if rng.random() < 0.6 else truth for truth in written]
        ways.append([normalize(wrong), *mixed[1:]])
    facts = {"knew": {agent: f"{rng.randrange(32) | 1 << i:x}" for i, agent in enumerate(made.agents)}}
    return [Outcome(dict(zip(made.agents, way, strict=True)), facts=facts) for way in ways]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("instances", [8, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_a_declared_task_agrees_with_the_one_in_python(name: str, instances: int) -> None:
    one, other, rng = python(name), declared()[name], random.Random(name)
    for seed in range(instances):
        made = case(one, seed)
        shards, known = [made.private[agent]["shard"] for agent in made.agents], made.public["known"]
        answers = other.right_answers(shards, known)
        assert answers == made.target
        written = [normalize(one.answer_text(answer)) for answer in made.target]
        assert written == [normalize(other.answer_text(answer)) for answer in answers]
        for outcome in outcomes(made, written, rng):
            assert one.grade(made, outcome) == other.grade(made, outcome), outcome.answers


@pytest.mark.parametrize("name", NAMES)
def test_a_declared_task_draws_the_same_instances_and_asks_the_same(name: str) -> None:
    one, other = python(name), declared()[name]
    for seed in range(5):
        drawn, again = case(one, seed), case(other, seed)
        assert drawn.private == again.private and drawn.target == again.target and drawn.id == again.id
        assert drawn.labels == again.labels
        for agent in drawn.agents[:2]:
            asked, asked_again = one.context(drawn, agent), other.context(again, agent)
            assert asked["task"] == asked_again["task"] and asked["shard"] == asked_again["shard"]
            assert json.dumps(one.reply(drawn, agent).constraint()) == json.dumps(
                other.reply(again, agent).constraint()
            )
