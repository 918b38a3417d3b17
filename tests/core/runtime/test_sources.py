"""The code of a run is part of what it is: edited plugins are noticed where runs go on and where they are merged."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.api import Reply
from harness.config import resolve, spec
from harness.config.project import builtin, find
from harness.engines.likelihoods import Likelihoods
from harness.engines.mock import Mock
from harness.plugins import approvals
from harness.runtime.sources import code, reader_modules
from tests.core.replies.every_form import FORMS

ROOT = Path(__file__).parents[3]
TASK = '''
from harness.api import Case, Outcome, Task, plugin
from harness.replies import Choice
from ._marks import MARK

@plugin
class Guess(Task):
    """Say yes or no."""
    grades = ("right",)

    def cases(self, limit, seed):
        for i in range(4):
            yield Case(f"c{i}", ("S0",))

    def example(self):
        return Case("c", ("S0",))

    def context(self, case, agent):
        return {}

    def reply(self, case, agent):
        return Choice(("aye", "nay"))

    def grade(self, case, outcome):
        return {"right": MARK}
'''
PROTOCOL = '''
from harness.api import Outcome, Protocol, Turn, plugin

@plugin
class Once(Protocol):
    """Everybody answers once."""
    def play(self, task, case, agents, rng):
        moves = yield [Turn(s, "ask", {}, task.reply(case, s), task.context(case, s)) for s in agents]
        return Outcome({m.agent: m.action for m in moves})
'''
METRIC = '''
from harness.api import Metric, plugin

@plugin
class Right(Metric):
    """The grade."""
    needs = ("right",)
    def measure(self, episode):
        return 1.0 * episode.grade["right"]
'''
SPEC = """
name: guess
task: guess
protocol: once
prompts: plain
metrics: [right]
tables: [{title: T, rows: model, metrics: right}]
"""
TASK_FILE, MARKS, METRIC_FILE = "registry/tasks/guess.py", "registry/tasks/_marks.py", "metrics/right.py"
PROTOCOL_FILE = "registry/protocols/once.py"
FILES = {
    "harness.yaml": "name: own\nparents: [harness_builtin]\n",
    TASK_FILE: TASK,
    MARKS: "MARK = 1.0\n",
    PROTOCOL_FILE: PROTOCOL,
    METRIC_FILE: METRIC,
    "prompts/plain/prompts.yaml": "description: Plain.\n",
    "prompts/plain/ask.j2": "Yes or no?\n",
    "specs/guess.yaml": SPEC,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for file, text in FILES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return tmp_path


def harness(project: Path, *arguments: str) -> tuple[int, str, str]:
    """The command in a process of its own: code that was edited is read again."""
    command = [sys.executable, "-m", "harness", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


MODEL = ("--model", "mock", "--model_args", "text=aye")


def play(project: Path, folder: str = "r", model: str = "aye", *more: str) -> tuple[int, str, str]:
    arguments = ["--spec", "guess", "--output_path", folder, "--model", "mock", "--model_args", f"text={model}"]
    return harness(project, "eval", *arguments, *more)


def edit(project: Path, file: str, before: str, after: str) -> None:
    text = (project / file).read_text()
    assert before in text
    (project / file).write_text(text.replace(before, after))
    later = (project / file).stat().st_mtime + 2  # Python knows stale bytecode by size, and by time in whole seconds
    os.utime(project / file, (later, later))


def meta(project: Path, folder: str = "r") -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project / folder / "run.json").read_text())
    return data


@pytest.mark.slow
def test_run_json_lists_the_code(project: Path) -> None:
    assert play(project)[0] == 0
    code = meta(project)["code"]
    assert {part: sorted(files) for part, files in code.items()} == {
        "play": [PROTOCOL_FILE],
        "task": [MARKS, TASK_FILE],
        "metrics": [METRIC_FILE],
    }
    assert all(len(digest) == 64 for files in code.values() for digest in files.values())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("file", [TASK_FILE, MARKS, METRIC_FILE])
def test_a_finished_run_with_changed_grading_is_scored_again(project: Path, file: str) -> None:
    play(project)
    edit(
        project,
        file,
        *{TASK_FILE: ("MARK}", "MARK / 2}"), MARKS: ("1.0", "0.5"), METRIC_FILE: ("1.0 *", "0.5 *")}[file],
    )
    status, out, err = play(project)
    assert status == 2 and f"code changed since the run in r: {file}" in err and "`harness score r`" in err, out
    status, out, _ = harness(project, "score", "r")
    assert status == 0 and "0.50" in out
    assert meta(project)["graded_again"][0]["changed"] == [file]
    status, out, _ = play(project)
    assert status == 0 and "0.50" in out, "what score recorded is what is there"


@pytest.mark.slow
def test_a_finished_run_with_a_changed_protocol_stays_what_it_is(project: Path) -> None:
    play(project)
    edit(project, PROTOCOL_FILE, "answers once", "answers one time")
    status, _, err = play(project)
    assert status == 2 and PROTOCOL_FILE in err and "--overwrite" in err and "harness score" not in err
    assert play(project, "r", "aye", "--overwrite")[0] == 0 and play(project)[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("file", "goes_on"), [(TASK_FILE, False), (PROTOCOL_FILE, False), (METRIC_FILE, True)])
def test_an_unfinished_run_goes_on_where_only_metrics_changed(project: Path, file: str, goes_on: bool) -> None:
    """All its episodes are then measured by the same code."""
    assert play(project, "r", "aye", "--max_calls", "2", "--max_concurrency", "1")[0] == 1
    started = meta(project)
    edit(project, file, "\n@plugin", "\nX = 1\n@plugin")
    edit(project, METRIC_FILE, "1.0 *", "0.5 *" if goes_on else "1.0 *")
    status, out, err = play(project)
    assert (status == 0) == goes_on, err
    if goes_on:
        assert "0.50" in out and {json.loads(line)["numbers"]["right"] for line in scores(project)} == {0.5}
        assert "rescore" not in meta(project) and meta(project)["code"] != started["code"]
    else:
        assert f"{file}\n" in err and "undo the change" in err
        edit(project, file, "\nX = 1\n@plugin", "\n@plugin")
        assert play(project)[0] == 0


def scores(project: Path) -> list[str]:
    return (project / "r" / "scores.jsonl").read_text().splitlines()


@pytest.mark.slow
def test_in_a_long_session_the_code_is_what_was_imported(project: Path) -> None:
    there = find(project)
    first = code(resolve.plan(spec.load("guess", there), there, Mock(text="aye")))
    edit(project, TASK_FILE, "MARK}", "MARK / 2}")
    edit(project, MARKS, "1.0", "0.5")
    assert code(resolve.plan(spec.load("guess", there), there, Mock(text="aye"))) == first
    play(project, "new")
    assert meta(project, "new")["code"]["task"].keys() == first["task"].keys()
    assert not set(meta(project, "new")["code"]["task"].values()) & set(first["task"].values())


@pytest.mark.slow
def test_a_leaderboard_merges_no_runs_that_were_graded_by_different_code(project: Path) -> None:
    play(project, "a", "aye")
    edit(project, TASK_FILE, "MARK}", "MARK / 2}")
    play(project, "b", "nay")
    status, _, err = harness(project, "leaderboard", "a", "b")
    assert status == 2 and f"graded by different code: {TASK_FILE}" in err and "harness score" in err
    assert harness(project, "score", "a")[0] == 0
    assert harness(project, "leaderboard", "a", "b")[0] == 0
    edit(project, PROTOCOL_FILE, "answers once", "answers one time")
    play(project, "c", "perhaps")
    status, _, err = harness(project, "leaderboard", "a", "c")
    assert status == 2 and f"played by different code: {PROTOCOL_FILE}" in err


@pytest.mark.slow
def test_times_add_up_over_sessions(project: Path) -> None:
    play(project, "r", "aye", "--max_calls", "2", "--max_concurrency", "1")
    first = meta(project)
    assert first["start"] < first["end"] and first["duration"] > 0 and "session_start" not in first
    play(project)
    whole = meta(project)
    assert whole["start"] == first["start"] and whole["end"] > first["end"]
    assert whole["duration"] > first["duration"]
    play(project)
    assert {**meta(project), "command": None} == {**whole, "command": None}, "nothing was left to do"


@pytest.mark.slow
def test_the_commit_of_the_project(project: Path) -> None:
    play(project, "before")
    assert meta(project, "before")["git"] is None
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "harness.yaml", "registry"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    play(project, "clean")
    edit(project, TASK_FILE, "Say yes or no", "Say no or yes")
    play(project, "dirty")
    clean, dirty = meta(project, "clean")["git"], meta(project, "dirty")["git"]
    assert clean["dirty"] is False and dirty == {**clean, "dirty": True} and len(clean["commit"]) == 40


@pytest.mark.slow
def test_the_built_in_project_has_the_same_code_wherever_it_is_installed(tmp_path: Path) -> None:
    """A wheel's folder has another name and holds no more than these."""
    there = tmp_path / "harness_builtin"
    for part in ("registry", "metrics", "prompts", "specs"):
        shutil.copytree(ROOT / part, there / part)
    shutil.copy(ROOT / "harness.yaml", there)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "harness.yaml").write_text("parents: [../harness_builtin]\n")
    with approvals.allowing():  # the copies are nobody's own project
        plans = [resolve.plan(spec.load("dpbench", p), p) for p in (builtin(), find(there), find(tmp_path / "own"))]
    first, *others = map(code, plans)
    assert "registry/protocols/steps.py" in first["play"] and "registry/channels/_courier.py" in first["play"]
    assert others == [first, first]


ROWS = '{"id": "a", "q": "Right?", "right": "aye"}\n{"id": "b", "q": "Wrong?", "right": "nay"}\n'
ASKING = """
name: asking
task: {use: dataset_qa, data_files: {test: rows.jsonl}, doc_to_text: q, doc_to_target: right, doc_to_id: id,
  answer: {form: text}}
protocol: single
prompts: qa/standard
metrics: [score]
"""


@pytest.fixture
def asked(project: Path) -> Path:
    (project / "rows.jsonl").write_text(ROWS)
    (project / "specs/guess.yaml").write_text(ASKING)
    assert play(project)[0] == 0
    return project


@pytest.mark.slow
def test_changed_right_answers_are_noticed_and_graded_again(asked: Path) -> None:
    edit(asked, "rows.jsonl", '"nay"', '"aye"')
    status, _, err = play(asked)
    assert status == 2 and "right answers" in err and "`harness score r`" in err
    play(asked, "other", "nay")
    status, _, err = harness(asked, "leaderboard", "r", "other")
    assert status == 2 and "right answers" in err
    assert "1.00" in harness(asked, "score", "r")[1]
    status, out, _ = play(asked)
    assert status == 0 and "1.00" in out, "what score recorded is what is there"
    assert harness(asked, "leaderboard", "r", "other")[0] == 0


@pytest.mark.slow
def test_changed_questions_are_noticed_and_never_graded(asked: Path) -> None:
    edit(asked, "rows.jsonl", "Wrong?", "Left?")
    for command in (("score", "r"), ("eval", "--spec", "guess", "--output_path", "r", *MODEL)):
        status, _, err = harness(asked, *command)
        assert status == 2 and "questions" in err and "harness score" not in err
    assert play(asked, "r", "aye", "--overwrite")[0] == 0


@pytest.mark.slow
def test_a_task_that_makes_other_cases_is_not_graded(project: Path) -> None:
    play(project)
    edit(project, TASK_FILE, '("S0",))\n\n    def example', '("S0",), public={"more": {1, 2}})\n\n    def example')
    status, _, err = harness(project, "score", "r")
    assert status == 2 and "questions" in err
    assert play(project, "new")[0] == play(project, "new")[0] == 0, "a set is the same in every process"


@pytest.mark.slow
def test_messages_notices_that_a_journal_was_cut(project: Path) -> None:
    play(project)
    journal = project / "r/journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:200])
    status, _, err = harness(project, "messages", "r")
    assert status == 2 and "was cut" in err


@pytest.mark.slow
def test_an_unfinished_run_does_not_go_on_with_other_right_answers(asked: Path) -> None:
    record = asked / "r/run.json"
    record.write_text(record.read_text().replace('"finished"', '"stopped"'))
    edit(asked, "rows.jsonl", '"nay"', '"aye"')
    status, _, err = play(asked)
    assert status == 2 and "right answers" in err and "--overwrite" in err


def test_every_form_of_harness_is_in_the_digest_of_what_reads_replies() -> None:
    """Also a form in a folder of an extension's folder, and one that only derives from another form."""
    families: list[type[Reply]] = [*(type(form) for form, _ in FORMS.values()), Likelihoods]
    forms = {cls for family in families for cls in family.__mro__ if cls.__module__.startswith("harness.")}
    files = {Path(inspect.getfile(cls)) for cls in forms if hasattr(cls, "parse")}
    folders = {file.relative_to(ROOT / "harness").parts[:2] for file in files}
    assert {("extensions", "panels"), ("extensions", "games")} <= folders
    assert files - {ROOT / "harness" / "api" / "reply.py"} <= reader_modules().keys()
