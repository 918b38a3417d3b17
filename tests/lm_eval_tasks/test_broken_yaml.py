"""YAML that cannot be read: the error names the task's file, and no file that does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import main


def test_unreadable_yaml_is_no_fault_of_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """PyYAML's compiled reader names its source by a relative path, which once looked like a file beside the task."""
    monkeypatch.chdir(tmp_path)
    Path("deep.yaml").write_text("task: deep\nx: " + "[" * 200)
    Path("spec.yaml").write_text("name: s\ntask: {use: lm_eval, task: deep.yaml}\nprotocol: single\n")
    assert main(["validate", "spec.yaml"]) == 2
    out, err = capsys.readouterr()
    assert "deep.yaml" in out + err and "ParserError" in out + err
    assert "_yaml.pyx" not in out + err and "its function fails" not in out + err
