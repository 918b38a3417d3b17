"""Every SILO-Bench task: its right answer is that of an independent solution, at every size and for many seeds."""

import json
from typing import Any

import pytest

from harness.api import Case, Outcome
from harness.config import project
from harness.extensions.networks.answers import normalize
from harness.extensions.networks.sharded import ShardedTask, compose
from tests.benchmarks.silo import brute_a, brute_b, brute_base
from tests.benchmarks.silo.silo_kit import TASKS

BUILTIN = project.builtin()
SOLUTIONS = {**brute_base.SOLUTIONS, **brute_a.SOLUTIONS, **brute_b.SOLUTIONS}
SIZES = {1: 8, 2: 10, 3: 10, 5: 5, 10: 3, 20: 2, 50: 1}
"""Number of agents → cases."""
LARGE = {5: 10, 20: 3, 100: 1}
"""Agents → cases of that size that are compared with the independent solution."""


def task(name: str, **parameters: Any) -> ShardedTask:
    result = BUILTIN.load("tasks", f"silo/{name}")(**parameters)
    assert isinstance(result, ShardedTask)
    return result


def case(made: ShardedTask, seed: int) -> Case:
    return next(iter(made.cases(1, seed)))


def shards(of: Case) -> list[Any]:
    return [of.private[agent]["shard"] for agent in of.agents]


def test_every_task_has_an_independent_solution() -> None:
    assert set(SOLUTIONS) == set(TASKS)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(LARGE, marks=pytest.mark.slow)], ids=["small", "large"])
@pytest.mark.parametrize("domain", ["paper", "hardened"])
@pytest.mark.parametrize("name", TASKS)
def test_the_answer_is_that_of_an_independent_solution(name: str, domain: str, sizes: dict[int, int]) -> None:
    for agents, cases in sizes.items():
        result = task(name, agents=agents, domain=domain)
        for seed in range(cases):
            played = case(result, seed)
            expected = SOLUTIONS[name](shards(played), dict(played.public["known"]))
            answers = expected if result.segmented(played.public["known"]) else [expected] * agents
            written = [result.reply(played, agent).parse(result.answer_text(answer)).action
                       for agent, answer in zip(played.agents, answers, strict=True)]  # fmt: skip
            grade = result.grade(played, Outcome(dict(zip(played.agents, written, strict=True))))
            assert (grade["success"], grade["partial"]) == (1, 1), (name, agents, seed)


@pytest.mark.parametrize("name", TASKS)
def test_one_agent_with_the_whole_input_has_the_same_answer(name: str) -> None:
    for agents in (1, 2, 5, 20):
        parts, whole = case(task(name, agents=agents), 3), case(task(name, agents=agents, whole=True), 3)
        assert shards(whole) == [compose(shards(parts))] and len(whole.agents) == 1
        result = task(name, agents=agents)
        expected = compose(parts.target) if result.segmented(parts.public["known"]) else parts.target[0]
        assert whole.target == [expected]
        [solved] = result.right_answers(shards(whole), parts.public["known"])
        assert result.answer_text(solved) == result.answer_text(expected), "the answer depends on how the input is cut"


@pytest.mark.parametrize("name", TASKS)
def test_an_instance_depends_on_its_own_parameters_only(name: str) -> None:
    three = list(task(name, agents=4, instances=3).cases(None, 7))
    again = list(task(name, agents=4, instances=2).cases(None, 7))
    assert three[:2] == again and len({json.dumps(shards(c)) for c in three}) == 3
    assert shards(case(task(name, agents=4), 8)) != shards(three[0])


@pytest.mark.parametrize("name", TASKS)
def test_the_context_tells_the_own_shard_and_no_answer(name: str) -> None:
    result = task(name, agents=10)
    played = case(result, 0)
    for agent in played.agents:
        context = result.context(played, agent)
        assert json.loads(context["shard"]) == played.private[agent]["shard"]
        assert str(result.agents) == str(context["n"])
        for word in ("star", "tree", "chain topology", "hub", "leader", "broadcast", "optimal", "aggregator"):
            assert word not in context["task"].lower().split()
    assert "target" not in json.dumps([result.context(played, agent) for agent in played.agents])


@pytest.mark.parametrize("name", TASKS)
def test_partial_credit_is_never_below_success(name: str) -> None:
    result = task(name, agents=3)
    played = case(result, 1)
    for text in ("0", "7", "[]", "[1, 2]", "{}", '{"0": 0}', "[[1]]", "true", '"x"', "null", "-1e9", "[[[]]]"):
        answers = {agent: normalize(text) for agent in played.agents}
        grade = result.grade(played, Outcome(answers))
        success, partial = grade["success"], grade["partial"]
        assert success is not None and partial is not None and 0 <= success <= partial <= 1, text
