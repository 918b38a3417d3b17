"""What the driver was allowed to run runs in workers too: it has asked, and their machines know of no approval."""

from pathlib import Path
from typing import Any

import pytest

from harness.config.project import find
from harness.engines.mock import Mock
from tests.extensions.ray.workers import with_worker
from tests.helpers.toy import TOY


def test_a_worker_starts_with_a_project_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    for name, more in (("theirs", ""), ("mine", f"parents: [../theirs, {TOY.root}]\n")):
        (tmp_path / name / "metrics").mkdir(parents=True)
        (tmp_path / name / "harness.yaml").write_text(f"name: {name}\n{more}")
    (tmp_path / "theirs" / "metrics" / "more.py").write_text('"""A plugin without approval."""\n')
    monkeypatch.chdir(tmp_path / "mine")

    async def act(*_: Any) -> str:
        return "started"

    (tmp_path / "run").mkdir()
    assert with_worker(tmp_path / "run", Mock(text="a"), act, project=find()) == "started"
