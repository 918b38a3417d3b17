"""Sharded tasks in a network: agents write to their neighbors only."""

import random
from pathlib import Path
from typing import Any, get_args

import pytest

import harness
from harness.api import Move
from harness.api.errors import SpecError
from harness.config import project
from harness.extensions.networks import Family, diameter

BUILTIN = project.builtin()
SPEC: dict[str, Any] = {
    "name": "networked",
    "protocol": {"use": "local_rounds", "channel": "neighbors"},
    "prompts": "sharded/standard",
    "baseline": {"use": "silo/oracle", "plan": "gossip"},
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["silo/prefix_sum", "silo/any_match", "silo/list_ranking"])
def test_what_is_far_away_takes_as_many_rounds(name: str, tmp_path: Path) -> None:
    task = {"use": name, "agents": 9, "topology": "ring", "instances": 2}
    enough = numbers(task, tmp_path / "enough", rounds=4)
    assert enough == {"silo/success": 1, "rounds": 4, "messages": 9 * 2 * 4}
    if name == "silo/list_ranking":  # needs all data; an agent four hops away is not heard of in time
        assert numbers(task, tmp_path / "short", rounds=3)["silo/success"] == 0
    assert numbers(task, tmp_path / "budget")["rounds"] == 2 * 4 + 1


CALLS = ["mailbox", {"use": "mailbox", "inbox": "pull"}, "broadcast"]


def actions(channel: Any) -> dict[str, Any]:
    return {"use": "action_rounds", "channel": channel, "max_rounds": 20}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("plan", ["flood", "gossip"])
@pytest.mark.parametrize("channel", [*CALLS, "store"])
@pytest.mark.parametrize("topology", [None, "tree", "ring"])
def test_calls_reach_neighbors_only(topology: str | None, channel: Any, plan: str, tmp_path: Path) -> None:
    spec = {**SPEC, "protocol": actions(channel)}
    spec |= {"baseline": {"use": "silo/oracle", "plan": plan}, "metrics": [*SPEC["metrics"], "refused_calls"]}
    spec |= {"task": {"use": "silo/list_ranking", "agents": 7, "topology": topology}}
    [score] = harness.evaluate(spec, output_path=tmp_path).scores
    assert score.numbers["silo/success"] == 1 and score.numbers["refused_calls"] == 0
    if topology == "ring" and channel == "mailbox" and plan == "flood":
        assert score.numbers["messages"] == 7 * 2 * 4, "news passes each link at each of D + 1 decisions"
        assert score.numbers["rounds"] == 3 + 1


@pytest.mark.slow
def test_losses_break_a_flood_and_not_gossip(tmp_path: Path) -> None:
    for use, channel in (("local_rounds", "neighbors"), ("action_rounds", "mailbox")):
        lossy = {"use": use, "channel": {"use": "unreliable", "channel": channel, "loss": 0.1}}
        success = {}
        for plan in ("flood", "gossip"):
            spec = {**SPEC, "protocol": lossy}
            spec |= {"baseline": {"use": "silo/oracle", "plan": plan}}
            spec |= {"task": {"use": "silo/list_ranking", "agents": 6, "topology": "tree", "instances": 10}}
            scores = harness.evaluate(spec, output_path=tmp_path / use / plan).scores
            rates: list[Any] = [score.numbers["silo/success"] for score in scores]
            success[plan] = sum(rates) / len(rates)
        assert success["flood"] < 0.9 <= success["gossip"]


def test_a_plan_that_needs_other_links_is_refused(tmp_path: Path) -> None:
    spec = {**SPEC, "protocol": actions("mailbox"), "baseline": "silo/oracle"}
    task = {"use": "silo/prefix_sum", "topology": "ring"}
    [score] = harness.evaluate({**spec, "task": task}, output_path=tmp_path / "links").scores
    assert score.failed and "the plan star does not keep to the links" in (tmp_path / "links/errors.jsonl").read_text()
    wide = {**spec, "protocol": actions({"use": "mailbox", "reach": "all"})}
    [score] = harness.evaluate({**wide, "task": task}, output_path=tmp_path / "all").scores
    assert score.numbers["silo/success"] == 1


def test_a_call_beyond_the_links_is_refused_with_the_neighbors() -> None:
    case = next(iter(BUILTIN.load("tasks", "silo/prefix_sum")(topology="star", agents=4).cases(1, 0)))
    for name, call in (
        ("mailbox", {"call": "send_message", "target_id": "2", "content": "x"}),
        ("mas/p2p", {"call": "send_message", "target_id": "2", "content": "x"}),
    ):
        board = BUILTIN.load("channels", name)().open(case, random.Random(0))
        board.commit([Move("Agent-1", "x", [call])])
        [result] = board.observation("Agent-1")["results"]
        assert result["text"] == "error: you cannot send messages to Agent-2; your neighbors are: Agent-0"


def test_one_agent_has_no_neighbors(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="one agent has all of its input, and no neighbors"):
        numbers({"use": "silo/prefix_sum", "whole": True}, tmp_path)


def test_an_agent_alone_has_no_network() -> None:
    task = BUILTIN.load("tasks", "silo/prefix_sum")(topology="ring", whole=True)
    assert next(iter(task.cases(1, 0))).topology is None
