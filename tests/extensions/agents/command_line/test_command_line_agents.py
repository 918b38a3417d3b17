"""The agents of docs/how-to/command_line_agents.md and agents.md play, confined, with a model that stands in."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import storage
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from tests.docs.test_docs import ROOT, blocks
from tests.extensions.agents.command_line.minds import think
from tests.helpers.fake_openai import Body, FakeOpenAI, chat

pytestmark = pytest.mark.agents
PAGE = ROOT / "docs" / "how-to" / "command_line_agents.md"
FIRST = PAGE.with_name("agents.md")
SPECS = {
    note.partition(": ")[2]: body
    for page in (PAGE, FIRST)
    for note, body in blocks(page, "yaml")
    if note.startswith("file: ")
}
[SEATS] = [body for note, body in blocks(PAGE, "yaml") if note == "seats"]
[COMMAND] = [  # with another spec it is that of the other page too
    line for _, body in blocks(PAGE, "console") for line in body.splitlines() if line.startswith("harness eval")
][:1]
CALLS = {"codex.yaml": 2, "claude.yaml": 2, "qwen.yaml": 2, "mini.yaml": 2}
"""What each asks its model for an answer that it looks up with one tool."""


class Table:
    """A folder with the page's specs, and a server in which `think` plays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = FakeOpenAI(self._answer)
        self.errors: list[Exception] = []
        for name, body in SPECS.items():
            (folder / name).write_text(body)

    def _answer(self, body: Body) -> Body:
        message = think(body)
        read = sum(len(json.dumps(message)) for message in body["messages"]) // 4
        usage = {"prompt_tokens": read, "completion_tokens": 7, "total_tokens": read + 7}
        return chat(message, usage, "stop" if isinstance(message, str) else "tool_calls")

    def play(self, spec: str, *more: str) -> Run:
        """The finished run of the page's command with another spec."""
        words = shlex.split(
            COMMAND.replace("codex.yaml", spec)
            .replace("http://localhost:8000/v1", self.server.url)
            .replace("Qwen/Qwen3-8B", "fake")
        )
        command = [sys.executable, "-m", *words, *more, "--output_path", "run"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        log = self.folder / "run" / "engine.log"
        assert done.returncode == 0, done.stderr + done.stdout + (log.read_text() if log.is_file() else "")
        return load_run(self.folder / "run")


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    playing = Table(tmp_path)
    with playing.server:
        yield playing


def total(run: Run, metric: str) -> float:
    return sum(score.number(metric) or 0 for score in run.scores)


@pytest.mark.parametrize("spec", SPECS)
def test_each_answers_with_what_its_shell_says(table: Table, spec: str) -> None:
    run = table.play(spec, "--limit", "1", "--set", "matrix.terms=[2]")
    journal = (table.folder / "run" / storage.JOURNAL).read_text()
    log = (table.folder / "run" / "engine.log").read_text()
    assert [score.number("score") for score in run.scores] == [1], journal[-3000:] + log
    inner = [line for line in map(json.loads, journal.splitlines()) if line["k"] == "inner"]
    assert len(inner) == CALLS[spec] == len(table.server.bodies)
    assert total(run, "tokens_total") > 100 and total(run, "engine_errors") == 0


def test_four_agents_color_a_network_together(table: Table) -> None:
    models: dict[str, Any] = {}
    for body in SPECS.values():
        models |= yaml.safe_load(body)["models"]
    matrix = {"problem": ["coloring"], "graphs": ["small_world"]}
    team = {"extends": "agentsnet_quick", "name": "team", "matrix": matrix, "models": models, **yaml.safe_load(SEATS)}
    (table.folder / "team.yaml").write_text(yaml.safe_dump(team))
    run = table.play("team.yaml")
    log = (table.folder / "run" / "engine.log").read_text()
    assert [score.number("solved") for score in run.scores] == [1], log
    assert total(run, "engine_errors") == total(run, "parse_failures") == 0
