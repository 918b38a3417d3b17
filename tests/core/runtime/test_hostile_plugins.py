"""Plugins with bugs: each fails its own episodes with words for its author; the run, and its record, stay whole."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Request
from harness.api.errors import EngineFatalError, PluginError, SpecError
from harness.cli import main
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.runtime.runner import RunStoppedError
from tests.helpers.journals import as_killed, edited

TOY = Path(__file__).parents[2] / "toy"

ODD = '''
"""Goes wrong in a way of one's choice."""
import sys
from harness.api import Outcome, Protocol, Turn, plugin

@plugin
class Odd(Protocol):
    """Goes wrong in a way of one's choice."""
    how: str
    where: str = "c0"
    facts = ("seen",)

    def play(self, task, case, agents, rng):
        def turn(agent):
            return Turn(agent, "say", {"round": 0, "heard": {}}, task.reply(case, agent), task.context(case, agent))

        how = self.how if case.id == self.where else "well"
        if how == "exits":
            sys.exit("enough")
        if how == "is no generator":
            return 3
        if how == "yields a turn":
            yield turn(agents[0])
        if how == "yields words":
            yield ["S0"]
        if how == "asks a stranger":
            yield [turn(agents[0]), turn("Zed")]
        if how == "asks twice":
            yield [turn(agents[0]), turn(agents[0])]
        if how == "asks nobody":
            yield []
        moves = yield [turn(agent) for agent in reversed(agents)]
        if how == "returns nothing":
            return None
        if how == "returns a set":
            return Outcome(facts={"seen": {1}})
        return Outcome({m.agent: m.action for m in moves}, facts={"seen": 1})
'''
FUSSY = '''
"""Cannot be asked twice."""
from fractions import Fraction
from harness.api import Metric, plugin

@plugin
class Fussy(Metric):
    """Measures and aggregates as it is told."""
    measures: str = "1.0"
    aggregates: bool = True

    def measure(self, episode):
        if self.measures == "exit":
            raise SystemExit(3)
        if self.measures == "order":
            return float("".join(move.agent[1] for move in episode.batches[0]))
        return eval(self.measures, {"Fraction": Fraction})

    def aggregate(self, numbers):
        return super().aggregate(numbers) if self.aggregates else 1 / 0
'''
LOOSE = '''
"""Tasks that do not know their business."""
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from harness.api import Case, Outcome, Parsed, Reply, Task, plugin

@dataclass(frozen=True, slots=True)
class Sly(Reply):
    how: str
    def parse(self, text):
        if self.how == "parse exits":
            sys.exit(1)
        return Parsed({1} if self.how == "parses a set" else text)

@plugin
class Loose(Task):
    """Goes wrong in a way of one's choice."""
    how: str
    count: int = 3
    grades = ("agreed",)

    def cases(self, limit, seed):
        if self.how == "cases raise":
            raise KeyError("no data")
        for i in range(self.count):
            yield "c" if self.how == "cases are words" else Case("c" if self.how == "one id" else f"c{i}", ("S0", "S1"))

    def example(self):
        return Case("c", ("S0", "S1"))

    def context(self, case, agent):
        return {"name": agent}

    def reply(self, case, agent):
        return Sly(self.how)

    def grade(self, case, outcome):
        if self.how == "grade exits":
            sys.exit(1)
        return {"grade lacks": {}, "grades words": {"agreed": "x"}}.get(self.how, {"agreed": 1.0})
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project on top of the toy one with plugins that go wrong."""
    root = tmp_path / "project"
    for file, text in {
        "harness.yaml": f"parents: [{TOY}]\n",
        "registry/protocols/odd.py": ODD,
        "registry/tasks/loose.py": LOOSE,
        "metrics/fussy.py": FUSSY,
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    return find(root)


def run(project: Project, folder: Path, model: Any = None, **changes: Any) -> harness.Run:
    body = {"extends": "toy", "name": "t", "matrix": {"agents": [2]}, **changes}
    return harness.evaluate(body, model, output_path=folder, project=project)


def loose(project: Project, folder: Path, how: str, model: Any = None, **changes: Any) -> harness.Run:
    changes = {"matrix": {"agents": None, "how": [how]}, "task": {"use": "loose", "how": "${how}"}, **changes}
    return run(project, folder, model, **{"tables": None, "metrics": ["agreed"], **changes})


@pytest.mark.sampled(9)
@pytest.mark.parametrize("model", [None, Mock(text="a")], ids=["policies", "models"])
@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("exits", "SystemExit: enough (registry/protocols/odd.py:19)"),
        ("yields a turn", "TypeError: Odd yielded Turn("),
        ("yields words", "TypeError: Odd yielded 'S0' in a batch, not a Turn"),
        ("asks a stranger", "RuntimeError: Odd asks 'Zed', which is not an agent of this case"),
        ("asks twice", "RuntimeError: Odd asks 'S0' twice in one batch"),
        ("returns nothing", "TypeError: Odd returned None, not an Outcome"),
        ("returns a set", "TypeError: Object of type set is not JSON serializable"),
    ],
)
def test_a_protocols_bug_fails_its_episode_only(
    project: Project, tmp_path: Path, how: str, says: str, model: Any
) -> None:
    done = run(project, tmp_path / "r", model, protocol={"use": "odd", "how": how})
    assert [score.error is None for score in done.scores] == [False, True, True, True]
    assert str(done.scores[0].error).startswith(says)


def test_a_batch_without_turns_is_a_batch(project: Project, tmp_path: Path) -> None:
    assert not run(project, tmp_path / "r", protocol={"use": "odd", "how": "asks nobody"}).failed


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("grade exits", "grade: SystemExit: 1 (registry/tasks/loose.py:"),
        ("grade lacks", "grade: RuntimeError: Loose.grade gives no agreed"),
        ("grades words", "metric agreed: TypeError: gave 'x', which is not a number (metrics/agreed.py)"),
    ],
)
def test_a_tasks_bug_fails_its_episodes_and_the_run_ends_well(
    project: Project, tmp_path: Path, how: str, says: str
) -> None:
    done = loose(project, tmp_path / "r", how, Mock(text="a"))
    assert len(done.failed) == 3 and all(str(s.error).startswith(says) for s in done.scores)
    assert done.meta["spec"] == "t" and harness.load_run(tmp_path / "r", project).scores == done.scores


@pytest.mark.parametrize(
    ("how", "changes", "says"),
    [
        ("one id", {}, "gives two cases with the id 'c'"),
        ("cases are words", {}, "Loose.cases gives 'c', no Case"),
        ("well", {"task": {"use": "loose", "how": "${how}", "count": 0}}, "nothing to play"),
    ],
)
def test_cases_are_looked_at_before_anything_is_written(
    project: Project, tmp_path: Path, how: str, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises((PluginError, SpecError), match=says):
        loose(project, tmp_path / "r", how, **changes)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("measures", "number", "error"),
    [
        ("None", None, None),
        ("True", 1.0, None),
        ("Fraction(1, 4)", 0.25, None),
        ("3", 3, None),
        ("float('nan')", None, None),
        ("float('inf')", None, None),
        ("'1'", None, "metric m: TypeError: gave '1', which is not a number (metrics/fussy.py)"),
        ("exit", None, "metric m: SystemExit: 3 (metrics/fussy.py:14)"),
    ],
)
def test_whatever_a_metric_gives(
    project: Project, tmp_path: Path, measures: str, number: float | None, error: str | None
) -> None:
    if "float" in measures:
        measures = measures.replace("float", "0.0.__class__")
    metrics = ["agreed", {"use": "fussy", "measures": measures, "name": "m"}]
    done = run(project, tmp_path / "r", metrics=metrics)
    assert [(s.numbers["m"], s.error) for s in done.scores] == [(number, error)] * 4
    again = run(project, tmp_path / "r", metrics=metrics)
    assert again.scores == done.scores, "what is read back is what was written"


def test_an_aggregate_that_fails_loses_no_episode(project: Project, tmp_path: Path) -> None:
    metrics = ["agreed", {"use": "fussy", "aggregates": False}]
    with pytest.raises(PluginError, match=r"Fussy.aggregate fails: ZeroDivisionError(.|\n)*harness score"):
        run(project, tmp_path / "r", metrics=metrics)
    assert len((tmp_path / "r" / "scores.jsonl").read_text().splitlines()) == 4


def test_rescoring_sees_moves_in_the_order_of_their_batch(project: Project, tmp_path: Path) -> None:
    """Not in the order in which the answers came in."""

    async def answer(request: Request) -> str:
        for _ in range(3 if "/S1/" in request.id else 0):  # S1 is asked first and answers last
            await asyncio.sleep(0)
        return "a"

    metrics = ["agreed", {"use": "fussy", "measures": "order"}]
    done = run(project, tmp_path / "r", Mock(function=answer), protocol={"use": "odd", "how": "well"}, metrics=metrics)
    first = next(line for _, line in storage.lines(tmp_path / "r" / "journal.jsonl"))
    assert first["s"] == "S0", "the test is about answers that overtake one another"
    assert {s.numbers["fussy"] for s in done.scores} == {10.0}
    assert rescored(tmp_path / "r", project).scores == done.scores


def test_a_dead_engine_stops_the_run_even_if_a_plugin_fails_beside_it(project: Project, tmp_path: Path) -> None:
    """Else the episode would be written off as failed, and never gone on with."""

    def answer(request: Request) -> str:
        if "/S0/" in request.id:
            raise EngineFatalError("gone")
        raise KeyError("a bug in an engine")

    with pytest.raises(RunStoppedError, match="gone"):
        run(project, tmp_path / "r", Mock(function=answer), protocol={"use": "odd", "how": "well"})
    assert not storage.JournalState(tmp_path / "r" / "journal.jsonl").ends


def test_moves_recorded_by_another_protocol_are_not_taken_for_its_own(project: Project, tmp_path: Path) -> None:
    run(project, tmp_path / "r")
    journal = tmp_path / "r" / "journal.jsonl"
    results = [line for line in journal.read_text().splitlines(keepends=True) if '"k":"end"' not in line]
    journal.write_text("".join(results))
    edited(journal, '"t": "say"', '"t": "shout"')
    as_killed(tmp_path / "r")
    done = run(project, tmp_path / "r")
    assert "turn 0 of S0 is 'say' but was recorded as 'shout'" in str(done.scores[0].error)


def test_the_command_line_tells_a_plugins_bug_with_its_line(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / "specs").mkdir()
    spec = project.root / "specs" / "t.yaml"
    spec.write_text(
        "extends: toy\nname: t\nmatrix: {agents: , how: [cases raise]}\ntables: []\n"
        'task: {use: loose, how: "${how}"}\nprotocol: {use: odd, how: well}\nmetrics: [agreed]\n'
    )
    for command in (["eval", "--output_path", str(tmp_path / "r")], ["plan"], ["show", "--case", "0"]):
        with contextlib.chdir(project.root):
            assert main([*command, "--spec", "t"]) == 2
        err = capsys.readouterr().err
        assert "loose.py:" in err and "KeyError: 'no data'" in err and "Traceback" not in err
