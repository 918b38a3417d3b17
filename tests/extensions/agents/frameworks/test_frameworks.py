"""The agents of docs/how-to/agent_frameworks.md and of agents.md play, each in its framework, against a model that
stands in.

Every command runs in a process of its own, as a reader would give it.
"""

import contextlib
import json
import os
import re
import select
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.storage.inner_calls import InnerCallIndex
from tests.docs.test_docs import ROOT, blocks
from tests.extensions.agents.frameworks.minds import text_of, think
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, hang, status

pytestmark = pytest.mark.agents
PAGE = ROOT / "docs" / "how-to" / "agent_frameworks.md"
FIRST = PAGE.with_name("agents.md")
FILES = [(note.partition(": ")[2], body) for kind in ("python", "yaml") for note, body in blocks(PAGE, kind) if note]
[RECIPE] = [(note.partition(": ")[2], body) for note, body in blocks(FIRST, "python") if "langchain" in body]
COMMANDS = [
    pytest.param(
        shlex.split(line)[1:], id=f"{line.split()[3]}, {line.partition('call=')[2].partition(':')[0]}".strip(", ")
    )
    for _, body in blocks(PAGE, "console")
    for line in body.splitlines()
    if line.startswith("harness eval") and "inner=" not in line
]
WITH_MODELS = [
    pytest.param(
        shlex.split(line.replace("Qwen/Qwen3-8B", "fake"))[1:],
        id=f"{page.stem}, {line.split()[3]}",
        marks=[pytest.mark.slow] if page == PAGE else [],
    )
    for page in (FIRST, PAGE)
    for _, body in blocks(page, "console")
    for line in body.splitlines()
    if line.startswith("harness eval") and "label=LangGraph,inner=" in line
]
NAMES = ["ag2_agent", "langgraph_agent", "openai_agents_agent", "smolagents_agent"]
ALL_FOUR = ["eval", "--spec", "frameworks.yaml", "--allow_code_execution"]
"""They color a network of four agents together: five turns of each."""


class Table:
    """A folder with the page's files, and a server in which `think` plays.

    Attributes:
        spent: tokens that the server has counted: of prompts, of replies.
    """

    def __init__(self, folder: Path, proxy: str) -> None:
        self.folder, self.spent = folder, [0, 0]
        self.faults: dict[int, Fault] = {}  # number of a request → what happens to it, and to those that follow
        self.server = FakeOpenAI(self._answer, faults=lambda body: self.faults.get(len(self.server.bodies)))
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "fake",
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"), proxy),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
        }
        for name, body in [*FILES, RECIPE]:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(body)

    def _answer(self, body: Body) -> Body:
        message = think(body)
        read = sum(len(text_of(message).split()) for message in body["messages"])
        wrote = len(json.dumps(message).split())
        self.spent = [self.spent[0] + read, self.spent[1] + wrote]
        usage = {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}
        return chat(message, usage, "stop" if isinstance(message, str) else "tool_calls")

    def start(self, arguments: list[str]) -> "subprocess.Popen[str]":
        """`harness ARGUMENTS`, with the run in `run`."""
        command = [sys.executable, "-m", "harness", *arguments, "--output_path", "run"]
        environment = {**self.environment, "OPENAI_BASE_URL": self.server.url}
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment, **pipes)

    def play(self, arguments: list[str]) -> Run:
        """The finished run of `harness ARGUMENTS`."""
        process = self.start(arguments)
        out, err = process.communicate()
        assert process.returncode == 0, err + out
        return load_run(self.folder / "run")


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    """Afterwards: nothing has gone elsewhere than to the server."""
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        playing = Table(tmp_path, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        with playing.server:
            yield playing
        assert not select.select([proxy], [], [], 0)[0]  # where a framework that reports home would wait


def total(run: Run, metric: str) -> float:
    return sum(score.number(metric) or 0 for score in run.scores)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_games_of_the_page_are_solved(table: Table, command: list[str]) -> None:
    run = table.play(command)
    success = "solved" if "solved" in run.metrics else "silo/success"
    assert [score.number(success) for score in run.scores] == [1] * len(run.scores)
    assert total(run, "engine_errors") == total(run, "parse_failures") == 0
    [read, wrote] = table.spent
    assert total(run, "tokens_total") == read + wrote
    calls = total(run, "calls")
    if "silo_quick" in command:
        assert len(table.server.bodies) > calls  # they use their tool
        assert any("largest" in text_of(message) for body in table.server.bodies for message in body["messages"])
    else:
        assert len(table.server.bodies) == calls


@pytest.mark.parametrize("command", WITH_MODELS)
def test_an_agent_whose_model_is_the_runs(table: Table, command: list[str]) -> None:
    """Every call of the framework is a request of the run; the harness alone knows the server."""
    run = table.play(command)
    success = "solved" if "solved" in run.metrics else "silo/success"
    assert [score.number(success) for score in run.scores] == [1] * len(run.scores)
    [read, wrote] = table.spent
    assert total(run, "tokens_total") == read + wrote
    journal = run.folder / "journal.jsonl"
    inner = [move["inner"] for move in moves(journal)]
    assert sum(one["calls"] for one in inner) == len(table.server.bodies) >= total(run, "calls") == len(inner)
    index = InnerCallIndex([journal])
    calls = [call for episode in index.episodes() for call in index.of(episode)]
    assert len(calls) == len(table.server.bodies)
    if "silo_quick" in command:  # they use their tool: a second call has its result
        assert len(calls) > total(run, "calls") and any(call.request.messages[-1]["role"] == "tool" for call in calls)
        assert all([tool["name"] for tool in call.request.tools] == ["extremes"] for call in calls)


def test_the_page_has_an_example_of_each_framework_that_is_short() -> None:
    assert sorted(name for name, _ in FILES) == sorted(
        [*(f"{name}.py" for name in NAMES), "langgraph_seat.py", "frameworks.yaml"]
    )
    assert all(len(body.splitlines()) <= 40 for _, body in FILES)
    assert all(any(name in str(command.id) for command in COMMANDS) for name in NAMES)


def test_agents_of_a_killed_run_know_their_conversation(table: Table) -> None:
    table.faults = dict.fromkeys(range(11, 99), hang)  # in the third round of five, two agents get no reply
    process = table.start(ALL_FOUR)
    journal = table.folder / "run" / "journal.jsonl"
    while not journal.exists() or len(moves(journal)) < 10:
        with contextlib.suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"it ended with {process.wait(0.05)}")
    process.kill()
    process.communicate()
    table.faults, before = {}, len(table.server.bodies)
    run = table.play(ALL_FOUR)
    assert [score.number("solved") for score in run.scores] == [1]
    later = table.server.bodies[before:]
    assert len(later) == 10  # nothing is asked again
    for body in later:  # the rules, and what this agent wrote in the two rounds before
        said = [text_of(message) for message in body["messages"] if message["role"] == "assistant"]
        assert "Your name is" in text_of(body["messages"][0]) and sum("group " in text for text in said) >= 2


def test_a_framework_that_raises_fails_that_turn_only(table: Table) -> None:
    table.faults = dict.fromkeys((5, 6, 7, 8), status(400, "no such thing"))  # all of the second round
    run = table.play(ALL_FOUR)
    assert (total(run, "engine_errors"), total(run, "calls"), len(table.server.bodies)) == (4, 16, 20)
    errors = [line["error"] for line in moves(run.folder / "journal.jsonl") if "error" in line]
    assert (
        sorted(re.match(r"(\w+):Agent fails: .*no such thing.* \(\1\.py:\d+\)$", error)[1] for error in errors) == NAMES
    )


def moves(journal: Path) -> list[dict[str, Any]]:
    return [line for _, line in storage.lines(journal) if line["k"] == "move"]
