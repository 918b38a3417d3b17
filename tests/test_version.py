"""The version is set in one place, and every door reports it."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import harness

ROOT = Path(__file__).parent.parent


def test_the_command_and_the_package_report_the_same_version() -> None:
    printed = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout == f"harness {harness.__version__}\n"
    assert metadata.version("mas-eval-harness") == harness.__version__, "reinstall: pip install -e ."


def test_the_build_reads_the_version_from_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in settings["project"] and settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"] == {"path": "harness/api/version.py"}


@pytest.mark.parametrize("file", [file for file in sorted((ROOT / "changes").iterdir()) if file.suffix != ".jinja"])
def test_a_change_is_one_line_in_a_file_that_towncrier_finds(file: Path) -> None:
    assert re.fullmatch(r"\+[a-z0-9_-]+\.(added|changed|fixed)\.md", file.name)
    [line] = file.read_text("utf-8").splitlines()
    assert not line.startswith(("-", "#", " ")) and line.endswith(".") and len(line) <= 300


def test_the_changelog_begins_with_the_version_and_has_one_line_a_bullet() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## \[(\S+)\]", text, re.MULTILINE)
    assert versions[:2] == ["Unreleased", harness.__version__]
    assert [line for line in text.splitlines() if line.startswith(" ")] == []


def test_a_release_collects_the_changes(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        ROOT / "changes", tmp_path / "changes", ignore=lambda folder, names: [n for n in names if n[0] == "+"]
    )
    (tmp_path / "changes" / "+door.fixed.md").write_text("`harness view` opens.\n")
    (tmp_path / "changes" / "+window.added.md").write_text("A window.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--keep", "--version", "9.9.0", "--date", "2030-01-02"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    entry = "## [9.9.0] - 2030-01-02\n\n### Added\n\n- A window.\n\n### Fixed\n\n- `harness view` opens.\n\n## [0"
    assert entry in (tmp_path / "CHANGELOG.md").read_text("utf-8")
