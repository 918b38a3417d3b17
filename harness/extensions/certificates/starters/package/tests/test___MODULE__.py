"""The benchmarks as their users meet them: every spec of the package."""

from importlib.resources import files
from pathlib import Path

import pytest

import harness
from harness.cli import main

SPECS = Path(str(files("__MODULE__"))) / "plugins" / "specs"
NAMES = sorted(file.relative_to(SPECS).with_suffix("").as_posix() for file in SPECS.rglob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_valid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", name]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_its_baseline_plays_every_episode_twice_alike(name: str, tmp_path: Path) -> None:
    one, two = (harness.evaluate(name, output_path=tmp_path / run) for run in "ab")
    assert one.scores and not one.failed
    assert one.scores == two.scores
