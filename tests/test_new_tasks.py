"""`harness new task` for every kind, and what `harness validate` proves of tasks that a spec declares."""

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.new import STARTERS
from tests.helpers.commands import invoke

KINDS = sorted(folder.name for folder in STARTERS.iterdir())
SHOWN = {
    "network": "Mean score",
    "questions": "always 43 0.25",
    "sharded": "silo/oracle mailbox 1.00",
    "world": "greedy 56",
}
"""What the baseline of a starter scores."""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "mine"
    assert main(["new", str(folder)]) == 0
    return folder


@pytest.fixture
def project(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, which is the working directory."""
    shutil.copytree(mine, tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_task_is_valid_and_plays(project: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    code, out, _ = invoke(capsys, "new", "task", "first_try", "--kind", kind)
    assert code == 0 and "specs/first_try.yaml" in out and "harness eval --spec specs/first_try.yaml" in out
    code, out, err = invoke(capsys, "validate", "specs/first_try.yaml")
    assert code == 0, err
    assert kind == "questions" or "20 cases; random agents: " in out
    code, out, err = invoke(capsys, "eval", "--spec", "specs/first_try.yaml", "--quiet")
    assert code == 0 and "first_try" in out, err
    assert SHOWN[kind] in " ".join(out.split()), out
    assert len((project / "specs/first_try.yaml").read_text().splitlines()) <= 45
    assert not any(file for file in project.rglob("*") if file.is_file() and b"__NAME__" in file.read_bytes())
    code, _, err = invoke(capsys, "new", "task", "first_try", "--kind", kind)
    assert code == 2 and "exists already" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["task", "x"], "needs a kind, found no --kind"),
        (["task", "x", "--kind", "shardedd"], "Did you mean sharded?"),
        (["task", "--kind", "world"], "a task's name is one word"),
        (["task", "../x", "--kind", "world"], "a task's name is one word"),
        (["a", "b"], "takes one folder"),
        (["a", "--kind", "world"], "takes one folder"),
    ],
)
def test_mistakes(project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, _, err = invoke(capsys, "new", *arguments)
    assert code == 2 and message in err


def test_a_task_needs_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = invoke(capsys, "new", "task", "x", "--kind", "world")
    assert code == 2 and "there is no harness.yaml here or above" in err and "harness new my_project" in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mean(data)", "mean(dato)", "specs/prices.yaml:19:18: dato: unknown name. Did you mean data?"),
        ("mean(data)", "1 / (min(data) - 1)", "ZeroDivisionError"),  # some seeds draw a 1
        ("sum(price > middle for price in data)", "sum(price > middle for price in data) / 0", "ZeroDivisionError"),
        ("public: []", "public: [answer_to_all]", "answer_to_all"),
    ],
)
def test_a_faulty_task_is_found(
    project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    invoke(capsys, "new", "task", "prices", "--kind", "sharded")
    spec = project / "specs/prices.yaml"
    text = spec.read_text()
    assert text.count(old) == 1
    spec.write_text(text.replace(old, new))
    code, _, err = invoke(capsys, "validate", "specs/prices.yaml")
    assert code == 2 and message in err and "Traceback" not in err, err


def test_a_right_answer_in_a_prompt_is_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invoke(capsys, "new", "task", "prices", "--kind", "sharded")
    spec = project / "specs/prices.yaml"
    text = (
        spec.read_text()
        .replace("draw:", "draw:\n    secret: sum([randint(1, 9) for _ in range(4)])")
        .replace("public: []", "public: [secret]")
    )
    spec.write_text(text.replace("truth: sum(price > middle for price in data)", "truth: secret"))
    code, _, err = invoke(capsys, "validate", "specs/prices.yaml")
    assert code == 2 and "the context holds the target, as known.secret" in err, err
