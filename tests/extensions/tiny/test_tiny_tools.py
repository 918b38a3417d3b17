"""Tools and the model that comes with the engine tiny, whose chat template has none."""

from pathlib import Path

import pytest

import harness
from harness.api.errors import SpecError


def test_a_spec_with_tools_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    options = ["matrix.condition=[chain]", "structured_output=false", "reply_via=tool_calls"]
    with pytest.raises(
        SpecError, match=r"the engine of SmolLM2.*: its chat template has no tools.*\n.*reply_via: text"
    ):
        harness.evaluate("tiny", "tiny", limit=1, overrides=options, output_path=tmp_path / "run")
    assert not (tmp_path / "run").exists()
