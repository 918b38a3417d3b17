"""`harness certify`: what each line finds, in a project with one flaw at a time."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from harness.config import spec
from harness.config.project import find
from harness.extensions.certificates.card import BADGE, CARD, CardSource, badge, card
from harness.extensions.certificates.certify import CHECKS, Certificate, CheckLine
from harness.extensions.certificates.conformity import broken, leaked
from harness.extensions.certificates.trial import plan_of
from tests.helpers.commands import invoke

TASK = '''
"""Numbers."""

import itertools
import random
import sys

from harness.api import Case, Outcome, plugin
from harness.extensions.panels.questions import Question, QuestionTask
from harness.replies import Choice

CALLS = itertools.count()


@plugin
class Number(QuestionTask):
    """Name the number."""

    flaw: str = ""
    grades = ("right",)

    def cases(self, limit, seed):
        rng = random.Random(seed)
        for i in range(12 if limit is None else min(12, limit)):
            target = str(rng.randint(1, 8)) if self.flaw != "other cases" else str(1 + (i + next(CALLS)) % 8)
            if self.flaw == "process":
                target = str(1 + (i + ("killed_run" in sys.argv[0])) % 8)
            yield Case(f"n{i}", ("a",), target=target)

    def context(self, case, agent):
        hint = case.target if self.flaw == "leak" else "secret"
        shown = f"{self.question_of(case).text} The answer is {hint}."
        return {"question": shown, "instruction": "Answer with a number."}

    def question_of(self, case):
        return Question("Which number from 1 to 8?")

    def reply(self, case, agent):
        return Choice(tuple("12345678"))

    def grade(self, case, outcome):
        if self.flaw == "raises" and outcome.answers.get("a") == case.target:
            raise ValueError("no grade for what is right")
        if self.flaw == "partial" and not outcome.answers:
            return {}
        value = float(outcome.answers.get("a") == case.target)
        return {"right": 1 - value if self.flaw == "upside down" else value}
'''
POLICY = '''
"""Plays right."""

import itertools

from harness.api import Policy, plugin

CALLS = itertools.count()


@plugin
class Right(Policy):
    """Knows the answer, or forgets it every fifth time."""

    forgets: bool = False
    uses_ground_truth = True

    def inform(self, agent, case, seed):
        self.target = case.target

    def choose(self, turn, rng):
        return "1" if self.forgets and not next(CALLS) % 5 else self.target
'''
SPEC = {
    "name": "number",
    "task": {"use": "number"},
    "protocol": "single",
    "prompts": "qa/standard",
    "metrics": [{"use": "grade", "of": "right", "name": "right"}],
    "headline": {"metric": "right", "floor": "random", "ceiling": "right"},
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a task of flaws, which is the working directory."""
    for file, text in {
        "harness.yaml": "parents: [harness_builtin]\n",
        "registry/tasks/number.py": TASK,
        "registry/policies/right.py": POLICY,
        "specs/number.yaml": json.dumps(SPEC),
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(out: str) -> dict[str, tuple[bool, str]]:
    """Check → (whether it passed, why)."""
    found = {}
    for line in out.splitlines():
        if line.startswith(("  pass  ", "  FAIL  ")):
            name = max((check for check in CHECKS if line[8:].startswith(check)), key=len)
            found[name] = (line.startswith("  pass"), line[8 + len(name) :].strip())
    return found


@pytest.mark.slow  # plays seven times, once in a process that is killed
def test_a_sound_benchmark_passes_every_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = invoke(capsys, "certify", "number", "-o", "card")
    assert (code, err) == (0, "")
    assert [(name, passed) for name, (passed, _) in lines(out).items()] == [(name, True) for name in CHECKS]
    data = json.loads((project / "card" / CARD).read_text())
    [one] = data["benchmarks"]
    assert data["passed"] and one["passed"] and one["headline"]["ceiling"]["value"] == 1.0
    assert one["headline"]["floor"]["high"] < one["headline"]["ceiling"]["low"]
    assert len(one["digest"]) == 64 and "registry/tasks/number.py" in one["digests"]["code"]["task"]
    assert one["cost"]["calls"] == 1.0 and one["cost"]["output_tokens"] is None
    assert "some have no max_tokens" in lines(out)["cost"][1]
    assert "certified" in (project / "card" / BADGE).read_text()
    code, out, _ = invoke(
        capsys, "certify", ".", "-o", "whole", "--limit", "3", "--set", "generation_kwargs.max_tokens=50"
    )
    assert code == 1 and not lines(out)["floor and ceiling"][0]
    [one] = json.loads((project / "whole" / CARD).read_text())["benchmarks"]
    assert one["cost"]["output_tokens"] == 50.0 and "at most 50 output tokens" in lines(out)["cost"][1]
    assert one["options"]["limit"] == 3 and "not certified" in (project / "whole" / BADGE).read_text()


@pytest.mark.slow  # as above, once a flaw
@pytest.mark.parametrize(
    ("change", "failed", "why"),
    [
        pytest.param({"task.flaw": "leak"}, {"no leak"}, "as question, after", id="leak"),
        pytest.param({"task.flaw": "partial"}, {"conformant"}, "grade gives []", id="partial"),
        pytest.param({"task.flaw": "raises"}, {"played"}, "no grade for what is right", id="raises"),
        pytest.param({"task.flaw": "upside down"}, {"floor and ceiling"}, "the ceiling is not higher", id="down"),
        pytest.param({"headline.ceiling": "random"}, {"floor and ceiling"}, "the ceiling is not higher", id="equal"),
        pytest.param({"headline": "{metric: right}"}, {"floor and ceiling"}, "names no floor", id="no floor"),
        pytest.param(
            {"headline.ceiling": "{use: right, forgets: true}"}, {"deterministic"}, "gives other", id="forgets"
        ),
        pytest.param({"task.flaw": "other cases"}, {"deterministic"}, "gives other", id="other cases"),
        pytest.param({"task.flaw": "process"}, {"resumed"}, "", id="process"),
    ],
)
def test_a_flaw_fails_its_line(
    project: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], failed: set[str], why: str
) -> None:
    sets = [word for path, value in change.items() for word in ("--set", f"{path}={value}")]
    code, out, err = invoke(capsys, "certify", "number", *sets)
    found = lines(out)
    assert code == 1 and "not certified: number" in err and "Traceback" not in out + err
    assert [*found] == [*CHECKS]  # a check that fails ends no other
    assert failed <= {name for name, (passed, _) in found.items() if not passed}
    assert any(why in found[name][1] for name in failed), found
    assert json.loads((project / CARD).read_text())["passed"] is False


@pytest.mark.slow  # plays four times
def test_a_benchmark_of_scored_turns_has_no_output_tokens(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"q": f"Which is {i}?", "options": ["no", f"{i}"], "gold": 1} for i in range(4)]
    (project / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = {"doc_to_text": "{{q}}", "doc_to_target": "gold", "doc_to_choice": "options", "scoring": "loglikelihood"}
    task = {"use": "dataset_qa", "data_files": str(project / "test.jsonl"), **words}
    own = {"task": task, "prompts": "qa/scored", "metrics": ["score"], "headline": {"metric": "score"}}
    (project / "specs" / "number.yaml").write_text(json.dumps(SPEC | own))
    _, out, _ = invoke(capsys, "certify", "number")
    assert lines(out)["cost"][1].endswith("input tokens; no output tokens")
    [one] = json.loads((project / CARD).read_text())["benchmarks"]
    assert one["cost"]["output_tokens"] == 0


@pytest.mark.slow  # plays four times
def test_a_headline_may_say_why_it_has_no_ceiling(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ("--set", "headline={metric: right, floor: random, no_ceiling: no script knows it}")
    code, out, _ = invoke(capsys, "certify", "number", *sets)
    passed, why = lines(out)["floor and ceiling"]
    assert code == 0 and passed and why.startswith("floor 0") and why.endswith("no ceiling: no script knows it")
    [one] = json.loads((project / CARD).read_text())["benchmarks"]
    assert one["headline"]["floor"]["n"] == 12 and "ceiling" not in one["headline"]
    both = ("--set", "headline.no_floor=there is one")
    code, out, _ = invoke(capsys, "validate", "number", *both)
    assert code == 2


def test_leaks_and_broken_contracts_are_named(project: Path) -> None:
    def plan(flaw: str) -> Any:
        return plan_of(spec.load("number", find(), [f"task.flaw={flaw or 'none'}"]), find(), "stand-in")

    assert broken(plan(""))[0] == [] == leaked(plan(""))[0]
    assert "the context holds the target, as question, after" in leaked(plan("leak"))[0][0]
    assert leaked(plan("leak"))[0][0].startswith("Number: ") and broken(plan("leak"))[0] == []
    assert any("grade gives []" in one for one in broken(plan("partial"))[0])
    assert any("cases differ for the same seed" in one for one in broken(plan("other cases"))[0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param("numbr", "there is no spec and no installed package 'numbr'", id="name"),
        pytest.param("../empty", "holds no project and no installed package", id="folder"),
        pytest.param("../foreign", "is another project", id="project"),
    ],
)
def test_what_is_no_benchmark_is_one_line(
    project: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    given: str,
    message: str,
) -> None:
    (project.parent / "empty").mkdir(exist_ok=True)
    (project.parent / "foreign").mkdir(exist_ok=True)
    (project.parent / "foreign" / "harness.yaml").write_text("name: foreign\n")
    code, out, err = invoke(capsys, "certify", given)
    assert (code, out) == (2, "") and message in err and "Traceback" not in err
    assert not (project / CARD).exists()


def test_a_badge_says_how_many_passed_and_escapes_names() -> None:
    good = Certificate("a", lines=[CheckLine(name, True, "") for name in CHECKS])
    bad = Certificate("<b>&\x1b", lines=[CheckLine(CHECKS[0], False, "<no>")])
    for certificates, words, passed in (([good], "certified", True), ([good, bad], "1 of 2 certified", False)):
        data = card(certificates, CardSource("<&>"))
        image = ElementTree.fromstring(badge(data))
        assert data["passed"] is passed
        assert words in {text.text for text in image.iter("{http://www.w3.org/2000/svg}text")}
        assert words in image.attrib["aria-label"]
    assert Certificate("c").passed is False  # nothing was tried
