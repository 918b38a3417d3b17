"""AgentsNet's five problems, declared in YAML, are graded as the Python tasks grade them."""

import random
from dataclasses import replace

import pytest

from tests.benchmarks.agentsnet.agentsnet_kit import PROBLEMS, task
from tests.extensions.networks.network_kit import grade, of_spec, one_case, vectors

NETWORKS = (
    "matrix.graphs=[small_world, scale_free, ring, star, tree, erdos_renyi, complete]",
    "matrix.size=[2, 3, 5, 9]",
)


def compare(problem: str, number: int) -> None:
    python, rng, seen, solved = task(problem), random.Random(problem), 0, 0
    declared = of_spec(f"networks/{problem}", *NETWORKS, "task.instances=1")
    for seed, declared_task in enumerate(declared):
        case = one_case(declared_task, seed)
        assert python.rounds(case) == declared_task.rounds(case)
        for answers in vectors(declared_task, case, rng, number // len(declared)):
            unscored = frozenset(
                rng.sample(case.agents, rng.choice([0, 0, 0, 1, 2, len(case.agents)]) % (len(case.agents) + 1))
            )
            played = replace(case, unscored=unscored)
            expected, result = grade(python, played, answers), grade(declared_task, played, answers)
            for name in ("solved", "score"):
                assert result[name] == pytest.approx(expected[name], abs=1e-12), (case.id, answers, unscored)
            seen += 1
            solved += expected["solved"] == 1
    assert seen > 0.9 * number and solved > 0.02 * number


@pytest.mark.sampled(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_grades(problem: str) -> None:
    compare(problem, 700)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_grades_on_many_answers(problem: str) -> None:
    compare(problem, 11_200)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_same_options(problem: str) -> None:
    for declared_task in of_spec(f"networks/{problem}"):
        case = one_case(declared_task)
        for agent in case.agents:
            assert declared_task.reply(case, agent) == task(problem).reply(case, agent)
