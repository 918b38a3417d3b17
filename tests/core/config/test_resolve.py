"""From a spec's names to objects: inner references, containers, agents, and what plugins do wrong on the way."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import PluginError, SpecError, UserError
from harness.config import resolve, spec
from harness.config.plan import Plan
from harness.config.project import Project, builtin, find
from harness.engines.mock import Mock

TOY = Path(__file__).parents[2] / "toy"

CHOIR = '''
"""Asks whoever it likes."""
import random
from typing import Any
from harness.api import Outcome, Policy, Protocol, Turn, plugin

@plugin
class Choir(Protocol):
    """Asks whoever it likes."""
    voices: list[Policy]
    solo: Policy | None = None
    parts: dict[str, Policy] | None = None
    names: tuple[str, ...] = ()
    tags: frozenset[str] | None = None
    wrong: str = ""

    def __post_init__(self):
        if self.wrong:
            {}[self.wrong]

    def play(self, task, case, agents, rng):
        yield []
        return Outcome()
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project of its own on top of the toy one, with one odd protocol."""
    folder = tmp_path / "project" / "registry" / "protocols"
    folder.mkdir(parents=True)
    (folder / "choir.py").write_text(CHOIR)
    (tmp_path / "project" / "harness.yaml").write_text(f"parents: [{TOY}]\n")
    return find(tmp_path / "project")


def plan(project: Project, **changes: Any) -> Plan:
    body = {"extends": "toy", "name": "t", **changes}
    return resolve.plan(spec.parse(body, project), project, Mock())


def test_a_metric_that_there_is_not_is_answered_with_those_of_the_task(project: Project) -> None:
    with pytest.raises(UserError) as caught:
        plan(project, metrics=["accuracy"])
    assert "there is no metric 'accuracy'" in caught.value.message
    assert caught.value.hint.startswith("This task's own: agreed")
    with pytest.raises(UserError) as caught:
        plan(project, metrics=["agred"])
    assert caught.value.hint.startswith("Did you mean agreed? This task's own:")


def test_references_in_lists_and_mappings_are_built(project: Project) -> None:
    body = {
        "use": "choir",
        "voices": ["coin", {"use": "coin", "bias": 0.25}],
        "solo": "illegal",
        "parts": {"bass": "coin"},
        "names": ["a", "b"],
        "tags": ["x", "x"],
    }
    protocol: Any = plan(project, protocol=body).conditions[0].protocol
    assert [type(voice).__name__ for voice in (*protocol.voices, protocol.solo, protocol.parts["bass"])] == [
        "Coin",
        "Coin",
        "Illegal",
        "Coin",
    ]
    assert [voice.bias for voice in protocol.voices] == [0.5, 0.25]
    assert protocol.names == ("a", "b") and protocol.tags == frozenset({"x"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("voices: [coin, {use: coin, bais: 1}]", "5:30: policy 'coin': unknown key 'bais'. Did you mean bias?"),
        ("voices: [cion]", "5:12: there is no policy 'cion'"),
        ("voices: []\n  parts: {bass: cion}", "6:17: there is no policy 'cion'"),
        ("voices: []\n  wrong: x", "4:3: Choir fails: KeyError: 'x'"),
    ],
)
def test_mistakes_in_inner_references_say_where(project: Project, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"extends: toy\nname: t\nprotocol:\n  use: choir\n  {text}\n")
    with pytest.raises((SpecError, PluginError)) as caught:
        resolve.plan(spec.load(str(file), project), project, Mock())
    assert str(caught.value).startswith(f"{file}:{says}")


def test_a_share_of_agents_is_counted_as_a_person_would(project: Project) -> None:
    """0.29 · 50 is 14.499999999999998 to a computer, 0.58 · 50 is 28.999999999999996."""
    result = plan(project, matrix={"agents": [50]}, agents={"o": {"share": 0.58}})
    condition = result.conditions[0]
    assert len(condition.assign_groups(condition.task.example(), 0).roles) == 29


def test_who_sits_where_can_be_swept(project: Project) -> None:
    """Methods have different agents: nobody sits at a table that is not set."""
    matrix = {"agents": [{"name": 2, "first": ["S0"]}, {"name": 3, "first": ["S0", "S2"]}, {"name": 4, "first": []}]}
    result = plan(project, matrix=matrix, agents={"o": {"agents": "${agents.first}", "policy": "coin"}})
    roles = [condition.assign_groups(condition.task.example(), 0).roles for condition in result.conditions]
    assert roles == [{"S0": "o"}, {"S0": "o", "S2": "o"}, {}]


def test_what_is_true_or_false_can_be_swept(project: Project) -> None:
    agents = {"o": {"agents": ["S0"], "scored": "${f}"}}
    result = plan(project, matrix={"agents": [2], "f": [True, False]}, structured_output="${f}", agents=agents)
    assert [condition.structured_output for condition in result.conditions] == [True, False]
    assert [{group.name: group.scored for group in c.groups}["o"] for c in result.conditions] == [True, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "matrix: {f: [true, maybe]}\nstructured_output: ${f}",
            "3:20: 'structured_output' must be true or false, found 'maybe'",
        ),
        (
            "structured_output: maybe",
            "3:20: 'structured_output' is 'maybe'; it must be true, false or the ${variable} of a matrix",
        ),
        (
            "matrix: {f: [1]}\nagents: {o: {agents: [S0], scored: '${f}'}}",
            "4:36: group 'o': 'scored' must be true or false, found the number 1",
        ),
    ],
)
def test_what_is_neither_true_nor_false_is_refused(project: Project, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(f"extends: toy\nname: t\n{text}\n")
    with pytest.raises(SpecError) as caught:
        resolve.plan(spec.load(str(file), project), project, Mock())
    assert str(caught.value).startswith(f"{file}:{says}")


@pytest.mark.parametrize(
    ("agents", "says"),
    [
        ({"o": {"count": 1, "share": 0.5}}, "count and share"),
        ({"o": {"agents": ["S0", "S0"]}}, "'agents' has 'S0' twice"),
        ({"o": {"agents": "S0"}}, "'agents' must be a list, found text 'S0'"),
        ({"default": {"model": "model", "count": 1}}, "default has the agents in no other group"),
        ({"o": {"agents": ["S0"]}, "p": {"agents": ["S0"]}}, "no free agent 'S0'"),
        ({"o": {"count": 9}}, "wants 9 agents; 2 are free"),
    ],
)
def test_agents_that_do_not_add_up(project: Project, agents: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        list(plan(project, agents=agents).episodes())
    assert says in str(caught.value)
    assert str(caught.value).startswith("the spec's "), "the place is missing"


@pytest.mark.parametrize(("wrong", "line", "column"), [("truth: sum(dat)", 16, 18), ("truth: 1\n      trut: 2", 17, 7)])
def test_a_mistake_in_a_swept_value_points_at_the_value(wrong: str, line: int, column: int, tmp_path: Path) -> None:
    text = """\
name: swept
task: "${one.task}"
protocol: {use: action_rounds, channel: mailbox}
prompts: silo/standard
matrix:
  agents: [2]
  one:
  - name: right
    task: {use: sharded, problem: p, agents: "${agents}", draw: {data: "[1]"}, question: "?", truth: "1"}
  - name: wrong
    task:
      use: sharded
      problem: p
      draw: {data: "[1]"}
      question: "?"
      WRONG
metrics: [calls]
baseline: random
"""
    file = tmp_path / "spec.yaml"
    file.write_text(text.replace("WRONG", wrong))
    with pytest.raises(UserError) as caught:
        resolve.plan(spec.load(str(file), builtin()), builtin())
    place = caught.value.place
    assert place is not None and (place.line, place.column) == (line, column), caught.value


def test_a_run_of_the_specs_own_models_is_called_after_them(project: Project) -> None:
    models = {"b": {"use": "mock", "model": "big"}, "s": {"use": "mock", "model": "small"}}
    agents = {"default": {"model": "s"}, "o": {"model": "b", "count": 1}}
    loaded = spec.parse({"extends": "toy", "name": "t", "models": models, "agents": agents}, project)
    loaded.data.pop("baseline", None)
    assert resolve.plan(loaded, project, None).model == "big + small"


def test_what_a_plugin_thinks_of_its_parameters_is_said_once() -> None:
    data = {
        "name": "x",
        "task": {"use": "arithmetic", "operators": "%"},
        "protocol": "single",
        "prompts": "qa/standard",
    }
    with pytest.raises(UserError, match="the spec's task: operators must be any of") as caught:
        resolve.plan(spec.parse(data, builtin()), builtin(), Mock())
    assert "".join(traceback.format_exception(caught.value)).count("operators must be any of") == 1
