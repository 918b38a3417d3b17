"""Agreement of raters: the formulas on published examples, and a judge against people."""

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.cli import main
from harness.engines.mock import Mock
from harness.extensions.judges.agreement import Level, alpha, bootstrapped, kappa, weighted_kappa

MAMMOGRAMS = [[21, 12, 0, 0], [4, 17, 1, 0], [3, 9, 15, 2], [0, 0, 0, 1]]
"""Two radiologists' ratings of 85 mammograms (Altman, 1991, "Practical Statistics for Medical Research")."""
OBSERVERS = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
"""Four observers of twelve units (Krippendorff, 2011, "Computing Krippendorff's Alpha-Reliability")."""


def mammograms() -> list[tuple[float, float]]:
    return [(i, j) for i, row in enumerate(MAMMOGRAMS) for j, count in enumerate(row) for _ in range(count)]


def test_kappa_of_published_tables() -> None:
    assert kappa(mammograms()) == pytest.approx(0.4728, abs=5e-5)  # Stata's manual, [R] kappa, has the same table
    assert weighted_kappa(mammograms()) == pytest.approx(0.6714, abs=5e-5)  # its weights w2
    yes_no = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    assert kappa(yes_no) == pytest.approx(0.4) == weighted_kappa(yes_no)


@pytest.mark.parametrize(("level", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(level: Level, value: float) -> None:
    rows = [line.split() for line in OBSERVERS.split("\n") if line]
    units = [[float(row[i]) for row in rows if row[i] != "."] for i in range(12)]
    assert alpha(units, level) == pytest.approx(value, abs=5e-4)


def test_where_there_is_nothing_to_agree_on() -> None:
    assert kappa([]) is None is weighted_kappa([]) and kappa([(3, 3)] * 5) is None is weighted_kappa([(3, 3)] * 5)
    assert alpha([[1], [2]]) is None and alpha([[2, 2], [2, 2]]) is None and bootstrapped([(1, 2)] * 9, kappa) is None
    assert kappa([(0, 0), (1, 1)]) == 1 == alpha([[0, 0], [1, 1]])
    low, high = bootstrapped(mammograms(), weighted_kappa)
    assert 0.4 < low < 0.6714 < high < 0.9


def judged(folder: Path, **more: Any) -> harness.Run:
    texts = {"use": "mock", "model": "grader", "text": '{"rating": 4}'}
    spec = {
        "name": "essays", "task": "open_questions", "protocol": "single", "prompts": "qa/standard", "limit": 12,
        "models": {"grader": texts, "other": {**texts, "model": "other", "text": '{"rating": 5}'}},
        "metrics": [{"use": "judge", "name": "helpful", "model": "grader"}], **more,
    }  # fmt: skip
    return harness.evaluate(spec, Mock(text="So."), output_path=folder)


def test_a_judge_and_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = judged(tmp_path / "run")
    lines = ["case,rater,label\n"]
    for i, score in enumerate(run.scores[:10]):
        lines += [f"{score.case},Ann,4\n", f"{score.case},Ben,{3 + i % 3}\n"]
    labels = tmp_path / "labels.csv"
    labels.write_text("".join(lines))
    assert main(["agreement", str(run.folder), "--labels", str(labels), "--format", "json"]) == 0
    table, *_ = json.loads(capsys.readouterr().out)
    rows = {row["names"][0]: [cell["value"] for cell in row["cells"]] for row in table["rows"]}
    assert rows["judge and Ann"] == [10, 1.0, None, None, None, 0.0]  # one value throughout: nothing to agree on
    assert rows["judge and Ben"][:3] == [10, 0.3, 0.0] and rows["judge and Ben"][5] == pytest.approx(0.1)
    assert rows["people among themselves"][0] == rows["judge and people"][0] == 10
    assert main(["agreement", str(run.folder)]) == 2
    assert "nothing to compare it with" in capsys.readouterr().err


def test_judges_of_a_panel_among_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    panel = [{"use": "judge", "name": "helpful", "model": ["grader", "other"]}]
    run = judged(tmp_path / "run", metrics=panel)
    assert main(["agreement", str(run.folder)]) == 0
    output = capsys.readouterr().out
    assert "judges among themselves" in output and "Mean ratings: grader 4.00, other 5.00." in output


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.csv", "case,label\nexplain-1,good\n", "a.csv:2:1: 'good' is not a number"),
        ("a.csv", "case,label\nexplain-99,3\n", "the run has no episode 'explain-99'"),
        ("a.csv", "case,label\nexplain-1,3\nexplain-1,4\n", "gave 'all/explain-1/0' two labels"),
        ("a.csv", "question,label\nx,3\n", "a label needs the columns label, and episode or case"),
        ("a.jsonl", '{"episode": "all/explain-1/0", "label": 1}\n[1]\n', "a.jsonl:2:1: line 2 is not an object"),
        ("none.csv", None, "none.csv: cannot be read"),
    ],
)
def test_labels_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, problem: str
) -> None:
    run = judged(tmp_path / "run", limit=2)
    if text is not None:
        (tmp_path / name).write_text(text)
    assert main(["agreement", str(run.folder), "--labels", str(tmp_path / name)]) == 2
    assert problem in capsys.readouterr().err


def test_a_case_of_several_episodes_needs_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = judged(tmp_path / "run", limit=1, repeats=2)
    (tmp_path / "a.csv").write_text("case,label\nexplain-1,3\n")
    assert main(["agreement", str(run.folder), "--labels", str(tmp_path / "a.csv")]) == 2
    assert "2 episodes have this case" in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("case,repeat,label\nexplain-1,1,yes\n")
    assert main(["agreement", str(run.folder), "--labels", str(tmp_path / "a.csv")]) == 0
