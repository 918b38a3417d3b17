"""The version is set in one place, and every door reports it."""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import harness

ROOT = Path(__file__).parent.parent


def test_the_command_and_the_package_report_the_same_version() -> None:
    printed = subprocess.run([sys.executable, "-m", "harness", "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout == f"harness {harness.__version__}\n"
    assert metadata.version("mas-eval-harness") == harness.__version__, "reinstall: pip install -e ."


def test_the_build_reads_the_version_from_the_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in settings["project"] and settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"] == {"path": "harness/__init__.py"}
