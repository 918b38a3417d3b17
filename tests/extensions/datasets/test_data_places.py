"""From where paths of data files count: the working directory, then the project of the spec."""

from pathlib import Path

import pytest

from harness.cli import main

SPEC = """
name: sums
task: {use: dataset_qa, SOURCE, doc_to_text: q, doc_to_target: a, answer: {form: number}}
protocol: single
prompts: qa/standard
metrics: [score]
baseline: random
"""
SOURCES = [
    "data_files: {test: data/test.jsonl}",
    "data_files: {test: data/*.jsonl}",
    "data_dir: data",
    "dataset_path: data",
]
ROW = '{"q": "2 + 2?", "a": "4"}\n'
BROKEN = "{broken\n"


def project(root: Path, source: str = SOURCES[0], row: str | None = ROW) -> Path:
    """A project with a spec and its data; the file of the spec."""
    (root / "specs").mkdir(parents=True)
    (root / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (root / "specs" / "sums.yaml").write_text(SPEC.replace("SOURCE", source))
    if row is not None:
        (root / "data").mkdir()
        (root / "data" / "test.jsonl").write_text(row)
    return root / "specs" / "sums.yaml"


@pytest.mark.parametrize("source", SOURCES)
def test_a_spec_finds_the_data_of_its_project(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = project(tmp_path / "project", source)
    for folder in (tmp_path / "project", spec.parent, tmp_path):
        monkeypatch.chdir(folder)
        assert main(["validate", str(spec)]) == 0


def test_the_working_directory_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path / "project", row=BROKEN)
    monkeypatch.chdir(spec.parent)
    assert main(["validate", str(spec)]) == 2
    assert f"{tmp_path}/project/data/test.jsonl:1:1: not JSON" in capsys.readouterr().err
    (spec.parent / "data").mkdir()
    (spec.parent / "data" / "test.jsonl").write_text(ROW)
    assert main(["validate", str(spec)]) == 0


def test_a_run_finds_the_data_of_a_project_that_its_own_builds_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "base")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "harness.yaml").write_text("parents: [../base]\n")
    (tmp_path / "base" / "harness.yaml").write_text("parents: [harness_builtin]\n")
    monkeypatch.chdir(mine)
    assert main(["eval", "--spec", "sums", "--quiet", "--output_path", "results/run"]) == 0
    assert main(["score", "results/run"]) == 0
    assert main(["verify", "results/run"]) == 0


@pytest.mark.parametrize("source", SOURCES[:3])
def test_a_message_names_every_place(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path / "project", source, row=None)
    monkeypatch.chdir(tmp_path)
    assert main(["validate", str(spec)]) == 2
    err = capsys.readouterr().err
    assert f"Looked for {tmp_path}/data" in err and f" and {tmp_path}/project/data" in err


def test_a_project_elsewhere_reads_its_own_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path / "project", "data_files: {test: ../project/../secret.jsonl}")
    (tmp_path / "secret.jsonl").write_text(ROW)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["validate", str(spec)]) == 2
    assert f"not approved to be read:\n    {tmp_path}/secret.jsonl" in capsys.readouterr().err.replace("\n  ", "\n")


def test_a_run_among_the_results_of_a_project_elsewhere_is_a_strangers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = project(tmp_path / "project")
    sent = tmp_path / "project" / "results" / "sent.yaml"
    sent.parent.mkdir()
    sent.write_text(spec.read_text())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["validate", str(sent)]) == 2
    assert "not approved to be read" in capsys.readouterr().err
