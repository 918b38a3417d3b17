"""pass^k and pass@k over the repeats of a case, in each convention that is in use."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import CorpusMetric
from harness.config.project import find
from tests.helpers.commands import invoke

CONVENTIONS = ("unbiased", "first", "power_of_case", "power_of_mean")


def metric(name: str, **parameters: Any) -> CorpusMetric:
    made = find().load("metrics", name)(**parameters)
    assert isinstance(made, CorpusMetric)
    return made


def records(*cases: Sequence[bool]) -> list[list[Any]]:
    return [[f"c/q{i}", repeat, won] for i, case in enumerate(cases) for repeat, won in enumerate(case)]


def value(name: str, convention: str, k: int, *cases: Sequence[bool]) -> float | None:
    return metric(name, k=k, convention=convention).aggregate(records(*cases)).value


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_the_unbiased_one_is_the_share_of_all_choices_of_k_repeats(case: list[bool], k: int) -> None:
    chosen = [*itertools.combinations(case, k)]
    for name, counts in (("pass_hat_k", all), ("any_of_k", any)):
        expected = sum(map(counts, chosen)) / len(chosen) if chosen else None
        assert value(name, "unbiased", k, case) == (None if expected is None else pytest.approx(expected))


@given(st.floats(0, 1), st.integers(1, 3), st.integers(0, 2))
def test_what_each_convention_is_on_average(p: float, k: int, more: int) -> None:
    """Over all outcomes of n repeats that succeed with probability p."""
    n = k + more
    for name, truth in (("pass_hat_k", p**k), ("any_of_k", 1 - (1 - p) ** k)):
        sign = 1 if name == "pass_hat_k" else -1
        for convention in CONVENTIONS[:3]:
            outcomes = (
                (math.prod(p if won else 1 - p for won in case), value(name, convention, k, case) or 0.0)
                for case in itertools.product((False, True), repeat=n)
            )
            mean = sum(weight * number for weight, number in outcomes)
            if convention == "power_of_case":
                assert sign * (mean - truth) >= -1e-12
            else:
                assert mean == pytest.approx(truth)


def test_the_conventions_differ_and_say_which_they_are() -> None:
    cases = (True, True, True, False), (False, True, True, True), (False,) * 4
    numbers = {convention: value("pass_hat_k", convention, 2, *cases) for convention in CONVENTIONS}
    expected = {
        "unbiased": (1 / 2 + 1 / 2) / 3,
        "first": 1 / 3,
        "power_of_case": 2 * 0.75**2 / 3,
        "power_of_mean": 0.25,
    }
    assert numbers == pytest.approx(expected)
    for convention in CONVENTIONS:
        assert convention in metric("pass_hat_k", convention=convention).note
    found = metric("pass_hat_k", k=2).aggregate(records(*cases))
    assert found.n == 3 and found.stderr == pytest.approx(1 / 6)  # of ½, ½ and 0


def test_cases_with_fewer_repeats_are_left_out() -> None:
    assert value("pass_hat_k", "unbiased", 3, (True, True), (True, True, True)) == 1
    assert metric("pass_hat_k", k=3).aggregate(records((True, True))).n == 0


SPEC = """
name: sums
task: {use: arithmetic, size: 20, terms: 4}
protocol: {use: vote, agents: 3}
prompts: panels/standard
repeats: 4
baseline: {use: simulated, accuracy: 0.8}
metrics:
  - score
  - {use: pass_hat_k, of: score, k: 3, name: pass^3}
  - {use: any_of_k, of: score, k: 3, name: pass@3}
headline: {metric: pass^3, unit: percent}
tables:
  - {title: Reliability, rows: model, metrics: [score, pass^3, pass@3], aggregate: pooled, uncertainty: interval}
"""


def test_they_are_columns_with_intervals_and_a_headline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sums.yaml").write_text(SPEC)
    run = str(tmp_path / "run")
    assert invoke(capsys, "eval", "--spec", str(tmp_path / "sums.yaml"), "--output_path", run)[0] == 0
    [row] = json.loads(invoke(capsys, "report", run, "--format", "json")[1])[0]["rows"]
    score, together, some = row["cells"]
    assert together["value"] < score["value"] < some["value"] and together["n"] == 20 and together["missing"] == 0
    assert 0 <= together["low"] < together["value"] < together["high"] <= 1
    out = invoke(capsys, "report", run)[1]
    assert "all of 3 repeats succeed: the mean over cases" in " ".join(out.split())
    assert "pass^3" in invoke(capsys, "leaderboard", run)[1]


def test_too_few_repeats_for_a_column_are_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sums.yaml").write_text(SPEC.replace("repeats: 4", "repeats: 2"))
    code, out, _ = invoke(capsys, "validate", str(tmp_path / "sums.yaml"))
    assert code == 0 and out.count("warning: ") == 2
    assert "warning: pass^3 has no number with 2 repeats of a case; give repeats: 3 or more" in out
    (tmp_path / "sums.yaml").write_text(SPEC)
    assert "warning" not in invoke(capsys, "validate", str(tmp_path / "sums.yaml"))[1]
