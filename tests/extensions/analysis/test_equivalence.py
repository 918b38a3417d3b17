"""Tests of equivalence: of the level that they promise, in `harness compare`, in tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Metric
from harness.api.errors import SpecError
from harness.extensions.analysis import paired
from harness.extensions.analysis.equivalence import tost
from harness.tables import EpisodeScore, Table, TableSpec, build
from tests.helpers.commands import invoke

Capsys = pytest.CaptureFixture[str]


@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=3, max_size=20), st.floats(0.05, 1))
def test_it_is_the_larger_of_two_one_sided_tests(numbers: list[float], margin: float) -> None:
    error = float(numpy.std(numbers, ddof=1)) / len(numbers) ** 0.5
    if error < 1e-9:
        return
    found = paired.paired([[(i, x) for i, x in enumerate(numbers)]], 2.0, margin=margin).equivalence
    assert found is not None
    above = scipy.stats.ttest_1samp(numbers, -margin, alternative="greater").pvalue
    below = scipy.stats.ttest_1samp(numbers, margin, alternative="less").pvalue
    assert found.pvalue == pytest.approx(max(above, below), abs=1e-6)
    low, high = found.interval
    assert (found.verdict == "same") == (-margin < low and high < margin)


def test_few_pairs_that_do_not_differ_prove_nothing() -> None:
    for n, verdict in ((5, "open"), (1000, "same")):
        same = paired.paired([[(i, 0.0) for i in range(n)]], 1.0, binary=True, margin=0.05).equivalence
        assert same is not None and same.verdict == verdict
    assert paired.paired([[(i, 3.0) for i in range(9)]], margin=5.0).equivalence is None  # nothing says how sure it is


def test_at_the_margin_it_keeps_its_level() -> None:
    """Models of 0.9 and 0.95, at a margin of 0.05: one in twenty at most is called the same."""
    rng, called = numpy.random.default_rng(2), 0
    for _ in range(300):
        difference = (rng.random(200) < 0.95).astype(float) - (rng.random(200) < 0.9)
        found = paired.paired([[(i, float(x)) for i, x in enumerate(difference)]], 1.0, binary=True, margin=0.05)
        called += found.equivalence is not None and found.equivalence.verdict == "same"
    assert called <= 24  # 15 of 300, and two standard errors


def test_a_known_error_has_the_normal_law() -> None:
    assert tost(0.0, 1.0, float("inf"), 1.959964).pvalue == pytest.approx(0.025, abs=1e-6)
    assert tost(3.0, 0.1, float("inf"), 1.0).verdict == "other"


class Score(Metric):
    bounds = (0, 1)

    def measure(self, episode: object) -> float | None:
        return None


def table(margin: object, cases: int = 400) -> Table:
    rng = numpy.random.default_rng(0)
    scores = [
        EpisodeScore(f"{p}/q{i}/0", p, {"model": "m", "p": p, "kind": "easy"}, {"score": float(rng.random() < 0.9)})
        for p in "ab"
        for i in range(cases)
    ]
    sides = {"label": "p", "base": "a", "with": "b", "margin": margin}
    entry = {"title": "T", "rows": "kind", "metrics": "score", "compare": sides}
    return build(TableSpec.parse(entry), scores, {"score": Score()})


def test_a_table_of_a_spec_says_what_is_the_same() -> None:
    wide, narrow = table("10%"), table(0.001)
    assert [column.names[0] for column in wide.columns][-1] == "p (TOST)"
    assert wide.rows[0].cells[-1].value < 0.05 and "within ±10 %: easy." in " ".join(wide.notes)
    assert narrow.rows[0].cells[-1].value > 0.05 and "not decided: easy." in " ".join(narrow.notes)
    with pytest.raises(SpecError, match="'lots' is no amount"):
        table("lots")


def test_a_test_of_one_metric_among_several_is_named_once() -> None:
    scores = [
        EpisodeScore(f"{p}/q{i}/0", p, {"model": "m", "p": p}, {"score": float(i % 2), "calls": float(i % 3)})
        for p in "ab"
        for i in range(9)
    ]
    sides = {"label": "p", "base": "a", "with": "b", "margin": 0.1}
    entry = {"title": "T", "rows": "metric", "metrics": ["score", "calls"], "compare": sides}
    notes = " ".join(build(TableSpec.parse(entry), scores, {"score": Score(), "calls": Score()}).notes)
    assert "not decided: score. " in notes and "do not vary: calls." in notes


def test_a_margin_beside_compare_belongs_inside() -> None:
    entry = {"title": "T", "rows": "p", "metrics": "score", "compare": {"label": "p", "base": "a", "with": "b"}}
    with pytest.raises(SpecError, match=r"unknown key 'margin'. It belongs inside compare: `compare: {…, margin: …}`"):
        TableSpec.parse({**entry, "margin": "3%"})


def test_a_run_against_the_figures_of_a_paper(tmp_path: Path, capsys: Capsys) -> None:
    run = str(tmp_path / "run")
    more = ("--set", "matrix.problem=[coloring, consensus]", "--limit", "2", "--output_path", run)
    assert invoke(capsys, "eval", "--spec", "agentsnet_reference", *more)[0] == 0
    code, out, _ = invoke(
        capsys, "compare", run, "--published", "Gemini 2.5 Pro", "--margin", "10%", "--format", "json"
    )
    assert code == 0
    rows = {(row["key"]["cell"], row["key"]["metric"]): row["cells"] for row in json.loads(out)[0]["rows"]}
    ours, theirs, difference, *_, same = rows["consensus", "solved"]
    assert (ours["value"], theirs["value"]) == (1.0, 0.99) and difference["value"] == pytest.approx(0.01)
    assert difference["low"] < 0 < difference["high"] and 0 < same["value"] < 1
    words = " ".join(invoke(capsys, "compare", run, "--published", "Gemini 2.5 Pro", "--margin", "10%")[1].split())
    assert "Equivalence at a margin of 10 %" in words and "† published: AgentsNet, Table 2" in words
    assert "p (TOST)" not in invoke(capsys, "compare", run, "--published", "Gemini 2.5 Pro")[1]
    code, _, err = invoke(capsys, "compare", run, "--published", "Gemini 2.5 Pru")
    assert code == 2 and "Did you mean Gemini 2.5 Pro" in err
    assert "compares one run with a paper" in invoke(capsys, "compare", run, run, "--published", "x")[2]
    assert (
        invoke(capsys, "eval", "--spec", "arithmetic", "--limit", "2", "--output_path", str(tmp_path / "sums"))[0] == 0
    )
    assert "cites no published table" in invoke(capsys, "compare", str(tmp_path / "sums"), "--published", "x")[2]


def test_compare_has_a_margin(tmp_path: Path, capsys: Capsys) -> None:
    runs = [str(tmp_path / x) for x in "ab"]
    for run in runs:
        more = ("--set", "task.size=30", "--set", "baseline={use: simulated, accuracy: 0.9}", "--seed", "1")
        assert invoke(capsys, "eval", "--spec", "arithmetic", *more, "--output_path", run)[0] == 0
    out = json.loads(invoke(capsys, "compare", *runs, "--margin", "40%", "--format", "json")[1])
    [row] = [row for row in out[1]["rows"] if row["key"]["metric"] == "score"]
    assert row["cells"][-1]["value"] < 0.05
    words = " ".join(invoke(capsys, "compare", *runs, "--margin", "40%")[1].split())
    assert "p (TOST)" in words and "within ±40 %" in words
    assert "is no amount" in invoke(capsys, "compare", *runs, "--margin", "none")[2]
