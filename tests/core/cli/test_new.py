"""`harness new`: what it refuses. Tests of extensions play what it copies."""

from pathlib import Path

import pytest
import yaml

from tests.helpers.commands import invoke


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "is not empty"),
        (["task", "x"], "needs a kind, found no --kind"),
        (["task", "x", "--kind", "shardedd"], "Did you mean sharded?"),
        (["task", "--kind", "world"], "a task's name is one word"),
        (["task", "../x", "--kind", "world"], "a task's name is one word"),
        (
            ["task", "x", "--kind", "world"],
            "no harness.yaml here or above\n  Start a project first: harness new my",
        ),
        (["a", "b"], "takes one folder"),
        (["a", "--kind", "world"], "takes one folder"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    code, _, err = invoke(capsys, "new", *arguments)
    assert code == 2 and message in err
    assert [*tmp_path.iterdir()] == [tmp_path / "notes.txt"]


@pytest.mark.parametrize("name", ["mine", "yes", "Zoë's: 1st", "1"])
def test_a_project_is_called_after_its_folder(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = invoke(capsys, "new", str(tmp_path / name))
    assert (code, err) == (0, "")
    assert yaml.safe_load((tmp_path / name / "harness.yaml").read_text())["name"] == name
    assert (tmp_path / name / "README.md").read_text().startswith(f"# {name}\n")
    files = [file for file in (tmp_path / name).rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert files and not [file for file in files if "__NAME__" in file.read_text()]
