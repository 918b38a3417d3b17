"""`harness new`: what it refuses. Tests of extensions play what it copies."""

from pathlib import Path

import pytest

from tests.helpers.commands import invoke


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "is not empty"),
        (["task", "x"], "needs a kind, found no --kind"),
        (["task", "x", "--kind", "shardedd"], "Did you mean sharded?"),
        (["task", "--kind", "world"], "a task's name is one word"),
        (["task", "../x", "--kind", "world"], "a task's name is one word"),
        (
            ["task", "x", "--kind", "world"],
            "no harness.yaml here or above\n  Start a project first: harness new my",
        ),
        (["a", "b"], "takes one folder"),
        (["a", "--kind", "world"], "takes one folder"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path)
    code, _, err = invoke(capsys, "new", *arguments)
    assert code == 2 and message in err
    assert [*tmp_path.iterdir()] == [tmp_path / "notes.txt"]
