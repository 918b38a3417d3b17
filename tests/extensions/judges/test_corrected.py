"""Means corrected for a judge's errors: right however wrong the judge is, and surer than people's labels alone."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.extensions.judges.agreement import bootstrapped, weighted_kappa
from harness.extensions.judges.corrected import Corrected, corrected
from tests.helpers.commands import invoke


def drawn(rng: numpy.random.Generator, labelled: int, others: int, noise: float = 0.3, bias: float = 0.2) -> Corrected:
    """People's labels have the mean 0; a judge gives them with a bias and noise."""
    people = rng.normal(0, 1, labelled + others)
    judge = people + bias + rng.normal(0, noise, labelled + others)
    names = [f"e{i}" for i in range(labelled + others)]
    rated = dict(zip(names, judge.tolist(), strict=True))
    labels = dict(zip(names[:labelled], people[:labelled].tolist(), strict=True))
    found = corrected(rated, labels, {name: name for name in names})
    assert found is not None
    return found


def test_the_interval_covers_and_is_narrower_than_that_of_labels_alone() -> None:
    rng = numpy.random.default_rng(0)
    found = [drawn(rng, 30, 270) for _ in range(150)]
    assert sum(one.interval[0] <= 0 <= one.interval[1] for one in found) >= 136  # 95 % less two standard errors
    assert abs(statistics.fmean(one.mean for one in found)) < 0.03
    assert statistics.fmean(one.interval[1] - one.interval[0] for one in found) < 0.6 * 2 * 2.045 / 30**0.5


def test_a_judge_that_guesses_counts_for_nothing() -> None:
    rng = numpy.random.default_rng(1)
    names = [f"e{i}" for i in range(400)]
    rated = dict(zip(names, rng.normal(5, 1, 400).tolist(), strict=True))
    labels = dict(zip(names[:100], rng.normal(0, 1, 100).tolist(), strict=True))
    found = corrected(rated, labels, {name: name for name in names})
    assert found is not None and found.weight < 0.2 and abs(found.mean) < 0.35


@given(st.lists(st.floats(0, 1), min_size=6, max_size=12), st.integers(2, 4))
def test_repeats_of_a_case_add_no_certainty(people: list[float], repeats: int) -> None:
    def mean(times: int) -> Corrected | None:
        names = [(i, k) for i in range(3 * len(people)) for k in range(times)]
        rated = {f"{i}/{k}": (0.3 + 0.5 * i) % 1.0 for i, k in names}
        labels = {f"{i}/{k}": people[i] for i, k in names if i < len(people)}
        return corrected(rated, labels, {f"{i}/{k}": i for i, k in names})

    once, again = mean(1), mean(repeats)
    assert (once is None) == (again is None)
    if once is not None and again is not None:
        assert again.interval == pytest.approx(once.interval, abs=1e-6)


def test_few_labels_correct_nothing() -> None:
    rated = {str(i): float(i) for i in range(20)}
    clusters = {name: name for name in rated}
    assert corrected(rated, {str(i): 1.0 for i in range(4)}, clusters) is None
    assert corrected(rated, dict.fromkeys(rated, 1.0), clusters) is None  # there is nothing left to predict


def test_a_bootstrap_resamples_cases_and_not_their_repeats() -> None:
    pairs = [(float(i % 5), float((i * 2) % 5)) for i in range(12)]
    thrice = [pair for pair in pairs for _ in range(3)]
    clustered = bootstrapped(thrice, weighted_kappa, [i // 3 for i in range(36)])
    assert clustered == bootstrapped(pairs, weighted_kappa)
    wide, narrow = clustered, bootstrapped(thrice, weighted_kappa)
    assert wide is not None and narrow is not None and wide[1] - wide[0] > 1.3 * (narrow[1] - narrow[0])


def test_agreement_shows_the_corrected_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = harness.evaluate("judged", overrides=["repeats=2"], output_path=tmp_path / "run")
    cases = list(dict.fromkeys(score.case for score in run.scores))[:8]
    lines = [f"{case},{repeat},{3 + i % 3}" for i, case in enumerate(cases) for repeat in range(2)]
    (tmp_path / "labels.csv").write_text("case,repeat,label\n" + "\n".join(lines) + "\n")
    code, out, _ = invoke(capsys, "agreement", str(run.folder), "--labels", str(tmp_path / "labels.csv"))
    words = " ".join(out.split())
    assert code == 0 and "corrected by people's labels" in words and "prediction-powered inference" in words
    assert "Intervals take repeats of a case as one observation." in words
