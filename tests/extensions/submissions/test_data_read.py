"""Which files a submission may read: those that the project's own spec of its name reads."""

from pathlib import Path

import pytest

from harness.cli import main

SPEC = """
name: {name}
task:
  use: dataset_qa
  data_files: {{test: data/{name}.jsonl}}
  doc_to_text: q
  doc_to_target: a
  answer: {{form: number}}
protocol: single
prompts: qa/standard
metrics: [score]
baseline: random
"""
ROW = '{"q": "2 + 2?", "a": "4"}\n'
HIDDEN = '["a hidden text"]\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two benchmarks, each with a file of its own."""
    root = tmp_path / "project"
    for name in ("sums", "others"):
        (root / "specs").mkdir(parents=True, exist_ok=True)
        (root / "data").mkdir(exist_ok=True)
        (root / "specs" / f"{name}.yaml").write_text(SPEC.format(name=name))
        (root / "data" / f"{name}.jsonl").write_text(ROW)
    (root / "harness.yaml").write_text("parents: [harness_builtin]\n")
    monkeypatch.chdir(root)
    return root


def submission(*words: str) -> str:
    """The file of a run of the spec `sums`, with these options."""
    played = ("--spec", "sums", "--model", "mock", "--model_args", 'text="The answer is 4."', "--quiet", *words)
    assert main(["eval", *played, "--output_path", "results/run"]) == 0
    assert main(["submit", "results/run", "-o", "run.zip"]) == 0
    return "run.zip"


def pins(digest: str) -> str:
    Path("pins.yaml").write_text(f"sums: {digest}\n")
    return "pins.yaml"


def plan_digest(capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["plan", "--spec", "sums"]) == 0
    return capsys.readouterr().out.partition("spec digest")[2].split()[0]


def test_a_run_is_verified_where_it_was_played(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = submission()
    assert main(["verify", file]) == 0
    assert main(["verify", file, "--pins", pins(plan_digest(capsys))]) == 0
    assert "run.zip: consistent" in capsys.readouterr().out


def test_a_spec_may_be_called_otherwise_than_its_file(project: Path) -> None:
    file = submission()
    Path("specs/sums.yaml").rename("specs/arithmetic.yaml")
    assert main(["verify", file]) == 0


@pytest.mark.parametrize("path", ["data/others.jsonl", "data/*s.jsonl", "{root}/data/others.jsonl"])
def test_files_of_other_specs_are_not_read(path: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = submission("--set", f"task.data_files.test={path.format(root=project)}")
    Path("data/others.jsonl").write_text(HIDDEN)
    Path("data/sums.jsonl").write_text(HIDDEN)
    capsys.readouterr()
    assert main(["verify", file]) == 2
    out, err = capsys.readouterr()
    assert "run.zip: not approved to be read:" in err and str(project / "data") in err
    assert "hidden" not in out + err
    assert "harness trust" not in err and "spec.yaml" not in err  # of a folder that is gone


def test_without_a_spec_of_its_name_nothing_is_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = submission()
    Path("specs/sums.yaml").unlink()
    assert main(["verify", file]) == 2
    assert "not approved to be read" in capsys.readouterr().err


def test_of_a_run_that_no_pin_names_nothing_is_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = submission("--set", "task.data_files.test=data/others.jsonl")
    capsys.readouterr()
    assert main(["verify", file, "--pins", pins("a" * 64)]) == 1
    out, err = capsys.readouterr()
    assert "pins.yaml pins sums at aaaa" in out and not err
