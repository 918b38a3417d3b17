"""Command-line agents with a model of the run: confined ones reach it, and after a kill they have their memory back."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.api.errors import SetupError
from harness.extensions.sandbox import _bwrap
from tests.helpers.inner_agents import CLIENT, Place

ROOT = Path(__file__).parents[3]
PYTHON = [sys.executable, "-I", "-S"]
ASKS = (
    CLIENT
    + """
given = sys.stdin.read()
status, wrong = call("another secret", key="sk-wrong")
print(ask("What is your word?  a"), status, given, sorted(os.environ), os.getcwd())
"""
)
REMEMBERS = (
    CLIENT
    + """
given, killed = sys.stdin.read(), sys.argv[1]
memory = open("memory").read() if "--continue" in sys.argv else ""
turn, me = len(memory.split()) + 1, os.environ["HOME"].rpartition("/")[2]
for i in range(3):
    ask(f"{me} turn {turn} call {i} after {memory}")
    if turn == 3 and i == 1 and not os.path.exists(killed):
        open(killed, "w").close()
        os.kill(os.getppid(), 9)
open("memory", "a").write(f"turn{turn} ")
print("a")
"""
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_confined_program_reaches_its_model_and_finds_nothing_of_the_person(place: Place) -> None:
    (place.folder / "asks.py").write_text(ASKS)
    agent = {"command": [*PYTHON, str(place.folder / "asks.py")], "interface": "prompt", "confine": True}
    if not _bwrap.probe()[0]:
        with pytest.raises(SetupError, match="programs cannot be confined here"):
            place.play(agent)
        return
    place.play(agent)
    said = [call["text"] for move in place.lines("move") for call in move["calls"]]
    assert place.asked == ["What is your word?  a"] * len(said) and said  # none by the wrong key
    for text in said:
        assert text.startswith("a 401 ") and text.endswith(" /home/agent/work")
        assert "OPENAI_BASE_URL" in text and "PYTEST" not in text and "VIRTUAL_ENV" not in text


def command(place: Place) -> list[str]:
    program = " ".join([*PYTHON, str(place.folder / "remembers.py"), str(place.folder / "killed")])
    fields = f'command="{program}",continue_command="{program} --continue",interface=prompt,label=prog'
    model = f"inner=parrot,inner_args={{log: {place.log}}}"
    return [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "agent", "--model_args",
            f"{fields},{model}", "--output_path", "run", "--set", "protocol.rounds=4", "--set", "task.cases_made=1",
            "--set", "matrix.agents=[2]"]  # fmt: skip


@pytest.mark.slow
def test_after_a_kill_its_turns_are_played_again_and_no_call_is_asked_twice(place: Place) -> None:
    (place.folder / "remembers.py").write_text(REMEMBERS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command(place), cwd=place.folder, env=environment, capture_output=True, text=True, check=False
        )

    assert run().returncode == -signal.SIGKILL
    before = len(place.asked)
    done = run()
    assert done.returncode == 0, done.stderr
    assert before >= 14 and len(place.asked) > before
    seats = Counter(text.split()[0] for text in place.asked)
    assert [*seats.values()] == [12, 12]
    assert Counter(place.asked).most_common(1)[0][1] == 1
    assert {text.partition(" after ")[2] for text in place.asked if " turn 4 " in text} == {"turn1 turn2 turn3 "}
    assert not any(move.get("error") for move in place.lines("move"))
