"""The metric `credit`: what an agent adds to its team's number."""

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import harness
from harness.api.errors import UserError
from harness.config import building
from harness.config.project import Project, find
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.credit import FILE, Crediting
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY

FLOOR = {"use": "coin", "bias": 1.0}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The toy project, with the metrics of the built-in one."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "harness.yaml").write_text(f"name: credited\nparents: [{TOY.root}, harness_builtin]\n")
    return find(folder)


def credited(
    project: Project, folder: Path, model: Any = None, *metrics: dict[str, Any], overrides: tuple[str, ...] = ()
) -> Run:
    listed = ["agreed", *({"use": "credit", "by": FLOOR, **metric} for metric in metrics)]
    changes = (f"metrics={json.dumps(listed)}", *overrides)
    return harness.evaluate("toy", model, overrides=changes, output_path=folder, project=project)


@pytest.fixture(scope="module")
def coins(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Run:
    metrics = [{"name": "team"}, *({"name": f"of {agent}", "agent": agent} for agent in ("S0", "S1", "S2"))]
    how = ("baseline.bias=0.5", "agents=null")
    return credited(project, tmp_path_factory.mktemp("coins") / "run", None, *metrics, overrides=how)


def test_credits_are_shares_with_the_other_sign(coins: Run, project: Project) -> None:
    found = {one.episode: one for one in blamed(coins, FLOOR, metric="agreed", project=project).verdicts}
    assert any(one.shares for one in found.values())
    for score in coins.scores:
        verdict = found.get(score.id)
        for agent in ("S0", "S1", "S2"):
            if verdict is not None and verdict.shares and agent in verdict.shares:
                assert score.number(f"of {agent}") == -float(verdict.shares[agent].value)


def test_credits_of_all_agents_sum_to_what_the_team_is_better_than_the_floor(coins: Run, project: Project) -> None:
    assert {score.number("of S2") is None for score in coins.scores if score.labels["agents"] == 2} == {True}
    for score in coins.scores:
        own = [score.number(f"of {agent}") for agent in ("S0", "S1", "S2")]
        team, value = score.number("team"), score.number("agreed")
        assert team is not None and value is not None
        assert team == pytest.approx(sum(one for one in own if one is not None)) == pytest.approx(value - 1)


def test_one_observation_has_no_interval(coins: Run, project: Project, tmp_path: Path) -> None:
    shown = [line for line in Crediting.lines(coins) if "of S0" in line or "in brackets" in line]
    assert "[" in shown[0] and shown[1].startswith("team: in brackets the 95 % t interval of an agent's mean;")
    how = ("baseline.bias=0.5", "agents=null", "matrix.agents=[2]", "cluster=agents")
    lines = [*Crediting.lines(credited(project, tmp_path / "run", None, {"name": "team"}, overrides=how))]
    assert not any("[" in line or "in brackets" in line for line in lines)
    assert any(line.endswith("episodes of 1 observation") for line in lines if line.startswith("team of "))


def test_each_agent_has_a_line_with_its_mean(coins: Run) -> None:
    lines = [line.split() for line in Crediting.lines(coins) if line.startswith("team of ")]
    means = {agent: [s.number(f"of {agent}") for s in coins.scores] for agent in ("S0", "S1", "S2")}
    for line in lines:
        own = [number for number in means[line[2]] if number is not None]
        assert (float(line[3]), line[-2:]) == (pytest.approx(fmean(own), abs=1e-3), [str(len(own)), "episodes"])
    assert {line[2] for line in lines} == {*means} and [float(line[3]) for line in lines] == sorted(
        (float(line[3]) for line in lines), reverse=True
    )


def test_a_run_that_is_scored_again_keeps_its_credits(coins: Run, project: Project) -> None:
    before = [score.to_json() for score in coins.scores]
    assert [score.to_json() for score in rescored(coins.folder, project).scores] == before
    (coins.folder / FILE).write_text("[1")
    assert {score.number("team") for score in rescored(coins.folder, project).scores} == {None}


@pytest.mark.parametrize("damage", [["0.5"], {"S0": "0.5"}, {"S0": float("nan")}, {"S0": True}, 0.5])
def test_credits_that_are_no_numbers_count_as_unknown(project: Project, tmp_path: Path, damage: Any) -> None:
    how = ("baseline.bias=0.5", "agents=null", "repeats=1")
    done = credited(project, tmp_path / "run", None, {"name": "team"}, overrides=how)
    known = json.loads((done.folder / FILE).read_text())
    [entries] = known.values()
    broken, *others = entries
    entries[broken][1] = damage
    (done.folder / FILE).write_text(json.dumps(known))
    numbers = {score.id: score.number("team") for score in rescored(done.folder, project).scores}
    assert numbers[broken] is None and None not in {numbers[one] for one in others}


def test_a_note_says_why_episodes_have_no_credit(project: Project, tmp_path: Path) -> None:
    how = ("baseline.bias=0.5", "agents=null")
    metrics = ({"name": "team"}, {"name": "of S9", "agent": "S9"})
    done = credited(project, tmp_path / "run", None, *metrics, overrides=how)
    lacking = [line for line in Crediting.lines(done) if "episodes have none" in line]
    assert lacking == ["of S9: 8 of 8 episodes have none (no such agent in them)"]
    (done.folder / FILE).write_text("[1")
    why = "not measured yet: the same eval command measures them"
    damaged = [*Crediting.lines(rescored(done.folder, project))]
    assert damaged == [f"{name}: 8 of 8 episodes have none ({why})" for name in ("team", "of S9")]
    again = credited(project, tmp_path / "run", None, *metrics, overrides=how)
    assert [score.to_json() for score in again.scores] == [score.to_json() for score in done.scores]


def test_a_group_has_the_credit_of_its_agents(project: Project, tmp_path: Path) -> None:
    pairs = {"first": {"agents": ["S0"], "policy": {"use": "coin", "bias": 0.0}}}
    metrics = ({"name": "first", "group": "first"}, {"name": "S0", "agent": "S0"}, {"name": "rest", "group": "default"})
    how = ("baseline.bias=1.0", f"agents={json.dumps({'default': 'model', **pairs})}")
    done = credited(project, tmp_path / "run", None, *metrics, overrides=how)
    for score in done.scores:
        assert score.number("first") == score.number("S0") == -1 and score.number("rest") == 0


def test_models_are_asked_only_where_the_metric_may(project: Project, tmp_path: Path) -> None:
    model = building.engine({"use": "dice"}, TOY)
    none = credited(project, tmp_path / "none", model, {})
    calls = len(model.asked)  # type: ignore[attr-defined]
    assert None in {score.number("credit") for score in none.scores}
    assert ["a model would have to be asked: give it max_calls" in line for line in Crediting.lines(none)] == [True]
    again = building.engine({"use": "dice"}, TOY)
    some = credited(project, tmp_path / "some", again, {"max_calls": 10_000})
    assert None not in {score.number("credit") for score in some.scores if score.error is None}
    assert len(again.asked) > calls  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        pytest.param({"by": None}, "names no floor", id="floor"),
        pytest.param({"by": "coyn"}, "there is no policy 'coyn'", id="policy"),
        pytest.param({"of": "agree"}, "Did you mean agreed?", id="number"),
        pytest.param({"of": "credit"}, "no number of an episode", id="itself"),
        pytest.param({"group": "liars"}, "there is no group 'liars'", id="group"),
        pytest.param({"by": "silo/oracle"}, "cannot play agents=2: Oracle plays sharded tasks", id="misfit"),
    ],
)
def test_mistakes_say_what_to_do_before_anything_is_played(
    project: Project,
    tmp_path: Path,
    metric: dict[str, Any],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UserError, match="metrics") as found:
        credited(project, tmp_path / "run", None, metric)
    assert message in f"{found.value}" and not (tmp_path / "run").exists()
    monkeypatch.chdir(project.root)
    listed = json.dumps(["agreed", {"use": "credit", "by": FLOOR, **metric}])
    for command in ("validate", "plan"):
        code, _, err = invoke(capsys, command, "--spec", "toy", "--set", f"metrics={listed}")
        assert code == 2 and message in err
