"""The guard around what models write: a bug that a text hits makes it unreadable, and costs no episode."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Completion, Request
from harness.config import project
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.extensions.datasets.number import Number
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.replies.parse_guard import MAX_CHARS, read

TOY = Path(__file__).parents[2] / "toy"
FRAIL = '''
"""Reads and compares numbers as if every text were one."""
from dataclasses import dataclass
from harness.api import Case, Parsed, Reply, plugin
from harness.extensions.panels.questions import Question, QuestionTask

@dataclass(frozen=True, slots=True)
class Frail(Reply):
    def parse(self, text):
        if text == "exit":
            raise SystemExit(3)
        if text == "set":
            return Parsed({1})
        return None if text == "none" else Parsed(text if text == "x" else int(text))  # the line

@plugin
class Numbers(QuestionTask):
    """Two numbers."""
    grades = ("agreed",)

    def cases(self, limit, seed):
        return [Case(f"c{i}", ("S0", "S1")) for i in range(2)]

    def context(self, case, agent):
        return {"name": agent, "question": "?", "instruction": "", "choices": None}

    def reply(self, case, agent):
        return Frail()

    def question_of(self, case):
        return Question("?")

    def canonical(self, case, action):
        return str(int(action))

    def grade(self, case, outcome):
        return {"agreed": float(len(set(outcome.answers.values())) == 1)}
'''
LINE = FRAIL.splitlines().index(next(line for line in FRAIL.splitlines() if "the line" in line)) + 1


@pytest.fixture
def frail(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    for file, text in {
        "harness.yaml": f"parents: [{TOY}, harness_builtin]\n",
        "registry/tasks/numbers.py": FRAIL,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return find(root)


def moves(folder: Path) -> list[dict[str, Any]]:
    return [line for _, line in storage.lines(folder / "journal.jsonl") if line["k"] == "move"]


def says(*texts: str) -> Mock:
    """The agents' replies, in the order of agents."""
    return Mock(function=lambda request: texts[int(request.id.split("/")[-3].removeprefix("Agent-").strip("S"))])


@pytest.mark.parametrize(
    ("text", "bug"),
    [
        ("five", f"ValueError: invalid literal for int() with base 10: 'five' (registry/tasks/numbers.py:{LINE})"),
        ("exit", f"SystemExit: 3 (registry/tasks/numbers.py:{LINE - 3})"),
        ("none", "TypeError: parse returned None, not a Parsed (registry/tasks/numbers.py)"),
        ("set", "TypeError: Object of type set is not JSON serializable (registry/tasks/numbers.py)"),
    ],
)
def test_a_reply_whose_parser_raises_is_unreadable(
    frail: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, bug: str
) -> None:
    spec = {"extends": "toy", "name": "t", "matrix": None, "task": "numbers", "tables": None, "metrics": ["agreed"]}
    done = harness.evaluate(spec, says("5", text), output_path=tmp_path / "r", project=frail)
    assert not done.failed and [score.numbers["agreed"] for score in done.scores] == [0.0, 0.0]
    results = {(move["s"], move.get("error_kind"), move.get("error")) for move in moves(tmp_path / "r")}
    assert results == {("S0", None, None), ("S1", "parse", f"the reply hits a bug: {bug}")}
    noted = [json.loads(line) for line in (tmp_path / "r" / "errors.jsonl").read_text().splitlines()]
    assert {(one["stage"], one["episode"], one["error"]) for one in noted} == {
        ("reply", f"all/c{i}/0", bug) for i in range(2)
    }
    assert sum("traceback" in one for one in noted) == 1, "the traceback stands there once"
    kind = bug.partition(":")[0]
    warnings = [one.message for one in caplog.records if kind in one.message and "counts as unreadable" in one.message]
    assert len(warnings) <= 1, "one for a place, however many replies hit it"
    assert text != "five" or f"ValueError (registry/tasks/numbers.py:{LINE})" in warnings[0]


def test_a_comparison_that_raises_makes_the_answer_unreadable(frail: Project, tmp_path: Path) -> None:
    spec = {
        "name": "t",
        "task": "numbers",
        "protocol": "vote",
        "prompts": "toy/loud",
        "metrics": ["agreed"],
        "agents": {"default": "model"},
        "tables": None,
    }
    (frail.root / "prompts/toy/loud").mkdir(parents=True)
    (frail.root / "prompts/toy/loud/prompts.yaml").write_text("base: toy/base\n")
    (frail.root / "prompts/toy/loud/answer.j2").write_text("Say a number.\n")
    done = harness.evaluate(spec, says("5", "x"), output_path=tmp_path / "r", project=frail)
    assert not done.failed
    assert {move.get("error_kind") for move in moves(tmp_path / "r") if move["s"] == "S1"} == {"parse"}
    ends = [line for _, line in storage.lines(tmp_path / "r" / "journal.jsonl") if line["k"] == "end"]
    assert [end["outcome"]["group"] for end in ends] == [5, 5]
    assert [end["outcome"]["facts"]["votes"] for end in ends] == [{"5": 1.0}] * 2


def test_a_confidence_of_blanks_costs_darkforest_no_episode(tmp_path: Path) -> None:
    """Thirty of forty episodes were gone."""
    spec = {
        "name": "t",
        "task": {"use": "arithmetic", "size": 3},
        "prompts": "panels/standard",
        "protocol": {"use": "darkforest", "agents": 2, "confidence": "line"},
        "tables": None,
        "agents": {"default": "model"},
        "metrics": ["score"],
    }
    done = harness.evaluate(
        spec, Mock(text="Answer: 5\nConfidence:\u00a0"), output_path=tmp_path / "r", project=project.builtin()
    )
    assert len(done.scores) == 3 and not done.failed and not (tmp_path / "r" / "errors.jsonl").exists()


def test_what_is_too_long_is_a_parse_failure_that_can_be_mended(frail: Project, tmp_path: Path) -> None:
    requests: list[str] = []

    def answer(request: Request) -> Completion:
        requests.append(request.thread.messages[-1]["content"])
        return Completion("5" if "too long" in requests[-1] or len(requests) > 1 else " " * MAX_CHARS + "5")

    spec = {"extends": "toy", "name": "t", "matrix": None, "task": "numbers", "tables": None, "metrics": ["agreed"]}
    done = harness.evaluate(spec, Mock(function=answer), output_path=tmp_path / "r", project=frail)
    assert not done.failed and all(move.get("error") is None for move in moves(tmp_path / "r"))
    assert read(Number(), "5" + " " * MAX_CHARS).error == "too long: 1,000,001 characters, at most 1,000,000 are read"
    assert read(Number(), "5" + " " * (MAX_CHARS - 1)).action == 5


def test_a_metric_that_an_answer_makes_raise_gives_it_nothing_and_keeps_the_episode(
    frail: Project, tmp_path: Path
) -> None:
    """A metric that raises for the right answer too has a bug of its own, which fails the episode as before."""
    rows = tmp_path / "rows.jsonl"
    (frail.root / "registry/tasks/measured.py").write_text(
        '"""Compares integers."""\n'
        "from harness.api import plugin\nfrom harness.extensions.datasets import DatasetTask\n"
        "from harness.extensions.datasets.grading import Measure\n\n@plugin\nclass Measured(DatasetTask):\n"
        '    """Compares integers."""\n\n    def measures(self):\n'
        "        return {'same': Measure(lambda said, target: float(int(said) == int(target['answers'][0])))}\n"
    )

    def numbers(right: str, said: str, folder: str) -> harness.Run:
        rows.write_text(json.dumps({"q": "?", "a": right}) + "\n")
        task: dict[str, Any] = {
            "use": "measured",
            "data_files": str(rows),
            "doc_to_text": "{{q}}",
            "doc_to_target": "{{a}}",
        }
        task |= {"answer": {"form": "text"}}
        spec = {"name": "t", "task": task, "protocol": "single", "prompts": "qa/standard", "metrics": ["score"]}
        return harness.evaluate(spec, Mock(text=said), output_path=tmp_path / folder, project=frail)

    assert [score.numbers["score"] for score in numbers("5", "5", "r").scores] == [1.0]
    done = numbers("5", "five", "s")
    assert not done.failed and [score.numbers["score"] for score in done.scores] == [0.0]
    [noted] = [json.loads(line) for line in (tmp_path / "s" / "errors.jsonl").read_text().splitlines()]
    assert (noted["stage"], noted["place"]) == ("metric same", "registry/tasks/measured.py:11")
    assert rescored(tmp_path / "s", frail).scores == done.scores
    assert len((tmp_path / "s" / "errors.jsonl").read_text().splitlines()) == 1, "graded again, noted again"
    assert len(numbers("five", "5", "u").failed) == 1


def test_the_example_of_the_confidence_is_read() -> None:
    parsed = AnswerWithConfidence(Number(), "line").parse("Answer: 5\nConfidence:\u00a0")
    assert parsed.action == {"answer": 5, "confidence": None, "malformed": False}
