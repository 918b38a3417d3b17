"""Declared tasks crossed with channels, faults, seats, models and prompts: what ships, and what must combine."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError
from harness.checks.consistency import check_plan
from harness.config import project, resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from tests.helpers import shipped

BUILTIN = project.builtin()
CROSSES = [name for name in shipped.specs() if name.startswith("cross/")]


def rates(run: Run, *labels: str, cell: str = "silo/success") -> dict[tuple[Any, ...], float]:
    """Values of the labels → the mean of a metric over their episodes."""
    values: dict[tuple[Any, ...], list[Any]] = {}
    for score in run.scores:
        assert not score.failed
        values.setdefault(tuple(score.labels[label] for label in labels), []).append(score.numbers[cell])
    return {key: sum(numbers) / len(numbers) for key, numbers in values.items()}


# ----------------------------------------------------------------------------------------- what ships


@pytest.mark.parametrize("name", CROSSES)
def test_every_cross_ranks_models_between_a_floor_and_a_ceiling(name: str) -> None:
    loaded = spec.load(name, BUILTIN)
    assert {"metric", "floor", "ceiling"} <= loaded.data["headline"].keys() and len(loaded.data["matrix"]) >= 3


@pytest.mark.slow
def test_copies_outvote_liars_as_far_as_arithmetic_goes(tmp_path: Path) -> None:
    run = harness.evaluate("cross/copies", overrides=["task.instances=3"], output_path=tmp_path)
    success, readings = rates(run, "copies", "liars"), rates(run, "copies", "liars", cell="silo/partial")
    for (copies, liars), rate in success.items():
        if copies > 2 * liars:
            assert rate == 1
        elif copies == 1:
            assert rate == 0 and readings[copies, liars] == 1 - liars / 8, "a liar holds an eighth of all readings"
        else:
            assert 0 <= rate < 1


@pytest.mark.slow
def test_sparse_networks_lose_what_is_said_once(tmp_path: Path) -> None:
    sizes = ["task.instances=4"]
    once = rates(
        harness.evaluate("cross/links", overrides=sizes, output_path=tmp_path / "once"), "way", "loss", "topology"
    )
    assert len(once) == 18 and all(rate == 1 for (_, loss, _), rate in once.items() if loss == 0)
    for way in ("P2P", "Broadcast", "LOCAL"):
        assert once[way, 0.05, "tree"] < 0.9 < once[way, 0.05, "small_world"]
    sizes += ["baseline.plan=gossip", "matrix.loss=[0.05]"]
    again = rates(harness.evaluate("cross/links", overrides=sizes, output_path=tmp_path / "again"), "way")
    assert all(rate > 0.97 for rate in again.values())


@pytest.mark.slow
def test_a_second_run_repairs_losses_and_no_mistakes(tmp_path: Path) -> None:
    sizes = ["task.instances=5", "matrix.channel=[mailbox]"]
    run = harness.evaluate("cross/second_run", overrides=sizes, output_path=tmp_path)
    success = rates(run, "team", "loss", "setting")
    for setting in ("Base", "CAMOC", "Abl. submit", "Abl. message"):
        assert success["one model", 0, setting] == 1 and success["mixed", 0, setting] == 0.75
    played = {phases: [success["one model", 0.05, name] for name in names] for phases, names in (
        ("once", ("Base", "Abl. submit")), ("twice", ("CAMOC", "Abl. message")),
    )}  # fmt: skip
    assert sum(played["once"]) / 2 < 0.85 < sum(played["twice"]) / 2  # 0.95^7 = 0.70, and 1 − 0.30² = 0.91


@pytest.mark.slow
def test_a_crowd_is_wiser_the_more_it_hears_and_the_fewer_lie(tmp_path: Path) -> None:
    sizes = ["matrix.prompts=[network/aware]", "task.instances=10"]
    run = harness.evaluate("cross/crowd", overrides=sizes, output_path=tmp_path)
    right = rates(run, "way", "liars", cell="score")
    assert len(right) == 9 and right["LOCAL", 0] == right["P2P", 0], "the same messages over the same links"
    for way in ("LOCAL", "P2P", "Broadcast to all"):
        assert right[way, 0] > right[way, 1] > right[way, 2]
    assert right["Broadcast to all", 0] >= right["P2P", 0]


@pytest.mark.slow
def test_prudent_promises_hang_on_every_message(tmp_path: Path) -> None:
    run = harness.evaluate("cross/pledges", overrides=["repeats=4"], output_path=tmp_path)
    paid = rates(run, "team", "loss", "talk", cell="score")
    assert len(paid) == 12 and {paid["one model", loss, 0] for loss in (0, 0.05)} == {1.0} == {paid["one model", 0, 2]}
    assert paid["one model", 0.05, 2] < 0.6, "a lost pledge counts as a broken promise"
    assert all(rate <= 0.1 for (team, _, _), rate in paid.items() if team == "a liar"), "paid once, and never again"


# --------------------------------------------------------------------------------- what must combine

SUM = {"problem": "grid", "agents": 4, "items": 2, "draw": {"data": "[randint(1, 99) for _ in range(8)]"},
       "question": "What is the sum?", "truth": "sum(data)"}  # fmt: skip


def actions(channel: str) -> dict[str, Any]:
    lossy = {"use": "unreliable", "channel": channel, "loss": "${loss}"}
    return {"use": "action_rounds", "channel": lossy, "max_rounds": 6, "phases": "${setting.phases}"}


GRID: dict[str, Any] = {
    "name": "grid",
    "task": {"use": "sharded", "topology": "${topology}", **SUM},
    "protocol": "${way.protocol}",
    "prompts": "${setting.prompts}",
    "agents": {
        "default": "model",
        "liars": {"model": "model", "share": "${liars}", "scored": False, "prompts": "sharded/byzantine",
                  "baseline": {"use": "silo/oracle", "plan": "gossip", "mistake": "lie"}},
        "other": {"model": "small", "count": 1, "baseline": {"use": "silo/oracle", "plan": "gossip"}},
    },
    "models": {"small": {"use": "mock", "text": "{}"}},
    "matrix": {
        "topology": [None, "ring"],
        "loss": [0, 0.05],
        "liars": [0, 0.25],
        "setting": [
            {"name": "Base", "prompts": "sharded/standard", "phases": "one"},
            {"name": "CAMOC", "prompts": "sharded/camoc", "phases": "two"},
        ],
        "way": [
            {"name": "P2P", "protocol": actions("mailbox")},
            {"name": "broadcast", "protocol": actions("broadcast")},
            {"name": "store", "protocol": actions("store")},
            {"name": "LOCAL", "protocol": {
                "use": "local_rounds", "phases": "${setting.phases}",
                "channel": {"use": "unreliable", "channel": "neighbors", "loss": "${loss}"},
            }},
        ],
    },
    "baseline": {"use": "silo/oracle", "plan": "gossip"},
    "metrics": ["silo/success", "messages", "rounds"],
}  # fmt: skip


@pytest.mark.slow
def test_one_sharded_task_goes_with_every_way_to_talk_fault_seat_and_prompt(tmp_path: Path) -> None:
    loaded = spec.parse(GRID, BUILTIN)
    assert check_plan(resolve.plan(loaded, BUILTIN, Mock(text="{}"))) == []
    run = harness.evaluate(GRID, output_path=tmp_path / "policies")
    success = rates(run, "loss", "liars", "way", "topology", "setting")
    assert len(success) == 2 * 2 * 2 * 2 * 4
    for (loss, liars, way, topology, setting), rate in success.items():
        if liars:
            assert rate == 0, "a liar changes the sum"
        elif loss == 0 or way in ("P2P", "broadcast"):
            assert rate == 1, (way, topology, setting)
    small = {"matrix": {**GRID["matrix"], "loss": [0.05], "topology": ["ring"]}}
    models = harness.evaluate({**GRID, **small}, Mock(text="{}"), output_path=tmp_path / "models")
    assert set(rates(models, "way").values()) == {0.0}


@pytest.mark.slow
def test_network_tasks_go_with_rounds_of_actions_too(tmp_path: Path) -> None:
    ways: dict[str, Any] = {
        "extends": "networks/coloring", "name": "x", "headline": None, "tables": None,
        "protocol": {"use": "action_rounds", "channel": "${channel}", "max_rounds": 3, "phases": "two"},
        "prompts": "${prompts}",
        "matrix": {"graphs": ["star"], "size": [4], "channel": ["mailbox", "broadcast", "store", "silence"],
                   "prompts": ["network/standard", "network/camoc", "network/aware", "network/byzantine"]},
    }  # fmt: skip
    assert check_plan(resolve.plan(spec.parse(ways, BUILTIN), BUILTIN, Mock())) == []
    reply = "<submit_result>Group 1</submit_result>"
    run = harness.evaluate(ways, Mock(text=reply), output_path=tmp_path)
    assert set(rates(run, "channel", cell="score").values()) == {0.0}, "all are in one group"
    assert {score.numbers["answered"] for score in run.scores} == {1}


def test_a_policy_stands_in_for_a_named_model_when_no_model_is_given(tmp_path: Path) -> None:
    nowhere = {"small": {"use": "openai", "base_url": "http://localhost:9/v1", "model": "small"}}
    body = {**GRID, "models": nowhere, "matrix": {**GRID["matrix"], "liars": [0], "loss": [0], "topology": [None]}}
    assert set(rates(harness.evaluate(body, output_path=tmp_path), "way").values()) == {1.0}
    body["agents"] = {**GRID["agents"], "other": {**GRID["agents"]["other"], "model": "smal"}}
    with pytest.raises(SpecError, match="there is no model 'smal'"):
        harness.evaluate(body, output_path=tmp_path / "wrong")
