"""A reply with which a task's code would take forever counts as an empty one; the run continues and ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.exports import export
from harness.extensions.sandbox import clock
from tests.extensions.lm_eval.package_kit import own_task

ENDLESS = "a" * 45 + "b"
PATTERN = "(a+)+$"
FILTERS = {"filter_list": [{"name": "runs", "filter": [{"function": "regex", "regex_pattern": PATTERN}]}]}
METRIC = {
    "metric_list": [
        {"metric": "exact_match", "aggregation": "mean", "higher_is_better": True, "regexes_to_ignore": [PATTERN]}
    ]
}
FUNCTIONS = """import re
import time


def grade(document, results):
    return {'acc': float(re.sub(r'(a+)+$', '', results[0]).strip() == document['answer'])}


def choose(replies, documents):
    for texts in replies:
        for text in texts:
            while 'b' in text:
                pass
    return replies
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "SECONDS", 0.3)


def task(folder: Path, **keys: Any) -> Path:
    own_task(folder, **keys)
    (folder / "functions.py").write_text(FUNCTIONS)
    return folder


def custom(folder: Path) -> Path:
    task(folder, filter_list=[{"name": "runs", "filter": [{"function": "custom", "filter_fn": "FILTER"}]}])
    file = folder / "own.yaml"
    file.write_text(file.read_text().replace("filter_fn: FILTER", "filter_fn: !function functions.choose"))
    return folder


TASKS = {
    "filter": lambda folder: task(folder, **FILTERS),
    "metric": lambda folder: task(folder, **METRIC),
    "process_results": lambda folder: task(folder, process_results="grade"),
    "function of a filter": custom,
}


def spec(folder: Path, **more: Any) -> dict[str, Any]:
    task = {"use": "lm_eval", "task": "own", "include_path": str(folder)}
    return {"name": "t", "task": task, "protocol": "single", **more}


def replies(request: Any) -> str:
    """Endless for the first two documents, the right answer for the last."""
    return ENDLESS if "2+1" not in request.thread.text else "3"


def scores(run: Run) -> list[dict[str, Any]]:
    timed = ("latency", "duration")
    return [{k: v for k, v in score.numbers.items() if not k.startswith(timed)} for score in run.scores]


@pytest.mark.slow
@pytest.mark.parametrize("where", TASKS)
def test_the_run_ends_and_says_why(where: str, tmp_path: Path) -> None:
    what = spec(TASKS[where](tmp_path / "tasks"))
    done = harness.evaluate(what, Mock(function=replies), output_path=tmp_path / "run", project=builtin())
    assert len(done.scores) == 3 and not done.failed
    [name] = [name for name in done.scores[0].numbers if name.startswith(("exact_match,", "acc,"))]
    readable = where != "filter"  # `3` has no run of a
    assert [score.number(name) for score in done.scores] == [0.0, 0.0, float(readable)]
    errors = [json.loads(line) for line in (tmp_path / "run" / "errors.jsonl").read_text().splitlines()]
    assert sorted(error["episode"] for error in errors) == ["all/own/0/0", "all/own/1/0"]
    assert all("UnreadableTextError" in error["error"] for error in errors)
    assert scores(rescored(tmp_path / "run")) == scores(done)
    assert len(export(done, "lm_eval", tmp_path / "out").files) == 2


def test_one_endless_reply_among_several_is_the_empty_one(tmp_path: Path) -> None:
    steps = [{"function": "regex", "regex_pattern": r"(?:a+)+$|\d"}, {"function": "majority_vote"}]
    folder = task(tmp_path / "tasks", repeats=3, filter_list=[{"name": "maj", "filter": steps}])
    said = iter([ENDLESS, "1", "1"] + ["1"] * 6)
    done = harness.evaluate(
        spec(folder),
        Mock(function=lambda request: next(said)),
        output_path=tmp_path / "run",
        project=builtin(),
    )
    assert not done.failed
    assert [score.number("answered") for score in done.scores] == [pytest.approx(2 / 3), 1.0, 1.0]
    assert [score.number("exact_match,maj") for score in done.scores] == [1.0, 0.0, 0.0]


@pytest.mark.slow
def test_votes_and_many_endless_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reply is tried once: an endless one stands in many questions to the task."""
    tried: list[Any] = []
    ask = clock._PROCESS.ask

    def counted(recipe: bytes, request: tuple[Any, ...], wall: float | None) -> Any:
        answer = ask(recipe, request, wall)
        tried.extend([request[0]] if answer is None else [])
        return answer

    monkeypatch.setattr(clock._PROCESS, "ask", counted)
    folder = task(tmp_path / "tasks", **FILTERS)
    done = harness.evaluate(
        spec(folder, protocol={"use": "debate", "agents": 4, "rounds": 2}),
        Mock(text=ENDLESS),
        output_path=tmp_path / "run",
        project=builtin(),
    )
    assert not done.failed and {score.number("answered") for score in done.scores} == {0.0}
    assert len(tried) == 3  # documents
