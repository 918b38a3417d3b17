"""`harness new package`: a package that is installed, whose tests pass, and whose benchmark is certified."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.cli.new import kinds
from tests.helpers.commands import ROOT, invoke, refused


class Environment:
    """A virtual environment with all that this one has, into which pip installs from folders."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin" / "python"
        [packages] = folder.glob("lib/python*/site-packages")
        here = [path for path in sys.path if Path(path).name == "site-packages"]
        (packages / "more.pth").write_text("\n".join([str(ROOT), *here]) + "\n")

    def install(self, package: Path) -> None:
        """`pip install -e` of a package."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "-q", "--no-deps"]
        subprocess.run([*pip, "--no-build-isolation", "--no-index", "-e", str(package)], check=True)

    def run(self, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        """`python -m` some words, in a folder."""
        command = [str(self.python), "-m", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow  # pip, pytest and a certificate, in processes of their own
def test_a_new_package_is_installed_tested_and_certified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = tmp_path / "my-bench"
    code, out, _ = invoke(capsys, "new", "package", str(package))
    assert code == 0 and "harness certify my_bench" in out
    environment = Environment(tmp_path / "venv")
    environment.install(package)
    tested = environment.run(package, "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 0 and "2 passed" in tested.stdout, tested.stdout
    for name in ("my-bench", "."):
        done = environment.run(package, "harness", "certify", name, "--limit", "5")
        assert done.returncode == 0, done.stdout + done.stderr
        card = json.loads((package / "harness-card.json").read_text())
        assert card["source"] == {"name": "my-bench", "version": "0.1.0"}
    plugins = package / "src" / "my_bench" / "plugins"
    (plugins / "specs" / "second.yaml").write_text("extends: my_bench\nname: second\nmetrcs: []\n")
    tested = environment.run(package, "pytest", "-q", "-p", "no:cacheprovider")
    assert tested.returncode == 1 and "2 failed, 2 passed" in tested.stdout, tested.stdout
    valid = environment.run(plugins, "harness", "validate")  # where its author works
    assert "my_bench: ok" in valid.stdout and "second: 1 problem" in valid.stdout
    [benchmark] = card["benchmarks"]
    assert benchmark["spec"] == "my_bench" and benchmark["options"]["limit"] == 5


@pytest.mark.parametrize("kind", kinds())
def test_a_package_begins_with_a_task_of_any_kind(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = invoke(capsys, "new", "package", str(tmp_path / "bench"), "--kind", kind)
    assert code == 0
    files = [file for file in (tmp_path / "bench").rglob("*") if file.is_file() and file.suffix != ".pyc"]
    assert tmp_path / "bench" / "src" / "bench" / "plugins" / "specs" / "bench.yaml" in files
    assert not any(mark in file.read_text() for file in files for mark in ("__NAME__", "__MODULE__", "__VERSION__"))
    assert [path.name for path in tmp_path.iterdir()] == ["bench"]


def test_a_new_package_is_valid_where_its_author_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke(capsys, "new", "package", str(tmp_path / "bench"), "--kind", "world")[0] == 0
    monkeypatch.chdir(tmp_path / "bench" / "src" / "bench" / "plugins")
    code, out, err = invoke(capsys, "validate")
    assert (code, err) == (0, "") and out.startswith("bench: ok\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("package",), "one word of small letters", id="no name"),
        pytest.param(("package", "Bench"), "found 'Bench'", id="capital"),
        pytest.param(("package", "bench", "--kind", "worlds"), "Did you mean world?", id="kind"),
        pytest.param(("pakage", "bench"), "Did you mean package?", id="starter"),
        pytest.param(("package", "full"), "full exists and is not empty", id="full"),
        pytest.param(("package", "taken/bench"), "cannot write taken/bench", id="file"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    for file in ("full/notes.txt", "taken"):
        (tmp_path / file).write_text("mine")
    refused(capsys, message, "new", *words)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["full", "full/notes.txt", "taken"]
