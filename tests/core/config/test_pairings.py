"""A protocol and a task, or a channel, that do not go together: the error says where, why, and what would."""

from pathlib import Path

import pytest

from harness.api.errors import PluginError, SpecError
from harness.config import resolve, spec
from harness.config.project import builtin, find
from harness.engines.mock import Mock

TASKS = {
    "question": "{use: arithmetic, size: 2}",
    "network": "{use: agentsnet/coloring, size: 4}",
    "world": "dpbench/dining_table",
    "sharded": "{use: silo/global_maximum, agents: 4}",
    "whole": "{use: silo/global_maximum, agents: 4, whole: true}",
}
PROMPTS = {
    "question": "ensembles",
    "network": "agentsnet",
    "world": "dpbench",
    "sharded": "silo/silence",
    "whole": "silo/silence",
}
ROUNDS = "{{use: {}, channel: {}}}"


def message(tmp_path: Path, task: str, protocol: str) -> str:
    file = tmp_path / "s.yaml"
    lines = (
        "name: x",
        f"task: {TASKS[task]}",
        "protocol:",
        f"  {protocol}",
        f"prompts: {PROMPTS[task]}",
        "metrics: [calls]",
    )
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(SpecError) as caught:
        resolve.plan(spec.load(str(file), builtin()), builtin(), Mock())
    return str(caught.value).replace(str(file), "s.yaml")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("task", "protocol", "says"),
    [
        ("question", "{use: local_rounds, channel: neighbors}", "needs a LocalTask (A task whose agents can talk"),
        ("question", "{use: steps}", "needs a SteppedTask (A task whose cases are played step by step in a world)"),
        ("network", "{use: vote}", "needs a QuestionTask (A task whose every case is a question that one agent can"),
        ("world", "{use: single}", "task 'dpbench/dining_table': DiningTable is not a QuestionTask"),
        ("sharded", "{use: debate}", "its input is cut into 4 shards; `whole: true` gives all of it to one agent"),
    ],
)
def test_a_task_that_a_protocol_cannot_play(tmp_path: Path, task: str, protocol: str, says: str) -> None:
    result = message(tmp_path, task, protocol)
    assert result.startswith("s.yaml:4:3: protocol ") and says in result


def test_it_names_the_protocols_and_the_tasks_that_fit(tmp_path: Path) -> None:
    result = message(tmp_path, "network", "{use: debate}")
    assert "Protocols for this task: action_rounds, command_rounds, local_rounds." in result
    assert (
        "Tasks for this protocol: arithmetic, dataset_qa, finqa, game_questions, gpqa," in result
        and result.endswith(", ….")
    )
    assert "agentsnet" not in result.partition("Tasks for this protocol")[2]


@pytest.mark.parametrize("channel", ["neighbors", "{use: unreliable, channel: neighbors, loss: 0.1}"])
@pytest.mark.parametrize("use", ["action_rounds", "command_rounds"])
def test_calls_need_a_channel_that_carries_them_out(tmp_path: Path, use: str, channel: str) -> None:
    result = message(tmp_path, "sharded", ROUNDS.format(use, channel))
    column = len(f"  {{use: {use}, channel: ") + 1
    assert result.startswith(
        f"s.yaml:4:{column}: protocol {use!r} needs a channel that opens a Board (Executes named calls"
    )
    assert "opens a OpenNeighbors" in result
    assert "broadcast, mailbox, mas/broadcasting, mas/p2p, mas/shared_kv, silence, store." in result


@pytest.mark.parametrize("channel", ["mailbox", "{use: unreliable, channel: mailbox, loss: 0.1}"])
@pytest.mark.parametrize(("task", "use"), [("network", "local_rounds"), ("world", "steps")])
def test_neighbors_need_a_channel_between_neighbors(tmp_path: Path, task: str, use: str, channel: str) -> None:
    result = message(tmp_path, task, ROUNDS.format(use, channel))
    assert "needs a channel that opens a NeighborChannel (Messages from neighbor to neighbor); " in result
    assert result.endswith("Channels that do: neighbors.")


def test_only_what_a_courier_carries_is_made_unreliable(tmp_path: Path) -> None:
    root = tmp_path / "mine"
    (root / "registry" / "channels").mkdir(parents=True)
    (root / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (root / "registry" / "channels" / "gossip.py").write_text(
        "from harness.api import Channel, OpenChannel, plugin\n\n@plugin\nclass Gossip(Channel):\n"
        '    """Gossip."""\n\n    def open(self, case, rng) -> OpenChannel:\n        raise NotImplementedError\n'
    )
    body = {
        "name": "x", "task": {"use": "agentsnet/coloring", "size": 4}, "prompts": "agentsnet", "metrics": ["calls"],
        "protocol": {"use": "local_rounds", "channel": {"use": "unreliable", "channel": "gossip"}},
    }  # fmt: skip
    with pytest.raises(PluginError, match="Gossip cannot be made unreliable: it opens no CarriedChannel"):
        resolve.plan(spec.parse(body, find(root)), find(root), Mock())


def test_what_fits_is_resolved(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"name: x\ntask: {TASKS['whole']}\nprotocol: vote\nprompts: silo/panel\nmetrics: [calls]\n")
    plan = resolve.plan(spec.load(str(file), builtin()), builtin(), Mock())
    assert type(plan.conditions[0].protocol).__name__ == "Vote"
