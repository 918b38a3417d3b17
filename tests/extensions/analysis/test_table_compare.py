"""Tests of a difference: values against scipy and by hand, what has no p-value, what is refused, how it is shown."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Episode, Metric
from harness.api.errors import SpecError
from harness.extensions.analysis.published_beside import cited
from harness.extensions.charts.page_html import page
from harness.report import FORMATS, render
from harness.tables import NOT_RUN, EpisodeScore, Table, TableSpec, build, check
from harness.tables.published_figures import PublishedFigure, PublishedTable


class Mean(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


METRICS: dict[str, Metric] = {"solved": Mean(), "tokens": Mean()}
COMPARE = {"label": "condition", "base": "Base", "with": "CAMOC"}
ENTRY = {"title": "T", "rows": "backend", "metrics": "solved", "compare": COMPARE}
BASE, CAMOC = [0.1, 0.4, 0.2, 0.5], [0.9, 0.6, 0.8, 0.3, 0.7]


def episodes(condition: str, numbers: Iterable[float | None], backend: str = "p2p", **more: Any) -> list[EpisodeScore]:
    """One episode a number, the number of agents counting up from 1."""
    return [
        EpisodeScore(
            f"{backend}-{condition}/{i}/0",
            f"{backend}-{condition}",
            {"model": "m", "backend": backend, "condition": condition, "agents": i, **more},
            {"solved": x, "tokens": None if x is None else 100 * x},
        )
        for i, x in enumerate(numbers, 1)
    ]


def made(scores: Sequence[EpisodeScore], compare: dict[str, Any] | None = None, **entry: Any) -> Table:
    return build(TableSpec.parse({**ENTRY, "compare": {**COMPARE, **(compare or {})}, **entry}), scores, METRICS)


def values(table: Table) -> dict[tuple[str, ...], dict[str, float | None]]:
    """Row → statistic → number."""
    names = [column.key["statistic"] for column in table.columns]
    return {row.names: dict(zip(names, (cell.value for cell in row.cells), strict=True)) for row in table.rows}


def line(table: Table, row: int = 0) -> list[str]:
    output = render(table, "markdown").replace("\\", "").splitlines()[4 + row]
    return [cell.strip() for cell in output.strip("|").split("|")]


BOTH = [*episodes("Base", BASE), *episodes("CAMOC", CAMOC)]


# ------------------------------------------------------------------------------------------- values


def flipped(differences: Sequence[float]) -> Any:
    """scipy's sign-flip test, with all signs."""
    sides = (numpy.array(differences), numpy.zeros(len(differences)))
    return scipy.stats.permutation_test(sides, lambda x, y: (x - y).sum(), permutation_type="samples")


def test_the_test_is_scipys_over_what_both_sides_have() -> None:
    table = made(BOTH, {"paired_by": "agents"})
    theirs = flipped([a - b for a, b in zip(CAMOC, BASE, strict=False)])
    value = values(table)["p2p",]
    assert {name: x for name, x in value.items() if name != "detectable"} == {
        "base": pytest.approx(0.3),
        "with": pytest.approx(0.65),  # without the fifth, which is in no pair
        "difference": pytest.approx(0.35),  # (0.8 + 0.2 + 0.6 − 0.2) / 4
        "p": pytest.approx(theirs.pvalue),
        "p_holm": pytest.approx(theirs.pvalue),  # the only test
        "pairs": 4,
    }
    low, high = table.rows[0].cells[2].low, table.rows[0].cells[2].high
    assert low is not None and high is not None and low <= 0 < 0.35 < high, "the interval says the same as the test"
    assert table.notes == (
        "CAMOC against Base. A pair has the same agents, and the mean of its episodes where a side has several.",
        "In brackets: the 95 % interval of the difference; it holds 0 where p is 0.05 or more.",
        "p: exact two-sided sign-flip test of pairs; p (Holm): after Holm's correction for the one test.",
        "4 pairs cannot show a difference: 6 must differ before p can be below 0.05.",
        "detectable –: at as many pairs no difference that is possible is found so, or the numbers do not vary.",
        "1 of 5 combinations of agents have numbers on one side only and are in no pair.",
    )


def test_mcnemars_test_is_named_where_a_metric_has_zeros_and_ones_only() -> None:
    """Also not of the means of two repeats of zeros and ones."""
    ones, noughts = episodes("Base", [0.0, 0.0, 1.0, 1.0]), episodes("CAMOC", [1.0, 0.0, 1.0, 0.0])
    assert "McNemar" in " ".join(made([*ones, *noughts], {"paired_by": "agents"}).notes)
    again = [replace(one, id=f"{one.id}1", numbers={**one.numbers, "solved": 1.0}) for one in ones]
    assert "McNemar" not in " ".join(made([*ones, *again, *noughts], {"paired_by": "agents"}).notes)


def test_without_labels_the_case_makes_a_pair() -> None:
    assert values(made(BOTH)) == values(made(BOTH, {"paired_by": "agents"}))
    assert made(BOTH).notes[0].startswith("CAMOC against Base. A pair has the same case,")


def test_several_episodes_of_a_pair_are_averaged_first() -> None:
    twice = [*episodes("Base", [0.0, 0.2, 0.9]), *episodes("Base", [1.0, 0.4, None]), *episodes("CAMOC", [1, 1, 1, 1])]
    value = values(made(twice, {"paired_by": ["agents", "backend"]}))["p2p",]
    theirs = flipped([0.5, 0.7, 0.1])
    assert (value["pairs"], value["p"]) == (3, pytest.approx(theirs.pvalue))
    assert value["base"] == pytest.approx((0.5 + 0.3 + 0.9) / 3)


SHIFTS = {"a": (0.1, 0.2, 0.3), "b": (0.3, -0.1, 0.2), "c": (-0.1, 0.2, -0.2)}
THREE = [
    score
    for backend, shifts in SHIFTS.items()
    for condition, by in (("Base", (0.0, 0.0, 0.0)), ("CAMOC", shifts))
    for score in episodes(condition, [0.3 + x for x in by], backend)
]


def test_holm_by_hand_over_all_tests_of_the_table() -> None:
    result = values(made(THREE, {"paired_by": "agents"}))
    one, two, three = sorted((row["p"] for row in result.values()), key=lambda x: x or 0)
    assert one is not None and two is not None and three is not None
    steps = [3 * one, max(3 * one, 2 * two), max(3 * one, 2 * two, three)]
    assert sorted(row["p_holm"] or 0 for row in result.values()) == [pytest.approx(min(1, x)) for x in steps]
    assert any(note.endswith("p (Holm): after Holm's correction for all 3 tests.") for note in made(THREE).notes)


def test_what_is_no_test_does_not_count_in_the_correction() -> None:
    scores = [*BOTH, *episodes("Base", [1.0], "sfs"), *episodes("CAMOC", [0.0, 1.0], "sfs")]
    result = values(made(scores))
    assert result["p2p",]["p"] == result["p2p",]["p_holm"]
    assert (result["sfs",]["difference"], result["sfs",]["pairs"]) == (-1.0, 1)
    assert [result["sfs",][x] for x in ("p", "p_holm", "detectable")] == [None] * 3


def test_metrics_and_values_compared_make_rows() -> None:
    scores = [*BOTH, *episodes("Alone", [0.0, 0.1])]
    table = made(scores, {"with": ["CAMOC", "Alone"]}, metrics=["tokens", "solved"], labels={"Alone": "N = 1"})
    assert table.row_labels == ("backend", "metric", "condition")
    result = values(table)
    assert list(result) == [("p2p", x, y) for x in ("tokens", "solved") for y in ("CAMOC", "N = 1")]
    assert [result[key]["with"] for key in result] == [pytest.approx(x) for x in (65, 5, 0.65, 0.05)]
    assert [result[key]["base"] for key in result] == [pytest.approx(x) for x in (30, 25, 0.3, 0.25)]
    assert [column.names for column in table.columns][:3] == [("Base",), ("with",), ("difference",)]
    placed = made(scores, metrics=["tokens", "solved"], rows=["metric", "backend"])
    assert [row.names for row in placed.rows] == [("tokens", "p2p"), ("solved", "p2p")]


def test_several_models_are_never_in_one_test_unless_they_are_compared() -> None:
    scores = [*BOTH, *episodes("Base", [0.3, 0.5], model="n"), *episodes("CAMOC", [0.4, 0.4], model="n")]
    table = made(scores)
    assert table.row_labels == ("model", "backend")
    assert [values(table)[model, "p2p"]["with"] for model in "mn"] == [pytest.approx(0.65), 0.4]
    models = made(scores, {"label": "model", "base": "m", "with": "n", "paired_by": ["condition", "agents"]})
    assert models.row_labels == ("backend",)
    assert values(models)["p2p",]["pairs"] == 4


def test_where_chooses_episodes_and_values_that_are_not_compared_do_not_matter() -> None:
    scores = [*BOTH, *episodes("Base", [9.0], "sfs"), *episodes("Other", [9.0])]
    assert values(made(scores, where={"backend": "p2p"})) == values(made(BOTH))


samples = st.lists(st.floats(-1e6, 1e6), max_size=8)


@given(samples, samples, st.integers(1, 3))
def test_there_is_a_number_or_nothing_and_never_nan(base: list[float], other: list[float], keys: int) -> None:
    scores = [*episodes("Base", base), *episodes("CAMOC", other)]
    for score in scores:
        score.labels["agents"] %= keys  # type: ignore[index]
    table = made(scores, {"paired_by": "agents"})
    numbers = [cell.value for row in table.rows for cell in row.cells]
    assert all(x is None or math.isfinite(x) for x in numbers)
    for row in values(table).values():
        assert (row["p"] is None) == (row["p_holm"] is None)
        if row["p"] is not None:
            assert 0 <= row["p"] <= 1 and (row["pairs"] or 0) > 1
    json.loads(render(table, "json"))


# -------------------------------------------------------------------------------- what has no p


def test_a_constant_difference_has_the_p_of_its_signs_however_it_is_rounded() -> None:
    scores = [*episodes("Base", [0.1, 0.2]), *episodes("CAMOC", [0.3, 0.4])]  # 0.3 − 0.1 ≠ 0.4 − 0.2 in binary
    value = values(made(scores, {"paired_by": "agents"}))["p2p",]
    assert (value["difference"], value["p"]) == (pytest.approx(0.2), pytest.approx(0.5))


def test_sides_that_do_not_differ_have_no_p() -> None:
    same = made([*episodes("Base", [0.1, 0.3]), *episodes("CAMOC", [0.1, 0.3])], {"paired_by": "agents"})
    assert line(same)[-4:] == ["–", "–", "–", "2"]
    assert "No p: the sides differ in no pair." in same.notes
    assert not any("Holm" in note for note in same.notes)


def test_one_pair_has_a_difference_and_no_test() -> None:
    table = made([*episodes("Base", [0.5]), *episodes("CAMOC", [0.75])], {"paired_by": "agents"})
    assert line(table)[1:] == ["0.50", "0.75", "0.25", "–", "–", "–", "1"]
    assert "1 pair cannot show a difference: 6 must differ before p can be below 0.05." in table.notes


def test_without_a_common_key_there_are_no_pairs() -> None:
    scores = [*episodes("Base", BASE, items=1), *episodes("CAMOC", CAMOC, items=2)]
    table = made(scores, {"paired_by": ["agents", "items"]})
    assert line(table)[1:] == [*["–"] * 6, "0"]
    assert "9 of 9 combinations of agents, items have numbers on one side only and are in no pair." in table.notes


def test_a_value_without_episodes_is_reported_and_leaves_its_cells_empty() -> None:
    table = made(episodes("Base", BASE), {"with": "CAMOK", "paired_by": "agents"})
    assert line(table) == ["p2p", *["–"] * 6, "0"]
    assert "No episode has condition 'CAMOK'. Available: Base." in table.notes
    assert made([]).rows == () and made([]).notes == ("There are no episodes to show.",)


def test_failed_and_missing_episodes_are_counted_and_in_no_test() -> None:
    failed = EpisodeScore("x/0/0", "x", {**BOTH[0].labels}, {"solved": 1.0}, "boom")
    never = EpisodeScore("y/0/0", "y", {**BOTH[-1].labels}, {}, NOT_RUN)
    table = made([*BOTH, failed, never, *episodes("CAMOC", [None])], note="Mind this.")
    assert values(table) == values(made(BOTH))
    assert [(cell.failed, cell.missing) for cell in table.rows[0].cells[:3]] == [(1, 0), (0, 2), (1, 2)]
    assert table.notes[:4] == (
        "Mind this.",
        "1 of 12 episodes failed and count in no number: x (1).",
        "1 of 12 episodes were not run: y (1).",
        "solved: not reported in 1 of 10 episodes.",
    )


# ------------------------------------------------------------------------------------------- shown

FAR = [*episodes("Base", [0.01, 0.02, 0.03, 0.02] * 3), *episodes("CAMOC", [0.92, 0.92, 0.92, 0.92] * 3)]


def test_small_p_values_are_bounds_to_read_and_numbers_in_rows() -> None:
    table = made(FAR, unit="percent", digits=1)
    shown = line(table)
    assert shown[:3] == ["p2p", "2.0%", "92.0%"] and shown[4:6] == ["<0.001", "<0.001"]
    assert shown[3].startswith("90.0% [")
    tidy = {row["statistic"]: row for row in table.long()}
    assert tidy["p"]["value"] == pytest.approx(2 / 2**12)
    assert (tidy["p"]["metric"], tidy["p"]["backend"], tidy["base"]["n"]) == ("solved", "p2p", 12)
    mapping = {row["statistic"]: row["value"] for row in csv.DictReader(io.StringIO(render(table, "csv")))}
    assert float(mapping["p"]) == pytest.approx(2 / 2**12)
    data = json.loads(render(table, "json"))
    assert data["rows"][0]["cells"][3]["value"] == pytest.approx(2 / 2**12)
    forms = ["quantity"] * 3 + ["pvalue"] * 2 + ["quantity", "count"]
    assert [c["form"] for c in data["columns"]] == forms
    assert r"\textless{}0.001" in render(table, "latex") and "&lt;0.001" in page("t", [table])
    plain = flipped([a - b for a, b in zip(CAMOC, BASE, strict=False)]).pvalue
    assert line(made(BOTH, digits=1))[4] == f"{plain:.3f}"  # p-values have their own digits


HOSTILE = "a|b\x1b[31m\n</td><script>&$_{}=SUM(1)"


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_values_stay_data(form: str) -> None:
    scores = [*episodes(HOSTILE, BASE, HOSTILE), *episodes("=1+1", CAMOC, HOSTILE)]
    table = made(scores, {"base": HOSTILE, "with": "=1+1", "paired_by": ["backend", "agents"]})
    assert values(table)[HOSTILE,]["p"] == values(made(BOTH))["p2p",]["p"]
    text = render(table, form)
    assert "\x1b" not in text
    assert not any(cell.startswith("=") for row in csv.reader(io.StringIO(text)) for cell in row if form == "csv")
    if form == "markdown":
        assert "<script>" not in text.replace("\\<script\\>", "")
    assert "<script>" not in page("t", [table])


# ----------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"columns": "agents"}, "compare: columns cannot stand beside it: its columns are statistics"),
        ({"overall": "pooled"}, "compare: overall cannot stand beside it"),
        ({"figure": "bar"}, "compare: figure cannot stand beside it: tests are shown as a table"),
        ({"published": "x/t"}, "compare: published cannot stand beside it: published figures are not tested"),
        ({"uncertainty": "sem"}, "compare: uncertainty cannot stand beside it: the tests say how sure a difference is"),
        ({"aggregate": "mean_of_conditions"}, "compare: it is made of episodes, not of conditions: aggregate can"),
        (
            {"metrics": "each", "ratio": {"each": ["tokens", "solved"]}},
            "compare: 'each' is a ratio, which episodes have no numbers of: compare takes its metrics",
        ),
        ({"metrics": "lost", "relative_drop": {"lost": ["tokens", "solved"]}}, "compare: 'lost' is a relative_drop"),
        ({"metrics": "usd", "cost": {"usd": {"input": "tokens"}}}, "compare: 'usd' is a cost"),
        ({"rows": ["backend", "condition"]}, "compare: rows must not have 'condition'"),
        ({"rows": "statistic"}, "a table cannot group by 'statistic': the name is taken"),
        ({"metrics": "sovled"}, "metrics: unknown metric 'sovled'. Did you mean solved?"),
        ({"where": {"condition": "Base"}}, "compare: where leaves out condition 'CAMOC'"),
        ({"compare": ["Base", "CAMOC"]}, "'compare' must be a mapping, found a list"),
        ({"compare": {"label": "condition", "base": "Base"}}, "'compare': missing required key 'with'"),
        ({"compare": {**COMPARE, "paired_bye": "x"}}, "compare: unknown key 'paired_bye'. Did you mean paired_by?"),
        ({"compare": {**COMPARE, "with": []}}, "compare: 'with' must not be empty"),
        ({"compare": {**COMPARE, "label": "conditon"}}, "compare: unknown label 'conditon'. Did you mean condition?"),
        ({"compare": {**COMPARE, "paired_by": "agent"}}, "compare: unknown label 'agent'. Did you mean agents?"),
        ({"compare": {**COMPARE, "base": "base"}}, "compare: condition is never 'base'. Did you mean Base?"),
        ({"compare": {**COMPARE, "with": ["CAMOC", "CAMOK"]}}, "compare: condition is never 'CAMOK'. Did you mean CA"),
        ({"compare": {**COMPARE, "with": ["CAMOC", "Base"]}}, "compare: 'Base' is compared with itself"),
        ({"compare": {**COMPARE, "with": ["CAMOC", "CAMOC"]}}, "compare: with has 'CAMOC' twice"),
        ({"compare": {**COMPARE, "paired_by": "condition"}}, "compare: no pair can agree in 'condition'"),
        ({"compare": {**COMPARE, "paired_by": "metric"}}, "compare: use metrics: to choose metrics"),
        (
            {"compare": {**COMPARE, "label": "metric", "base": "a", "with": "b"}},
            "compare: use metrics: to choose metrics",
        ),
        ({"compare": {"label": "value", "base": "a", "with": "b"}}, "a table cannot group by 'value'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(entry: dict[str, Any], problem: str) -> None:
    labels = {"backend": [], "agents": [], "statistic": [], "condition": ["Base", "CAMOC"]}
    assert [text[: len(problem)] for text in check({**ENTRY, **entry}, labels, METRICS)] == [problem]


def test_a_right_entry_has_no_problems() -> None:
    entry = {**ENTRY, "aggregate": "pooled", "uncertainty": None, "compare": {**COMPARE, "paired_by": ["agents"]}}
    assert check(entry, {"backend": [], "agents": [], "condition": ["Base", "CAMOC"]}, METRICS) == []
    sizes = {"label": "size", "base": 4, "with": [8, "16"]}
    assert check({**ENTRY, "compare": sizes}, {"backend": [], "size": [4, 8, 16]}, METRICS) == []
    scores = [*episodes("Base", BASE, size=4), *episodes("Base", CAMOC, size=8)]
    table = made(scores, sizes)
    assert values(table)["p2p", "8"]["p"] == values(made(BOTH))["p2p",]["p"]
    assert [row["size"] for row in table.long()][::7] == [8, "16"]  # the labels' own values, where there are any


def test_building_refuses_labels_that_no_episode_has() -> None:
    with pytest.raises(SpecError, match=r"no episode has the label 'agent'\n.*Did you mean agents"):
        made(BOTH, {"paired_by": "agent"})
    with pytest.raises(SpecError, match=r"no episode has the label 'conditions'\n.*Did you mean condition"):
        made(BOTH, {"label": "conditions"})


def test_published_figures_stay_away() -> None:
    paper = PublishedTable("x/t", "Paper", "T", (PublishedFigure({"backend": "p2p"}, "solved", 0.5),))
    table = build(cited(TableSpec.parse(ENTRY), [paper]), BOTH, METRICS)
    assert table == made(BOTH)


def test_repeats_of_a_case_do_not_make_a_test_surer() -> None:
    once = [*episodes("Base", BASE), *episodes("CAMOC", CAMOC)]
    again = [replace(score, id=f"{score.id[:-1]}{repeat}") for score in once for repeat in range(3)]
    again = [replace(s, labels={**s.labels, "repeat": s.id[-1]}) for s in again]
    surer = made(again, {"paired_by": ["agents", "repeat"]})
    counted, apart = values(surer)["p2p",], {"detectable", "pairs"}
    found = values(made(once))["p2p",]
    assert {k: counted[k] for k in counted.keys() - apart} == {k: pytest.approx(found[k]) for k in found.keys() - apart}
    assert (counted["pairs"], found["pairs"]) == (12, 4)
    note = "Standard errors treat repeats of a case as one observation (clustered)."
    assert note in surer.notes and note not in made(once).notes
    alone = values(made(again, {"paired_by": ["agents", "repeat"]}, cluster="episode"))["p2p",]
    assert alone["p"] is not None and counted["p"] is not None and alone["p"] < counted["p"]
