"""`harness verify --ask` with the small model itself, so that llama.cpp's server is asked again (`pytest -m tiny`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.engines.mock import Mock
from harness.extensions.tiny import weights
from tests.helpers.commands import invoke

pytestmark = pytest.mark.tiny
SPEC: dict[str, Any] = {
    "name": "sums",
    "task": {"use": "arithmetic", "size": 24},
    "protocol": "single",
    "generation_kwargs": {"temperature": 0.0, "max_tokens": 24},
    "metrics": ["parse_failures"],
    "seed": 1,
}


@pytest.fixture(scope="module", autouse=True)
def model() -> Path:
    """The weights, downloaded once."""
    return weights.get()


def asked_again(folder: Path, count: int, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and output of the command."""
    words = "--ask", str(count), "--model", "tiny", "--seed", "1"
    code, out, _ = invoke(capsys, "verify", str(folder), *words)
    return code, out


def test_answers_at_temperature_0_come_again_and_invented_ones_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    harness.evaluate(SPEC, model="tiny", limit=6, output_path=tmp_path / "run")
    code, out = asked_again(tmp_path / "run", 6, capsys)
    assert code == 0 and out.startswith(f"{tmp_path / 'run'}: asked again\n"), out
    assert "calls, asked again, have the same answer" in out
    harness.evaluate(SPEC, Mock(text="The answer is 12."), limit=6, output_path=tmp_path / "invented")
    code, out = asked_again(tmp_path / "invented", 6, capsys)
    assert code == 1 and "claimed" in out and "at least 90%" in out, out


def test_replies_above_temperature_0_are_as_likely_as_what_the_model_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {**SPEC, "generation_kwargs": {"temperature": 1.0, "top_p": 0.9, "max_tokens": 16}}
    harness.evaluate(spec, model="tiny", output_path=tmp_path / "run")
    code, out = asked_again(tmp_path / "run", 24, capsys)
    assert code == 0 and out.startswith(f"{tmp_path / 'run'}: asked again\n"), out
