"""Tests of approvals run in a project of one's own, with nothing approved, beside the folder of a stranger."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.strangers import Stranger


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is approved, and the working directory is a project of your own."""
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    home = tmp_path / "home"
    home.mkdir()
    (home / "harness.yaml").write_text("parents: [harness_builtin]\n")
    monkeypatch.chdir(home)


@pytest.fixture
def stranger(tmp_path: Path) -> Stranger:
    return Stranger(tmp_path / "stranger")
