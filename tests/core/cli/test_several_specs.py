"""`harness eval --spec a,b`: several specs in one command, one engine, a folder for each, one board."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.helpers.commands import TOY, invoke

KEPT = '''"""An engine that takes long to start."""

from pathlib import Path

from harness.api import Completion, plugin
from harness.api import Engine, Request, StaysUp


@plugin
class Kept(Engine, StaysUp):
    """Writes down when it starts for the first time, and when it closes."""

    log: str = ""

    def __post_init__(self) -> None:
        self.is_up = False

    @property
    def model(self) -> str:
        return "kept"

    async def start(self) -> None:
        self.note("" if self.is_up else "start ")
        self.is_up = True

    async def close(self) -> None:
        self.note("close ")

    async def complete(self, request: Request) -> Completion:
        return Completion("a")

    def note(self, what: str) -> None:
        with Path(self.log).open("a") as file:
            file.write(what)
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the toy project with two specs of one name each, and the working directory in it."""
    folder = tmp_path / "project"
    shutil.copytree(TOY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "registry/engines/kept.py").write_text(KEPT)
    (folder / "specs/second.yaml").write_text("extends: toy\nname: second\n")
    monkeypatch.chdir(folder)
    return folder


def log(project: Path) -> list[str]:
    return ["--model", "kept", "--model_args", f"log={project}/log", "--repeats", "1", "--output_path", "out"]


@pytest.mark.parametrize("words", [("--spec", "toy,second"), ("--spec", "toy", "--spec", "specs/second.yaml")])
def test_one_engine_plays_both_into_own_folders(
    project: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = invoke(capsys, "eval", *words, *log(project))
    assert code == 0, err
    assert (project / "log").read_text().split() == ["start", "close"], "up from the first run to the end of the last"
    assert sorted(path.name for path in (project / "out").iterdir()) == ["second-kept", "toy-kept"]
    assert out.index("results: out/toy-kept") < out.index("results: out/second-kept")
    board = out.partition("results: out/second-kept")[2]
    assert "toy: " in board and "second: " in board, "the board is last"


def test_the_same_command_goes_on(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = invoke(capsys, "eval", "--spec", "toy,second", *log(project))
    assert invoke(capsys, "eval", "--spec", "toy,second", *log(project))[:2] == first[:2]
    assert (project / "log").read_text().split() == ["start", "close"], "nothing was left to ask"


def test_json_is_one_document(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = invoke(capsys, "eval", "--spec", "toy,second", *log(project), "--format", "json")
    assert code == 0 and isinstance(json.loads(out), list)
    assert "results: out/toy-kept" in err and "results: out/second-kept" in err


def test_ctrl_c_ends_all_of_them(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "registry/engines/kept.py"
    raises = 'import signal\n        signal.raise_signal(signal.SIGINT)\n        return Completion("a")'
    file.write_text(KEPT.replace('return Completion("a")', raises))
    code, _, err = invoke(capsys, "eval", "--spec", "toy,second", *log(project))
    assert code == 130 and "toy-kept. To go on:" in err
    assert [path.name for path in (project / "out").iterdir()] == ["toy-kept"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ("toy,secnd", "there is no spec 'secnd'"),
        ("toy,toy", "'toy' is given twice"),
        ("toy,,second", "found 'toy,,second'"),
        (",", "found ','"),
    ],
)
def test_mistakes_of_all_come_before_the_first_call(
    project: Path, given: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = invoke(capsys, "eval", "--spec", given, *log(project))
    assert code == 2 and error in err
    assert not (project / "log").exists() and not (project / "out").exists()


def test_a_file_whose_name_has_a_comma_is_one_spec(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy("specs/second.yaml", "specs/a,b.yaml")
    assert invoke(capsys, "eval", "--spec", "specs/a,b.yaml", *log(project))[0] == 0
    assert (project / "out/run.json").is_file(), "a single spec has the folder that is named"
