"""`harness blame --by model`: of two models in one run, the one whose planted faults made episodes fail is named."""

import json
from pathlib import Path

import pytest

from harness.api import Completion, Request
from harness.config.project import find
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.blame_tables import Blame
from harness.extensions.blame.findings import keep
from harness.extensions.charts import ChartOptions, chart
from harness.extensions.charts.plot_command import material
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run

HEADLINE = {"metric": "agreed", "ceiling": {"use": "coin", "bias": 1.0}}
"""With this ceiling all say a."""


def mostly_right(request: Request) -> Completion:
    """Says a; in the last turn of the first case one agent says b."""
    case, *_, agent, turn, _ = request.id.split("/")[1:]
    return Completion("b" if (case, agent, turn) == ("c0", "S1", "2") else "a")


def two_models(folder: Path, worse: str = "worse", ask: bool = False) -> Blame:
    """Two or three agents, one of which is played by a second model, which says b in every turn."""
    declared = {"second": {"use": "mock", "model": worse, "text": "b"}}
    agents = {"default": "model", "guest": {"count": 1, "model": "second"}}
    given = [f"{key}={json.dumps(value)}" for key, value in
             {"models": declared, "agents": agents, "headline": HEADLINE, "matrix.agents": [3]}.items()]  # fmt: skip
    played = run(folder, Mock(model="better", function=mostly_right), overrides=tuple(given))
    asked = Mock(model="better", function=mostly_right) if ask else None
    return blamed(played, model=asked, project=TOY)


def rows(found: Blame, title: str) -> dict[tuple[str, ...], list[float | None]]:
    table = next(table for table in found.tables if table.title.startswith(f"{title}:"))
    return {row.names: [cell.value for cell in row.cells] for row in table.rows}


def test_the_model_with_the_planted_faults_is_named(tmp_path: Path) -> None:
    found = two_models(tmp_path / "run", ask=True)
    guests = {
        one.episode: {agent for agent, role in found.roles[one.episode].items() if role == "guest"}
        for one in found.verdicts
    }
    assert len(found.verdicts) == 4 and all(one.finding == "blamed" for one in found.verdicts)
    models = rows(found, "By model")
    decisive = {one.episode: {*one.agents} for one in found.verdicts}
    assert models[("worse",)][0] == sum(bool(decisive[name] & guests[name]) for name in guests) / 4 == 1
    assert models[("better",)][0] == sum(bool(decisive[name] - guests[name]) for name in guests) / 4 == 0.25
    apart = rows(found, "By model and agent")
    assert {agent for model, agent in apart if model == "worse"} == set().union(*guests.values())
    assert {agent for model, agent in apart if model == "better"} == {"S1"}
    [note] = [note for table in found.tables for note in table.notes if note.startswith("Agents that it plays")]
    assert "better 2" in note and "worse 1" in note


def test_without_a_model_to_ask_decisive_moves_are_known_and_shares_are_not(tmp_path: Path) -> None:
    found = two_models(tmp_path / "run")
    assert [one.finding for one in found.verdicts] == ["unanswered", "blamed", "blamed", "blamed"]
    assert rows(found, "By model") == {("worse",): [1, None]}


def test_shares_of_models_add_up_to_what_was_lost(tmp_path: Path) -> None:
    found = two_models(tmp_path / "run", ask=True)
    assert all(one.shares for one in found.verdicts)
    models = rows(found, "By model")
    assert sum(share or 0 for _, share in models.values()) == pytest.approx(1)
    assert (models[("worse",)][1] or 0) > (models[("better",)][1] or 0) > 0


def test_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    found = two_models(tmp_path / "run", worse="better")
    assert {names[0] for names in rows(found, "By model")} <= {"better (model)", "better (second)"}
    assert rows(found, "By model")[("better (second)",)][0] == 1


def test_the_command_counts_by_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two_models(tmp_path / "run")
    monkeypatch.chdir(TOY.root)
    assert find().root == TOY.root
    out = invoke(capsys, "blame", str(tmp_path / "run"), "--by", "model", "--quiet")[1]
    assert "By model:" in out and "By model and agent:" in out
    assert "By agent:" not in out and "By round" not in out and "By group" not in out


def test_the_chart_counts_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = two_models(tmp_path / "run", ask=True)
    monkeypatch.chdir(TOY.root)
    keep(found.run.folder, as_json(found))
    drawn = chart("blame", material([load_run(tmp_path / "run")]), ChartOptions(by="model"))
    assert ("worse", 4) in drawn.rows
