"""Published figures: what a spec may name."""

from pathlib import Path

import pytest

from tests.helpers.commands import TOY, invoke


def test_an_unknown_published_table_is_a_mistake_of_the_spec(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY)
    spec = tmp_path / "bad.yaml"
    spec.write_text("extends: toy\nname: x\ntables: [{title: t, rows: model, published: a/b, metrics: agreed}]\n")
    code, out, err = invoke(capsys, "validate", str(spec))
    assert code == 2 and ": 1 problem\n" in out and "unknown table 'a/b'" in err
