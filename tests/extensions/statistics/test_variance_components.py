"""Variance components: unbiased in every design, those of an analysis of variance in balanced ones; tables of them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.api import Metric
from harness.api.errors import SpecError
from harness.extensions.statistics.components import Components, components
from harness.extensions.statistics.design import CASE, design
from harness.report import render
from harness.tables import EpisodeScore, Table, TableSpec, build, check
from tests.helpers.commands import invoke
from tests.helpers.samples import examples


class Number(Metric):
    def measure(self, episode: object) -> float | None:
        return None


Levels = Mapping[str, Sequence[Hashable]]


def estimated(values: Sequence[float], cells: Sequence[Hashable], factors: Levels) -> Components:
    found = components(values, cells, factors, factors["case"], intervals=False)
    assert found is not None
    return found


@given(st.integers(2, 6), st.integers(2, 4), st.integers(0, 99))
def test_balanced_designs_have_the_components_of_an_analysis_of_variance(cases: int, repeats: int, seed: int) -> None:
    numbers = numpy.random.default_rng(seed).normal(size=(cases, repeats))
    within = float(numbers.var(axis=1, ddof=1).mean())
    between = repeats * float(numbers.mean(axis=1).var(ddof=1))
    found = estimated(
        numbers.ravel().tolist(), [0] * numbers.size, {"case": [i for i in range(cases) for _ in range(repeats)]}
    )
    assert found.rest.variance == pytest.approx(within)
    assert found.parts["case"].variance == pytest.approx((between - within) / repeats, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 2)), min_size=8, max_size=16))
@settings(max_examples=examples(40))
def test_estimates_are_unbiased_in_every_unbalanced_crossed_design(design: list[tuple[int, int, int]]) -> None:
    """An estimate is a quadratic form: it is unbiased if over the indicators of a factor's levels it adds up to 1 for
    that factor, and to 0 for all others."""
    cells, case, seat = (list(column) for column in zip(*design, strict=True))
    factors: dict[str, Sequence[Hashable]] = {"case": case, "seat": seat}
    one = components([0.0] * len(design), cells, factors, case, intervals=False)
    assume(one is not None and not one.alike)
    sources = {**factors, "rest": range(len(design))}
    for source, levels in sources.items():
        sums = dict.fromkeys(sources, 0.0)
        for level in {*levels}:
            found = estimated([float(x == level) for x in levels], cells, factors)
            for name in factors:
                sums[name] += found.parts[name].variance
            sums["rest"] += found.rest.variance
        assert sums == pytest.approx({name: float(name == source) for name in sources}, abs=1e-6)


def test_a_factor_that_goes_along_with_the_rest_or_another_has_no_component() -> None:
    found = estimated([1.0, 2.0, 4.0, 3.0], [0] * 4, {"case": "abcd", "seat": "xxyy"})
    assert found.alike == ("case",) and list(found.parts) == ["seat"]
    found = estimated([1.0, 2.0, 4.0, 3.0], [0] * 4, {"case": "aabb", "seat": "xxyy"})
    assert found.alike == ("seat",) and components([1.0, 2.0], [0, 1], {"case": "ab"}, "ab") is None


def drawn(
    seed: int, cases: int = 30, models: int = 2, repeats: int = 3, sd: Sequence[float] = (1.0, 0.5, 0.7)
) -> list[EpisodeScore]:
    rng = numpy.random.default_rng(seed)
    ease, own = rng.normal(0, sd[0], cases), rng.normal(0, sd[1], (cases, models))
    return [
        EpisodeScore(
            f"c/q{i}/{k}", "c", {"model": f"m{m}"}, {"score": 9.0 * m + ease[i] + own[i, m] + rng.normal(0, sd[2])}
        )
        for i, m, k in itertools.product(range(cases), range(models), range(repeats))
    ]


def test_cases_of_several_models_and_their_repeats_have_the_known_deviations() -> None:
    found = design(drawn(3, cases=200), "score").found
    for part, variance in ((found.parts[CASE], 1.0), (found.parts["case × model"], 0.25), (found.rest, 0.49)):
        assert part.variance == pytest.approx(variance, rel=0.2)
        assert part.interval[0] <= variance <= part.interval[1]
    assert found.share(CASE) == pytest.approx(1 / 1.74, rel=0.2)


def table(scores: Sequence[EpisodeScore], **entry: object) -> Table:
    parsed = TableSpec.parse({"title": "T", "kind": "variance_components", "metrics": "score", **entry})
    return build(parsed, scores, {"score": Number()})


def test_it_says_whether_more_cases_or_more_repeats_help() -> None:
    notes = " ".join(table(drawn(1, sd=(1.0, 0.5, 0.1))).notes)
    assert "More cases or more repeats? The standard error of a model's mean" in notes
    assert (
        "more cases; more repeats hardly help" in notes and "difference between two models on the same cases" in notes
    )
    noise = " ".join(table(drawn(1, models=1, sd=(0.0, 0.0, 1.0))).notes)
    assert "repeats are as good as cases" in noise or "where there are no more cases" in noise
    assert "cannot be told apart" in " ".join(table(drawn(1, models=1, repeats=1)).notes)


def of_six_conditions(models: int) -> list[EpisodeScore]:
    """40 cases in all of six conditions: standard deviations of 1 among cases, in a condition 0.5, of repeats 0.8."""
    rng = numpy.random.default_rng(2)
    ease, here = rng.normal(0, 1, 40), rng.normal(0, 0.5, (40, 6))
    return [
        EpisodeScore(f"p={p}/q{i}/{k}", f"p={p}", {"model": f"m{m}", "p": p}, {"score": float(number)})
        for p, i, k, m in itertools.product(range(6), range(40), range(2), range(models))
        for number in [ease[i] + here[i, p] + rng.normal(0, 0.8)]
    ]


def test_the_standard_error_of_a_mean_over_conditions_is_that_of_the_table_of_means() -> None:
    scores = of_six_conditions(1)
    plain = {"title": "T", "rows": "model", "metrics": "score", "uncertainty": "sem", "cluster": "case"}
    [[cell]] = [row.cells for row in build(TableSpec.parse(plain), scores, {"score": Number()}).rows]
    notes = " ".join(table(scores, cluster="case").notes)
    found = re.search(r"a model's mean is ([\d.]+) with 40 cases in 6 conditions, 2 repeats each", notes)
    assert found is not None and float(found[1]) == pytest.approx(cell.stderr, rel=0.05)
    assert "more cases; more repeats hardly help" in notes


def test_what_a_condition_does_to_a_case_cancels_between_models() -> None:
    notes = " ".join(table(of_six_conditions(2), cluster="case").notes)
    [error] = re.findall(r"between two models on the same cases is ([\d.]+)", notes)
    assert float(error) == pytest.approx((2 * 0.8**2 / 12 / 40) ** 0.5, rel=0.15)


def test_a_case_in_all_conditions_is_one_case_if_the_cluster_says_so() -> None:
    scores = [
        EpisodeScore(
            f"p={p}/q{i}/{k}", f"p={p}", {"model": "m", "p": p, "first": "AB"[k % 2]}, {"score": float((i + p * k) % 3)}
        )
        for p, i, k in itertools.product(range(2), range(6), range(4))
    ]
    assert set(design(scores, "score").found.parts) == {"case"} and design(scores, "score").units == 12
    together = design(scores, "score", ("case",))
    assert set(together.found.parts) == {"case", "case × condition"} and together.units == 6
    seats = table(scores, factors="first")
    assert [row.key["component"] for row in seats.rows] == ["case", "first", "case × first", "repeat"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"factors": "case"}, "the case is always one"),
        ({"factors": ["seat"], "rows": "seat"}, "'seat' is in rows"),
        ({"columns": "seat"}, "its columns are statistics"),
        ({"cluster": "episode"}, "nothing is repeated"),
        ({"factors": "sea"}, "unknown label 'sea'"),
    ],
)
def test_mistakes_in_an_entry(entry: dict[str, object], message: str) -> None:
    whole = {"title": "T", "kind": "variance_components", "metrics": "score", **entry}
    try:
        problems = check(TableSpec.parse(whole), {"seat": ["a", "b"]}, {"score": Number()})
    except SpecError as error:
        problems = [str(error)]
    assert message in " ".join(problems)


SPEC = """
name: sums
task: {use: arithmetic, size: 12, terms: 4}
protocol: {use: vote, agents: 3}
prompts: panels/standard
repeats: 2
baseline: {use: simulated, accuracy: 0.6}
metrics: [score]
"""


def test_report_has_the_table_of_any_run_by_the_name_of_its_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sums.yaml").write_text(SPEC)
    for run, accuracy in (("a", 0.6), ("b", 0.9)):
        more = ("--set", f"baseline.accuracy={accuracy}", "--output_path", str(tmp_path / run))
        assert invoke(capsys, "eval", "--spec", str(tmp_path / "sums.yaml"), *more)[0] == 0
    code, out, _ = invoke(capsys, "report", str(tmp_path / "a"), "--table", "variance_components")
    assert code == 0 and "What makes score vary" in out and "More cases or more repeats?" in out
    code, out, _ = invoke(
        capsys, "report", *(str(tmp_path / x) for x in "ab"), "--table", "variance_components", "--format", "json"
    )
    [both] = json.loads(out)
    assert [row["key"]["component"] for row in both["rows"]] == ["case", "case × model", "repeat"]
    assert "case" in render(table(drawn(1, cases=5)), "latex")


def test_a_factor_that_crosses_cases_has_no_interval() -> None:
    """Leaving cases out says nothing of an effect that all cases share."""
    rng = numpy.random.default_rng(0)
    case = [i for i in range(12) for _ in range(8)]
    seat = [k % 4 for _ in range(12) for k in range(8)]
    found = components(rng.normal(size=96).tolist(), [0] * 96, {"case": case, "seat": seat}, case)
    assert found is not None and found.parts["seat"].interval is None
    assert found.parts["case"].interval is not None and found.rest.interval is not None
