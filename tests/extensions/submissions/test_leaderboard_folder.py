"""`harness new leaderboard`: from an empty folder to a merged second submission, by git and the workflow's steps."""

import functools
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import __version__
from harness.cli import main
from harness.extensions.submissions.archive import pack
from harness.plugins.manifests import offers
from tests.helpers.commands import ROOT, TOY, invoke
from tests.helpers.toy import run

FORM, SITE = ("site", "site/") if "site" in offers("parts") else ("markdown", "site.md")
"""The form and the place of the site: those of the workflow, or one file where the extension `site` is not here."""
WORKFLOW = Path(".github") / "workflows" / "submissions.yml"


class Repository:
    """A public repository on this machine, its visitors, and the machine that runs its workflow."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.origin = folder, folder / "origin.git"
        program = folder / "bin" / "harness"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m harness "$@"\n')
        program.chmod(0o755)
        who = {f"GIT_{role}_{what}": f"{role}@b.c" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            **who,
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def git(self, place: Path, *words: str) -> str:
        command = ["git", "-C", str(place), *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def clone(self, name: str) -> Path:
        self.git(self.folder, "clone", "-q", str(self.origin), name)
        return self.folder / name

    def propose(self, name: str, change: Callable[[Path], object]) -> str:
        """A pull request: a branch of the change, in the repository; its commit."""
        place = self.clone(f"clone-{name}")
        self.git(place, "switch", "-q", "-c", name)
        change(place)
        self.git(place, "add", "-A")
        self.git(place, "commit", "-q", "-m", name)
        self.git(place, "push", "-q", "origin", name)
        return self.git(place, "rev-parse", "HEAD")

    def job(self, name: str, place: Path, **environment: str) -> tuple[int, str]:
        """(exit code, what is printed) of a job's steps, as far as the first that fails; all but what installs."""
        job = yaml.safe_load((place / WORKFLOW).read_text())["jobs"][name]
        printed = ""
        for step in (step for step in job["steps"] if "run" in step and step["name"] != "Install"):
            command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                command,
                cwd=place,
                env={**self.environment, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            printed += done.stdout
            if done.returncode:
                return done.returncode, printed
        return 0, printed

    def verify(self, commit: str, name: str) -> tuple[int, str]:
        """The workflow's job for a pull request, in a checkout of what it would be merged into."""
        place = self.clone(f"check-{name}")
        base = self.git(place, "rev-parse", "HEAD")
        return self.job("verify", place, BASE=base, HEAD=commit)

    def merge(self, name: str) -> tuple[int, str, Path]:
        """Merge a branch; the job that follows, and its checkout."""
        place = self.clone(f"merge-{name}")
        self.git(place, "merge", "-q", "--no-ff", "-m", f"Merge {name}", f"origin/{name}")
        self.git(place, "push", "-q", "origin", "main")
        return *self.job("site", place, FORM=FORM, SITE=SITE), place


def plays(model: str, text: str, file: str) -> Callable[[Path], object]:
    """What someone does who takes part, in a clone of the repository."""

    def take_part(place: Path) -> None:
        harness = [sys.executable, "-P", "-m", "harness"]
        run = ["eval", "--spec", "board", "--model", "mock", "--model_args", f"model={model},text={text}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        submit = ["submit", "results/mine", "-o", f"submissions/{file}.zip", "--author", model]
        for words in ([*run, "--quiet", "--output_path", "results/mine"], submit):
            subprocess.run([*harness, *words], cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)

    return take_part


def shown(place: Path) -> str:
    files = [place / SITE] if (place / SITE).is_file() else sorted((place / SITE).rglob("*.html"))
    return "".join(file.read_text("utf-8") for file in files)


@pytest.mark.slow  # many processes
def test_from_an_empty_folder_to_a_merged_second_submission(tmp_path: Path) -> None:
    assert main(["new", "leaderboard", str(tmp_path / "board")]) == 0
    there = Repository(tmp_path)
    there.git(tmp_path, "init", "-q", "--bare", "-b", "main", str(there.origin))
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "A leaderboard")):
        there.git(tmp_path / "board", *words)
    there.git(tmp_path / "board", "push", "-q", str(there.origin), "main")

    for model, text in (("lab/first", "ACTION: GRAB_LEFT"), ("lab/second", "ACTION: WAIT")):
        name = model.partition("/")[2]
        commit = there.propose(name, plays(model, text, name))
        code, printed = there.verify(commit, name)
        assert code == 0 and f"incoming/{name}.zip: consistent" in printed, printed
        code, printed, place = there.merge(name)
        assert code == 0 and "::warning::" not in printed, printed
        assert model in shown(place)
    assert "lab/first" in shown(place)

    submission = (place / "submissions" / "first.zip").read_bytes()
    for name, change, message in WRONG:
        commit = there.propose(name, functools.partial(change, submission=submission))
        code, printed = there.verify(commit, name)
        assert code == 1 and message in printed and "Traceback" not in printed, printed


def forged(place: Path, submission: bytes) -> None:
    """The best outcome in every episode, with checksums that fit."""
    (place / "real.zip").write_bytes(submission)
    folder = place / "results" / "x"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(place / "real.zip") as file:
        file.extractall(folder)
    (place / "real.zip").unlink()
    scores = (folder / "scores.jsonl").read_text().replace('"deadlock": 1.0', '"deadlock": 0.0')
    (folder / "scores.jsonl").write_text(scores.replace('"solved": 0.0', '"solved": 1.0') + "\n")
    pack(folder, place / "submissions" / "forged.zip", {})


def other_pins(place: Path, submission: bytes) -> None:
    """A submission that brings its own pins."""
    (place / "submissions" / "more.zip").write_bytes(submission)
    (place / "pins.yaml").write_text(f"board: {'a' * 64}\n")


def changed(place: Path, submission: bytes) -> None:
    """Someone else's submission, replaced."""
    (place / "submissions" / "second.zip").write_bytes(submission)


def link(place: Path, submission: bytes) -> None:
    """A link to a file of the machine that runs the workflow."""
    (place / "submissions" / "link.zip").symlink_to("/etc/passwd")


def below(place: Path, submission: bytes) -> None:
    """A submission in a folder of its own, with an odd name."""
    (place / "submissions" / "a b").mkdir()
    (place / "submissions" / "a b" / "$(id).zip").write_bytes(submission)


WRONG: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("forged", forged, "incoming/forged.zip: claimed"),
    ("other-pins", other_pins, "changes no others:\nM\tpins.yaml"),
    ("changed", changed, "changes no others:\nM\tsubmissions/second.zip"),
    ("link", link, "is no zip file"),
    ("below", below, "changes no others:"),
)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "board"
    assert main(["new", "leaderboard", str(folder)]) == 0
    return folder


def test_it_pins_specs_and_the_version(board: Path) -> None:
    files = {str(file.relative_to(board)) for file in board.rglob("*") if file.is_file()}
    assert files >= {"harness.yaml", "pins.yaml", "specs/board.yaml", "submissions/README.md", str(WORKFLOW)}
    assert not any("__NAME__" in (board / file).read_text() for file in files if not file.endswith(".pyc"))
    assert (board / "requirements.txt").read_text() == f"mas-eval-harness=={__version__}\n"
    workflow: dict[str, Any] = yaml.safe_load((board / WORKFLOW).read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert not any("${{" in step.get("run", "") for step in steps)  # no text of a pull request becomes a program
    assert workflow["permissions"] == {"contents": "read"}


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of the toy project's spec, with pins of it beside."""
    folder = tmp_path_factory.mktemp("toy")
    done = run(folder / "run")
    pack(done.folder, folder / "run.zip", {})
    (folder / "pins.yaml").write_text(f"toy: {done.meta['spec_digest']}\n")
    return folder / "run.zip"


def test_a_run_of_a_pinned_spec_is_taken_and_kept(
    submission: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY)
    kept = tmp_path / "kept" / "run"
    words = ("verify", str(submission), "--pins", str(submission.with_name("pins.yaml")), "--output", str(kept))
    code, out, _ = invoke(capsys, *words)
    assert code == 0 and "consistent" in out and (kept / "run.json").is_file()
    assert [path.name for path in kept.parent.iterdir()] == ["run"]
    code, _, err = invoke(capsys, *words)
    assert code == 2 and "exists already" in err
    code, _, err = invoke(capsys, "verify", str(kept), "--output", str(tmp_path / "again"))
    assert code == 2 and "is no file of `harness submit`" in err


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        pytest.param(f"toy: {'a' * 64}", "pins toy at aaaa", id="digest"),
        pytest.param(f"toys: {'a' * 64}", "does not pin the spec 'toy'. Did you mean toys?", id="name"),
    ],
)
def test_a_run_of_another_spec_is_claimed_and_not_kept(
    pins: str,
    message: str,
    submission: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(TOY)
    (tmp_path / "pins.yaml").write_text(pins)
    kept = tmp_path / "kept"
    words = ("verify", str(submission), "--pins", str(tmp_path / "pins.yaml"), "--output", str(kept))
    code, out, _ = invoke(capsys, *words)
    assert code == 1 and "run.zip: claimed" in out and message in out and not kept.exists()
    # What the comment in pins.yaml promises: the line that takes it. `plan` has it without a run.
    right = submission.with_name("pins.yaml").read_text().strip()
    [line] = [line for line in out.splitlines() if message in line]
    assert line.endswith(f"To take its runs, pins.yaml says: {right}")
    _, plan, _ = invoke(capsys, "plan", "--spec", "toy")
    assert f"spec digest     {right.removeprefix('toy: ')}\n" in plan


@pytest.mark.parametrize("text", ["", "[]", "board: short", "board: {}", "1: x", "board: [", "\ud800"])
def test_pins_that_are_none_are_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pins.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    code, _, err = invoke(capsys, "verify", str(tmp_path), "--pins", str(tmp_path / "pins.yaml"))
    assert code == 2 and "pins.yaml" in err and "Traceback" not in err
