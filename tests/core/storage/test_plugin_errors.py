"""What a plugin raises: its place in the message, the whole traceback in the run's folder, `--debug` prints it."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.storage.error_log import ErrorLog
from harness.storage.plugin_errors import describe

TOY = Path(__file__).parents[2] / "toy"
HEAD = "from harness.api import Case, Metric, Outcome, Parsed, Policy, Protocol, Reply, Task, Turn, plugin\n"
TASK = (
    HEAD
    + '''
from dataclasses import dataclass

@dataclass(frozen=True)
class Plain(Reply):
    """Any text."""
    def parse(self, text):
        return Parsed(text)

@plugin
class Faulty(Task):
    """Fails where it is asked to."""
    at: str = ""
    grades = ("agreed",)

    def _fail(self, stage):
        if self.at == stage:
            1 / 0  # the line

    def cases(self, limit, seed):
        self._fail("cases")
        yield Case("c", ("S0",))

    def example(self):
        return Case("c", ("S0",))

    def context(self, case, agent):
        return {"name": agent}

    def reply(self, case, agent):
        return Plain()

    def grade(self, case, outcome):
        self._fail("grade")
        return {"agreed": 1.0}
'''
)
LINE = TASK.splitlines().index("            1 / 0  # the line") + 1
METRIC = (
    HEAD
    + '''
@plugin
class Halved(Metric):
    """Fails."""
    def measure(self, episode):
        return {}["nothing"]
'''
)
POLICY = (
    HEAD
    + '''
@plugin
class Absent(Policy):
    """Fails."""
    def choose(self, turn, rng):
        raise LookupError("no move")
'''
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for file, text in {
        "harness.yaml": f"parents: [{TOY}]\n",
        "registry/tasks/faulty.py": TASK,
        "registry/policies/absent.py": POLICY,
        "metrics/halved.py": METRIC,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return root


def command(project: Path, *arguments: str) -> int:
    with contextlib.chdir(project):
        return main([*arguments])


def harness_command(project: Path, *arguments: str) -> int:
    return subprocess.run([sys.executable, "-m", "harness", *arguments], cwd=project, check=False).returncode


def spec(project: Path, at: str = "", metric: str = "agreed", policy: str = "fixed") -> str:
    file = project / "t.yaml"
    file.write_text(
        f"extends: toy\nname: t\nmatrix:\ntables: []\ntask: {{use: faulty, at: '{at}'}}\nmetrics: [{metric}]\n"
        + ("" if policy == "fixed" else f"baseline: {policy}\n")
    )
    return str(file)


def errors(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "errors.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("how", "stage", "error"),
    [
        ({"at": "grade"}, "grade", f"ZeroDivisionError: division by zero (registry/tasks/faulty.py:{LINE})"),
        ({"metric": "halved"}, "metric halved", "KeyError: 'nothing' (metrics/halved.py:7)"),
        ({"policy": "absent"}, "play", "LookupError: no move (registry/policies/absent.py:7)"),
    ],
)
def test_the_message_has_the_place_the_folder_the_traceback(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: dict[str, str], stage: str, error: str
) -> None:
    folder = tmp_path / "r"
    whole = ["eval", "--spec", spec(project, **how), "--output_path", str(folder), "--repeats", "3"]
    assert command(project, *whole) == 1, "every episode failed"
    err = capsys.readouterr().err
    assert error in err and str(folder / "errors.jsonl") in err and "Traceback" not in err
    assert json.loads((folder / "scores.jsonl").read_text().splitlines()[0])["error"].endswith(error)
    first, *others = errors(folder)
    assert (first["stage"], first["episode"], first["error"]) == (stage, "all/c/0", error)
    assert first["traceback"].startswith("Traceback (most recent call last)")
    assert "event loop" not in first["traceback"], "the plugin's error and no other"
    assert [entry["episode"] for entry in others] == ["all/c/1", "all/c/2"]
    assert all("traceback" not in entry for entry in others), "the same again"
    command(project, *whole, "--debug")
    assert first["traceback"] in capsys.readouterr().err


@pytest.mark.slow
def test_scoring_again_forgets_what_is_mended(project: Path, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    command(project, "eval", "--spec", spec(project, at="grade"), "--output_path", str(folder))
    assert len(errors(folder)) == 1
    assert command(project, "score", str(folder)) == 0
    assert len(errors(folder)) == 1, "not once more"
    (project / "registry/tasks/faulty.py").write_text(TASK.replace("1 / 0", "pass"))
    assert harness_command(project, "score", str(folder)) == 0, "another process, which reads the file anew"
    assert not (folder / "errors.jsonl").exists()


@pytest.mark.parametrize("name", ["eval", "plan"])
def test_before_anything_is_played(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    arguments = [name, "--spec", spec(project, at="cases")]
    assert command(project, *arguments) == 2
    err = capsys.readouterr().err
    assert f"ZeroDivisionError: division by zero (registry/tasks/faulty.py:{LINE})" in err and "Traceback" not in err
    assert command(project, *arguments, "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


def test_debug_prints_what_it_can(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = TASK.replace("1 / 0", 'raise SyntaxError("x", ("f", 1, "a", "text"))')
    (project / "registry/tasks/faulty.py").write_text(broken)
    assert command(project, "plan", "--spec", spec(project, at="cases"), "--debug") == 2
    err = capsys.readouterr().err
    assert (
        f'faulty.py", line {LINE}, in _fail' in err
        and f"SyntaxError: x (f, line 1) (registry/tasks/faulty.py:{LINE})" in err
    )


@pytest.mark.parametrize(
    ("raising", "kind"),
    [
        pytest.param('raise SyntaxError("x", ("f", 1, "a", "text"))', "SyntaxError", id="syntax"),
        pytest.param("raise NoNotesError", "NoNotesError", id="notes"),
    ],
)
def test_a_traceback_that_cannot_be_printed(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], raising: str, kind: str
) -> None:
    head, body = POLICY.split("@plugin")
    (project / "registry/policies/absent.py").write_text(
        f"{head}class NoNotesError(LookupError):\n    @property\n    def __notes__(self):\n        raise RuntimeError\n"
        + "@plugin"
        + body.replace('raise LookupError("no move")', raising)
    )
    arguments = ["eval", "--spec", spec(project, policy="absent"), "--output_path", str(tmp_path / "r")]
    assert command(project, *arguments, "--repeats", "2") == 1, "every episode failed"
    assert "Traceback" not in capsys.readouterr().err
    first, second = errors(tmp_path / "r")
    assert (first["stage"], first["episode"], second["episode"]) == ("play", "all/c/0", "all/c/1")
    assert first["error"].startswith(kind) and first["traceback"].endswith(kind)
    assert "absent.py" in first["traceback"]
    assert command(project, *arguments, "--repeats", "2", "--debug") == 1
    assert "absent.py" in capsys.readouterr().err


def test_an_error_that_cannot_even_be_printed(tmp_path: Path) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    log = ErrorLog(tmp_path / "errors.jsonl")
    try:
        raise MuteError("x" * 10**6)
    except MuteError as error:
        assert "MuteError: (its message fails: RuntimeError)" in log.record(error, "reply", "e", "S0")
    try:
        raise ValueError("\ud800" + "x" * 10**6)
    except ValueError as error:
        assert len(log.record(error, "reply")) < 3000 and "(test_plugin_errors.py:" in describe(error)
    assert [entry.get("agent") for entry in errors(tmp_path)] == ["S0", None]
    assert all(len(entry["traceback"]) < 30_000 for entry in errors(tmp_path))
