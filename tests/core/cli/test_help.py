"""`--help`: groups, one line a command, and examples that run."""

import argparse
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli.parser import parser
from harness.plugins.manifests import offers
from tests.helpers.commands import ROOT, invoke
from tests.helpers.fake_openai import FakeOpenAI

EXAMPLES = {name: one.value.get("examples", ()) for name, one in offers("commands").items()}
ADDRESS = "http://localhost:8000/v1"
SERVER = f"base_url={ADDRESS},model=Qwen/Qwen3-8B"
GROUPS = ["what to run", "model", "judge", "limits", "output", "more"]
[COMMANDS] = [action.choices for action in parser()._actions if isinstance(action.choices, dict)]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_options_of_eval_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = invoke(capsys, "eval", "--help")
    assert re.findall(r"^(?!usage|examples)(\w[\w ]*)(?: \(.*\))?:$", out, re.MULTILINE) == GROUPS
    assert out.count("\n  harness eval ") == 2


def test_the_executors_stand_in_the_help_of_eval(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = invoke(capsys, "eval", "--help")
    assert (
        f"where episodes run: {', '.join(offers('executors'))} (default: the spec's executor, else local)"
        in " ".join(out.split())
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_one_line_in_the_list_and_ends_with_its_examples(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    _, out, _ = invoke(capsys, "--help")
    assert len(re.findall(rf"^  {command} +\S.*$", out, re.MULTILINE)) == 1
    _, out, _ = invoke(capsys, command, "--help")
    shown = out.partition("\nexample")[2].partition(":\n")[2].replace("\\\n", "")
    assert [" ".join(line.split()) for line in shown.splitlines() if line] == list(EXAMPLES[command])
    assert all(len(line) < 80 for line in out.splitlines())


def test_the_list_of_commands_has_no_other_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = invoke(capsys, "--help")
    assert len(re.search(r"commands:\n((?:  .*\n)+)", out)[1].splitlines()) == len(COMMANDS)  # type: ignore[index]


def test_no_option_stands_outside_of_a_group_that_is_shown_twice() -> None:
    for command in COMMANDS.values():
        titles = [group.title for group in command._action_groups if group._group_actions]
        assert len(titles) == len({*titles}), command.prog


def answer(body: dict[str, Any]) -> str:
    return "Better: A\n### Final Answer ### Group 1"


@pytest.mark.slow
def test_every_example_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the commands: what one writes another one reads. A server stands in for the model's."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.chdir(tmp_path)
    with FakeOpenAI(answer) as fake:
        for example in [line for lines in EXAMPLES.values() for line in lines]:
            line = example.replace(SERVER, f"base_url={fake.url},model=fake").replace(ADDRESS, fake.url)
            words = shlex.split(line)[1:]
            if words[0] == "view":
                serve(words)
                continue
            code, out, err = invoke(capsys, *words)
            if words[0] == "eval":
                ids = [score["id"].rpartition("/")[0] for score in map(json.loads, scores(tmp_path).splitlines())]
                labels = "".join(f'"{id}/0",{i % 2}\n' for i, id in enumerate(ids))
                Path("labels.csv").write_text(f"episode,label\n{labels}")
            assert code == 0, f"{line}\n{out[-2000:]}\n{err[-2000:]}"


def serve(words: list[str]) -> None:
    """A command that serves until it is interrupted, in a process of its own."""
    command = [sys.executable, "-m", "harness", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as shown:
        assert shown.stdout is not None and "run in" in shown.stdout.readline()
        shown.send_signal(signal.SIGINT)
    assert shown.returncode in (0, 130)


def scores(folder: Path) -> str:
    return (folder / "results" / "scripted" / "scores.jsonl").read_text()


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_every_example_is_a_command_line(line: str) -> None:
    with contextlib.suppress(argparse.ArgumentError):
        assert parser().parse_args(shlex.split(line)[1:]).function
