"""The package as its users meet it: through `harness.evaluate`, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from harness_echo.parrot import Parrot

import harness
from harness.cli import main
from harness.extensions.yaml_tasks.conformance import check_engine


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    folder = tmp_path_factory.mktemp("runs") / "cuckoo"
    added = {"echo": 5}
    return harness.evaluate("cuckoo", "parrot", executor={"use": "canon", "voices": 4}, output_path=folder, **added)  # type: ignore[arg-type]


def test_the_engine_keeps_its_contract() -> None:
    assert check_engine(Parrot()) == []


def test_every_condition_is_played_in_two_voices(run: harness.Run) -> None:
    assert [score.labels["voice"] for score in run.scores] == ["first"] * 3 + ["second"] * 3
    assert [score.number("score") for score in run.scores] == [1.0] * 6


def test_the_tables_count_and_say_what_reaches_the_threshold(run: harness.Run) -> None:
    words, numbers = run.tables
    assert "score: 6 of 6 episodes reach 0.5." in words.notes
    assert numbers.rows[0].cells[0].value == 6


def test_loudness_follows_the_run(run: harness.Run) -> None:
    assert {score.number("loudness") for score in run.scores} == {5.0}
    assert harness.load_run(run.folder).scores == run.scores


def test_a_run_ends_when_it_is_out_of_breath(tmp_path: Path) -> None:
    extra: Any = {"breath": 3}  # a parameter that this package adds
    short = harness.evaluate("arithmetic", "parrot", limit=4, output_path=tmp_path / "r", **extra)
    assert len(short.scores) == 3
    assert any("Out of breath" in note for note in short.tables[0].notes)
    assert len(harness.evaluate("arithmetic", "parrot", limit=4, output_path=tmp_path / "r").scores) > 3


def test_the_neighbor_hears_every_move(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    extra: Any = {"neighbor": True}
    harness.evaluate("arithmetic", "parrot", limit=2, output_path=tmp_path / "r", **extra)
    moves = (tmp_path / "r" / "journal.jsonl").read_text("utf-8").count('"k":"move"')
    assert moves and f"The neighbor has heard {moves} moves." in caplog.text


def test_a_negative_volume_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "cuckoo", "--model", "parrot", "--echo", "-1", "--output_path", str(tmp_path / "r")]
    assert main(command) == 2
    assert "nothing is that quiet" in capsys.readouterr().err


def test_a_plan_counts_encores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--spec", "cuckoo", "--encores", "2"]) == 0
    assert "encores         12 calls more" in capsys.readouterr().out


def test_an_engine_that_repeats_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eval", "--spec", "cuckoo", "--model", "openai", "--output_path", str(tmp_path / "r")]
    command += ["--model_args", "model=m,base_url=http://127.0.0.1:9/v1"]
    assert main(command) == 2
    assert "repeats no words" in capsys.readouterr().err


def test_run_json_names_the_executor(run: harness.Run) -> None:
    assert '"voices": 4' in (run.folder / "run.json").read_text("utf-8")


def test_a_finding_stands_beside_its_episode(run: harness.Run) -> None:
    first = run.scores[0].id
    (run.folder / "echo.json").write_text(json.dumps({first: 3}), "utf-8")
    [finding] = run.episode(first).findings
    assert (finding.name, finding.facts["count"]) == ("echo", 3)
    assert not run.episode(run.scores[1].id).findings


def test_it_is_drawn_and_exported(run: harness.Run, tmp_path: Path) -> None:
    folder = str(run.folder)
    assert main(["plot", folder, "--kind", "decay", "-o", str(tmp_path / "chart.png")]) == 0
    assert (tmp_path / "chart.png").stat().st_size > 0
    assert main(["export", folder, "--to", "echo", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "echo.txt").read_text("utf-8") == "cuckoo\n" * 6


def test_it_says_and_sings(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["echo", "hello"]) == 0
    assert main(["list", "tasks", "--songs", "cuck"]) == 0
    assert capsys.readouterr().out == "hello hello\ncuckoo         two notes, over and over\n"


def test_the_check_finds_a_silent_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "quiet.yaml"
    spec.write_text('extends: arithmetic\ndescription: "..."\n', "utf-8")
    assert main(["validate", str(spec)]) == 2
    assert f"{spec}:2:14: description: it says nothing" in capsys.readouterr().err
    assert main(["validate", "cuckoo"]) == 0
    assert "every condition is played twice" in capsys.readouterr().out


def test_a_task_starts_from_the_starter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", str(tmp_path / "mine")]) == 0
    monkeypatch.chdir(tmp_path / "mine")
    assert main(["new", "task", "owl", "--kind", "cheer"]) == 0
    assert main(["validate", "specs/owl.yaml"]) == 0
    assert "owl.yaml: ok" in capsys.readouterr().out
