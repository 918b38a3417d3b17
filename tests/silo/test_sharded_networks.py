"""Sharded tasks in a network: agents write to their neighbors only."""

from pathlib import Path
from typing import Any, get_args

import pytest

import harness
from harness.authoring.networks import Family, diameter
from harness.config import project
from harness.errors import SpecError

BUILTIN = project.builtin()
SPEC: dict[str, Any] = {
    "name": "networked",
    "protocol": {"use": "local_rounds", "channel": "neighbors"},
    "prompts": "sharded/local",
    "baseline": "silo/flooding",
    "metrics": ["silo/success", "rounds", "messages"],
}


def numbers(task: dict[str, Any], folder: Path, **changes: Any) -> dict[str, float]:
    """The mean of each metric, over all episodes."""
    protocol = {**SPEC["protocol"], **changes}
    run = harness.evaluate({**SPEC, "task": task, "protocol": protocol}, output_path=folder)
    values: list[Any] = [score.numbers for score in run.scores]
    return {name: sum(one[name] for one in values) / len(values) for name in SPEC["metrics"]}


@pytest.mark.parametrize("family", get_args(Family))
def test_flooding_solves_every_network(family: str) -> None:
    for agents in (2, 3, 9):
        task = BUILTIN.load("tasks", "silo/prefix_sum")(agents=agents, topology=family)
        case = next(iter(task.cases(1, 0)))
        assert case.topology is not None and set(case.topology) == set(case.agents)
        assert task.rounds(case) == 2 * diameter(case.topology) + 1
        same = BUILTIN.load("tasks", "silo/prefix_sum")(agents=agents)
        assert next(iter(same.cases(1, 0))).private == case.private, "the input depends on the network"


@pytest.mark.parametrize("name", ["silo/prefix_sum", "silo/any_match", "silo/list_ranking"])
def test_what_is_far_away_takes_as_many_rounds(name: str, tmp_path: Path) -> None:
    task = {"use": name, "agents": 9, "topology": "ring", "samples": 2}
    enough = numbers(task, tmp_path / "enough", rounds=4)
    assert enough == {"silo/success": 1, "rounds": 4, "messages": 9 * 2 * 4}
    if name == "silo/list_ranking":  # needs all data; an agent four hops away is not heard of in time
        assert numbers(task, tmp_path / "short", rounds=3)["silo/success"] == 0
    assert numbers(task, tmp_path / "budget")["rounds"] == 2 * 4 + 1


def test_a_task_in_a_network_is_played_by_protocols_of_networks_alone(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="its agents are in no network; `topology: ring`"):
        numbers({"use": "silo/prefix_sum"}, tmp_path)
    with pytest.raises(SpecError, match=r"talk to their neighbors only \(topology: star\)"):
        rounds = {"use": "action_rounds", "channel": "mailbox"}
        harness.evaluate({**SPEC, "task": {"use": "silo/prefix_sum", "topology": "star"}, "protocol": rounds})


def test_an_agent_alone_has_no_network() -> None:
    task = BUILTIN.load("tasks", "silo/prefix_sum")(topology="ring", whole=True)
    assert next(iter(task.cases(1, 0))).topology is None
