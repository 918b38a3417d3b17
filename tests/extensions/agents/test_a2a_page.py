"""The agent of docs/how-to/a2a.md is short, and plays as the page says."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli import main
from tests.docs.test_docs import ROOT, blocks
from tests.helpers.a2a import free_port

PAGE = ROOT / "docs/how-to/a2a.md"


@pytest.mark.slow
def test_the_agent_of_the_page_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [code] = [body for note, body in blocks(PAGE, "python") if note == "plugin: adder_agent.py"]
    command, shown, *_ = (body.strip() for _, body in blocks(PAGE, "console"))
    port = str(free_port())
    assert len(code.splitlines()) < 40 and "9999" in code and "9999" in command
    (tmp_path / "adder_agent.py").write_text(code.replace("9999", port))
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([sys.executable, "adder_agent.py"], env=environment, stderr=subprocess.PIPE) as agent:
        try:
            assert agent.stderr is not None
            assert any(b"running on" in line for line in agent.stderr)
            assert main(shlex.split(command.replace("9999", port))[1:]) == 0
        finally:
            agent.terminate()
            with contextlib.suppress(ValueError):
                agent.communicate()
    printed = capsys.readouterr().out
    assert shown in printed
    assert re.search(r"^Adder ", printed, re.MULTILINE)
