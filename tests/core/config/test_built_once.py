"""A task is made once: what it proposes and what is played come from the same object."""

from pathlib import Path

import pytest

import harness
from harness.config.project import find
from tests.helpers.commands import TOY, invoke

COUNTING = '''
from pathlib import Path

from harness.api import Case, Facts, Outcome, Parsed, Protocol, Reply, Task, plugin


class Word(Reply):
    def parse(self, text: str) -> Parsed:
        return Parsed(text)


@plugin
class Counting(Task):
    """It writes down each time that it is made, and proposes its metrics."""

    grades = ("agreed",)
    file: str
    size: int = 1

    def __post_init__(self):
        with Path(self.file).open("a") as made:
            made.write("made\\n")

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        table = {"rows": "model", "columns": "metric", "metrics": "agreed"}
        return {"prompts": "toy/base", "metrics": ["agreed"], "tables": [table]}

    def cases(self, limit, seed):
        yield self.example()

    def example(self) -> Case:
        return Case(id="c", agents=("A", "B"), public={"number": 0})

    def context(self, case: Case, agent: str) -> Facts:
        return {"name": agent, "number": 0}

    def reply(self, case: Case, agent: str) -> Reply:
        return Word()

    def grade(self, case: Case, outcome: Outcome):
        return {"agreed": 1.0}
'''


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The task's file, with a line each time that it was made; the working directory has a spec of four keys."""
    (tmp_path / "registry" / "tasks").mkdir(parents=True)
    (tmp_path / "harness.yaml").write_text(f"name: counting\nparents: ['{TOY}']\n")
    (tmp_path / "registry" / "tasks" / "counting.py").write_text(COUNTING)
    file = tmp_path / "made"
    spec = f"name: s\ntask: {{use: counting, file: '{file}'}}\nprotocol: {{use: rounds, rounds: 1}}\nlimit: 1\n"
    (tmp_path / "s.yaml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    return file


@pytest.mark.parametrize("more", [(), ("--gen_kwargs", "temperature=0")])
def test_a_command_makes_the_task_once(
    made: Path, more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--model", "mock", "--allow_code_execution", "--output_path", str(tmp_path / "run"))
    code, out, err = invoke(capsys, "eval", "--spec", "s.yaml", *options, *more)
    assert code == 0 and "agreed" in out, err
    assert made.read_text() == "made\n"


def test_python_makes_the_task_once(made: Path, tmp_path: Path) -> None:
    run = harness.evaluate("s.yaml", "mock", output_path=tmp_path / "run", allow_code_execution=True, project=find())
    assert len(run.scores) == 1 and made.read_text() == "made\n"


def test_each_value_of_a_matrix_makes_its_own(made: Path, tmp_path: Path) -> None:
    task = {"use": "counting", "file": str(made), "size": "${size}"}
    spec = {"name": "s", "task": task, "protocol": {"use": "rounds", "rounds": 1}, "matrix": {"size": [1, 2]}}
    harness.evaluate(spec, "mock", output_path=tmp_path / "run", allow_code_execution=True, project=find())
    assert made.read_text() == "made\n" * 2
