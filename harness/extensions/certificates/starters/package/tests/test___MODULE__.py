"""The benchmark as its users meet it."""

from pathlib import Path

import pytest

import harness
from harness.cli import main

NAME = "__MODULE__"


def test_it_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", NAME]) == 0, capsys.readouterr().err


def test_its_baseline_plays_every_episode_twice_alike(tmp_path: Path) -> None:
    one, two = (harness.evaluate(NAME, output_path=tmp_path / name) for name in "ab")
    assert one.scores and not one.failed
    assert one.scores == two.scores
