"""`harness validate`: what only an example shows, which is played with idle agents."""

import contextlib
from pathlib import Path

import pytest

from tests.helpers.commands import ROOT, TOY, invoke


@pytest.mark.parametrize("name", ["teams/two_agents", "teams/software"])
def test_programs_of_models_are_asked_about_when_they_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    with contextlib.chdir(ROOT):
        assert invoke(capsys, "validate", name) == (0, f"{name}: ok\n", "")
        code, _, err = invoke(capsys, "eval", "--spec", name, "--limit", "1", "--output_path", str(tmp_path / "run"))
    assert code == 2 and "--allow_code_execution" in err


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ("task: {broken: context}", "no context for S1 (registry/tasks/pick.py:"),
        ("task: {broken: cases}", "no cases today"),
        ("agents: {default: model, o: {policy: coin, agents: [S99]}}", "no free agent 'S99'"),
        ("agents: {default: model, o: {policy: coin, count: 99}}", "wants 99 agents; "),
    ],
)
def test_validate_finds_what_an_example_shows(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changed: str, says: str
) -> None:
    (tmp_path / "bad.yaml").write_text(f"extends: toy\nname: x\n{changed}")
    with contextlib.chdir(TOY):
        code, out, err = invoke(capsys, "validate", str(tmp_path / "bad.yaml"))
    assert code == 2 and ": 1 problem\n" in out
    assert says in err and "bad.yaml" in err and "Traceback" not in err


def test_validate_finds_groups_of_agents_that_are_not_on_the_panel(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    panel = "extends: arithmetic\nname: x\nprompts: panels/standard\nprotocol: discussion\nagents:\n  default: model\n"
    (tmp_path / "bad.yaml").write_text(f"{panel}  odd: {{agents: [Agnt-1]}}\n")
    with contextlib.chdir(ROOT):
        code, _, err = invoke(capsys, "validate", str(tmp_path / "bad.yaml"))
    assert code == 2 and "bad.yaml:7:17: group 'odd': no free agent 'Agnt-1'" in err and "Did you mean Agent-1" in err


def test_validate_finds_a_template_variable_without_a_value(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    project = tmp_path / "p"
    (project / "prompts" / "typo").mkdir(parents=True)
    (project / "harness.yaml").write_text(f"name: p\nparents: [{TOY}]\n")
    (project / "prompts" / "typo" / "prompts.yaml").write_text("base: toy/base\n")
    (project / "prompts" / "typo" / "retry.j2").write_text("\n{% if round > 99 %}{{ eror }}{% endif %}")
    (project / "s.yaml").write_text("extends: toy\nname: s\nprompts: typo\n")
    with contextlib.chdir(project):
        code, _, err = invoke(capsys, "validate", "s.yaml")
    assert code == 2
    assert "retry.j2:2:1: prompt set 'typo': undefined variable 'eror'" in err and "Did you mean error" in err


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("prompts: qa/standard", "bad.yaml:4:10"),
        ("agents:\n  default: {model: model, prompts: qa/standard}", "bad.yaml:5:"),
    ],
)
def test_a_missing_template_has_a_place_and_the_sets_that_fit(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, where: str, place: str
) -> None:
    body = "name: x\ntask: {use: arithmetic, size: 2}\nprotocol: {use: debate, agents: 2}"
    (tmp_path / "bad.yaml").write_text(f"{body}\n{where}\n")
    with contextlib.chdir(ROOT):
        code, _, err = invoke(capsys, "validate", str(tmp_path / "bad.yaml"))
    assert code == 2 and f"{place}" in err
    assert "prompt set 'qa/standard' has no template 'debate.j2'" in err and "Sets that fit: panels/standard." in err


def test_validate_finds_a_metric_that_fails_every_episode_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    metric = "from harness.api import Metric, plugin\n\n@plugin\nclass Fussy(Metric):\n"
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "fussy.py").write_text(f"{metric}    def measure(self, episode):\n        return 1 / 0\n")
    (tmp_path / "harness.yaml").write_text(f"name: p\nparents: [{TOY}]\n")
    (tmp_path / "s.yaml").write_text("extends: toy\nname: s\nmetrics:\n  - agreed\n  - fussy\n")
    with contextlib.chdir(tmp_path):
        code, _, err = invoke(capsys, "validate", "s.yaml")
    assert code == 2 and "s.yaml:5:5: " in err
    assert err.count("metric fussy: ZeroDivisionError: division by zero (metrics/fussy.py:6)") == 1


SPEED = """\
from harness.api import Metric, plugin


@plugin
class Speed(Metric):
    def measure(self, episode):
        calls = [call for move in episode.moves() for call in move.calls]
        tokens = sum(call.input_tokens + call.output_tokens + call.peer_tokens for call in calls)
        return tokens / len(calls) / sum(call.latency for call in calls)
"""


@pytest.mark.parametrize(("player", "code"), [("model", 0), ("{policy: coin}", 2)])
def test_a_metric_may_divide_by_calls_where_a_model_plays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, player: str, code: int
) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "speed.py").write_text(SPEED)
    (tmp_path / "harness.yaml").write_text(f"name: p\nparents: [{TOY}]\n")
    (tmp_path / "s.yaml").write_text(f"extends: toy\nname: s\nmetrics+: [speed]\nagents: {{default: {player}}}\n")
    with contextlib.chdir(tmp_path):
        got, _, err = invoke(capsys, "validate", "s.yaml")
    assert got == code, err
    assert ("metric speed: ZeroDivisionError" in err) == bool(code)


@pytest.fixture
def swept(tmp_path: Path) -> Path:
    """A project whose protocol fails, and a spec that sweeps it and a number of agents."""
    (tmp_path / "registry" / "protocols").mkdir(parents=True)
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n")
    protocol = (
        "from harness.api import Protocol, plugin\n\n\n@plugin\nclass Failing(Protocol):\n    rounds: int = 1\n\n"
    )
    protocol += "    def play(self, task, case, agents, rng):\n        said = [] + self.rounds\n        yield said\n"
    (tmp_path / "registry" / "protocols" / "failing.py").write_text(protocol)
    (tmp_path / "swept.yaml").write_text(SWEPT)
    return tmp_path / "swept.yaml"


SWEPT = """name: swept
task:
  use: world
  agents: "${size}"
  rules: Play.
  state: {pot: 0}
  actions: {GO: {}}
  each_round: {pot: pot + n}
  end: rounds >= 1
  scores: {score: 1 / (pot - n)}
protocol: {use: failing, rounds: "${rounds}"}
prompts: world/standard
matrix: {size: [2, 3], rounds: [1, 2]}
metrics: [score]
"""


def test_a_mistake_of_all_conditions_is_one_line_where_it_lies(capsys: pytest.CaptureFixture[str], swept: Path) -> None:
    with contextlib.chdir(swept.parent):
        code, out, err = invoke(capsys, "validate", "swept.yaml")
        assert code == 2 and "swept.yaml: 1 problem" in out and len(err.splitlines()) == 1
        assert "swept.yaml:11:11: in all 4 conditions: TypeError: can only concatenate" in err
        assert "(registry/protocols/failing.py:9)" in err
        swept.write_text(SWEPT.replace("use: failing, rounds", "use: steps, max_timesteps"))
        code, out, err = invoke(capsys, "validate", "swept.yaml")
    assert code == 2 and len(err.splitlines()) == 1  # though agents, and so values in the message, differ
    assert "swept.yaml:10:19: in all 4 conditions: 1 / (pot - n): " in err


def test_a_mistake_of_some_conditions_says_of_how_many(capsys: pytest.CaptureFixture[str], swept: Path) -> None:
    swept.write_text(SWEPT.replace("use: failing, rounds", "use: steps, max_timesteps").replace("- n)", "- 2)"))
    with contextlib.chdir(swept.parent):
        code, _, err = invoke(capsys, "validate", "swept.yaml")
    assert code == 2 and "in 2 of 4 conditions, first in condition size=2,rounds=1: 1 / (pot - 2): " in err


def test_a_folder_of_the_project_stands_for_its_specs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for root in (tmp_path / "mine", tmp_path / "other"):
        (root / "specs" / "hard").mkdir(parents=True)
        (root / "harness.yaml").write_text("parents: [harness_builtin]\n")
        for name in ("one", "hard/two"):
            (root / "specs" / f"{name}.yaml").write_text("extends: arithmetic\nname: x\n")
    with contextlib.chdir(tmp_path / "mine"):
        assert invoke(capsys, "validate", ".") == (0, "hard/two: ok\none: ok\n", "")
        assert invoke(capsys, "validate", "specs/hard") == (0, "hard/two: ok\n", "")
        code, _, err = invoke(capsys, "validate", "../other")
    assert code == 2 and "../other is a folder" in err and "cd ../other; harness validate ." in err


def test_a_list_for_an_expression_is_written_in_quotes(capsys: pytest.CaptureFixture[str], swept: Path) -> None:
    swept.write_text(SWEPT.replace("{pot: 0}", "{pot: 0, past: []}"))
    with contextlib.chdir(swept.parent):
        code, _, err = invoke(capsys, "validate", "swept.yaml")
    assert code == 2 and """found a list []. As an expression it is text: "[]"\n""" in err
