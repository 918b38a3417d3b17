"""`harness messages`: who sent how much to whom, as data and as heat maps."""

import csv
import io
import json
from pathlib import Path

import pytest

import harness
from harness.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "r"
    sets = ["matrix.agents=[5]", "matrix.problem=[global_maximum]"]
    harness.evaluate("silo_quick", sets=sets, output_path=folder)
    return folder


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    assert main(["messages", *arguments]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def condition(protocol: str) -> str:
    return f"protocol={protocol},agents=5,problem=global_maximum"


def test_messages_go_from_sender_to_receiver(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(run), "--condition", condition("P2P"))
    to_hub = {(f"Agent-{i}", "Agent-0", "1") for i in range(1, 5)}
    back = {("Agent-0", f"Agent-{i}", "1") for i in range(1, 5)}
    assert {(row["sender"], row["receiver"], row["messages"]) for row in found} == to_hub | back
    assert all(int(row["characters"]) > 0 for row in found)


def test_a_broadcast_goes_to_everybody_and_is_one_row(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(run), "--condition", condition("BP"))
    assert [(row["sender"], row["receiver"]) for row in found] == [(f"Agent-{i}", "*") for i in (1, 2, 3, 4, 0)]


def test_of_files_the_writer_sends_and_the_reader_receives(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(run), "--condition", condition("SFS"))
    pairs = {(row["sender"], row["receiver"]) for row in found}
    assert pairs == {(f"Agent-{i}", "Agent-0") for i in range(1, 5)} | {("Agent-0", f"Agent-{i}") for i in range(1, 5)}
    assert {row["characters"] for row in found} == {""}


def test_json_and_a_file_and_heat_maps(run: Path, tmp_path: Path) -> None:
    file, plots = tmp_path / "out.json", tmp_path / "plots"
    assert main(["messages", str(run), "--format", "json", "--output", str(file), "--plots", str(plots)]) == 0
    assert {row["episode"].split(",")[0] for row in json.loads(file.read_text())} == {
        "protocol=P2P", "protocol=BP", "protocol=SFS",
    }  # fmt: skip
    drawn = sorted(plots.iterdir())
    assert [path.name for path in drawn] == ["messages1.png", "messages2.png", "messages3.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_what_cannot_be_told_is_said(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["messages", str(run), "--condition", "nowhere"]) == 2
    assert "no finished episode of condition 'nowhere'" in capsys.readouterr().err
    harness.evaluate("dpbench_quick", repeats=1, output_path=tmp_path / "other")
    assert main(["messages", str(tmp_path / "other")]) == 2
    assert "Runs of the protocol action_rounds do" in capsys.readouterr().err
