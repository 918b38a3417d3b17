"""Agents that parameters name: none is empty, and those of a simulated panel sit there."""

from pathlib import Path
from typing import Any

import pytest

from harness import evaluate
from harness.api.errors import PluginError, UserError
from harness.config import project, resolve, spec
from harness.engines.mock import Mock

BUILTIN = project.builtin()
BODY: dict[str, Any] = {
    "name": "x",
    "task": {"use": "arithmetic", "size": 2},
    "prompts": "panels/standard",
    "metrics": ["score"],
}
ROLES = [
    ("darkforest", "coordinator", {"agents": 3}),
    ("mixture_of_agents", "aggregator", {}),
    ("graph_of_agents", "meta", {"agents": 3}),
    ("graph_of_agents", "general", {"agents": 3}),
    ("debate", "summarizer", {"summarize": "shared"}),
    ("self_refine", "solver", {}),
]


@pytest.mark.parametrize(("method", "role", "parameters"), ROLES)
@pytest.mark.parametrize("name", ["", "  "])
def test_a_nameless_agent_is_refused_at_its_place(
    method: str, role: str, parameters: dict[str, Any], name: str
) -> None:
    with pytest.raises(PluginError, match=f"{role} is empty: no agent has that name") as caught:
        BUILTIN.load("protocols", method)(**parameters, **{role: name})
    assert caught.value.at == (role,)


def test_its_place_in_the_spec_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\ntask: arithmetic\nprompts: panels/standard\nmetrics: [score]\n"
        'protocol:\n  use: darkforest\n  agents: 3\n  coordinator: ""\n'
    )
    with pytest.raises(UserError, match=r"x\.yaml:8:\d+: coordinator is empty"):
        resolve.plan(spec.load(str(file), BUILTIN), BUILTIN, Mock())


# ---------------------------------------------------------------------------- simulated panels


def played(folder: Path, players: dict[str, Any], *methods: str, **more: Any) -> Any:
    """A run of these methods with this simulated panel for a baseline."""
    named = [{"name": method, "protocol": {"use": method, "agents": 3}} for method in methods]
    whole = {**BODY, "protocol": "${method.protocol}", "matrix": {"method": named}, **more}
    return evaluate({**whole, "baseline": {"use": "simulated", **players}}, output_path=folder, project=BUILTIN)


@pytest.mark.parametrize(
    ("players", "message", "hint"),
    [
        ({"agents": {"agent-0": {"accuracy": 0.9}}}, "agents names 'agent-0', which does not play", "mean Agent-0"),
        ({"agents": {"Agent-3": {"accuracy": 0.9}}}, "agents names 'Agent-3', which does not play", "Agent-2"),
        ({"agents": {"Agregator": {"accuracy": 0.9}}}, "agents names 'Agregator', which does not play", "Aggregator"),
        ({"correlated": [{"agents": ["Agent-1", "Agent2"], "correlation": 0.5}]}, "correlated names 'Agent2'", "Ag"),
    ],
)  # fmt: skip
def test_a_simulated_panel_names_only_agents_it_has(
    tmp_path: Path, players: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(PluginError, match=message) as caught:
        played(tmp_path / "run", players, "vote", "debate")
    assert hint in str(caught.value) and not (tmp_path / "run").exists(), "nothing has been played"


def test_an_agent_of_one_of_several_methods_may_be_named(tmp_path: Path) -> None:
    players = {"agents": {"Coordinator": {"accuracy": 0.9}, "Agent-1": {"accuracy": 0.8}}}
    assert len(played(tmp_path / "run", players, "vote", "darkforest").scores) == 4
    assert len(played(tmp_path / "part", players, "vote").scores) == 2, "a part of a spec plays as the whole does"
    policy = {"use": "simulated", "agents": {"Agnet-2": {"accuracy": 0.5}}}
    agents = {"default": "model", "rest": {"policy": policy, "agents": ["Agent-2"]}}
    with pytest.raises(PluginError, match=r"Agnet-2(.|\n)*Did you mean Agent-2"):
        played(tmp_path / "group", {}, "vote", agents=agents)


def test_the_place_of_a_misspelt_agent_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(
        "name: x\ntask: {use: arithmetic, size: 1}\nprompts: panels/standard\nmetrics: [score]\n"
        "protocol: {use: vote, agents: 2}\nbaseline:\n  use: simulated\n  agents:\n    Agent-9: {accuracy: 0.9}\n"
    )
    with pytest.raises(PluginError, match=r"x\.yaml:9:\d+: agents names 'Agent-9'"):
        evaluate(str(file), output_path=tmp_path / "run", project=BUILTIN)
