"""Names of earlier versions: an error names the new one."""

from pathlib import Path

import pytest

from harness.api.errors import UserError
from harness.config import resolve, spec
from harness.config.project import builtin


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("metrics: [{use: ensembles/agreement, name: agree}]", "panels/agreement"),
        ("metrics: [silo/behaviour]", "silo/behavior"),
        ("prompts: ensembles/standard", "panels/standard"),
    ],
)
def test_an_old_name_is_answered_with_the_new_one(tmp_path: Path, line: str, new: str) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(f"extends: arithmetic_votes\n{line}\ntables: []\nheadline: null\n")
    with pytest.raises(UserError, match=f"It is called {new} now"):
        resolve.plan(spec.load(str(file), builtin()), builtin())
