"""What stands beside a table's numbers: standard errors, standard deviations, intervals, a kind for each metric."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from harness.api import UNBOUNDED, Bounds, Episode, Metric, Statistic
from harness.config.project import find
from harness.extensions.analysis.published_beside import cited
from harness.report import render
from harness.tables import EpisodeScore, Table, TableSpec, build, check
from harness.tables.published_figures import PublishedFigure, PublishedTable
from harness.tables.spec import RESERVED


class Mean(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


class Share(Mean):
    bounds = (0, 1)


@dataclass
class Bounded(Mean):
    bounds: Bounds = UNBOUNDED  # type: ignore[misc]


class Total(Mean):
    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return Statistic(sum(numbers), None, len(numbers))


METRICS: dict[str, Metric] = {"deadlock": Mean(), "meals": Mean(), "fair": Bounded(), "calls": Total()}
MIXED = {"deadlock": "interval", "meals": "std", "fair": "interval"}
# Mean 2.5; σ = √1.25 = 1.118; standard error √(5/3)/2 = 0.6455, times t(0.975, 3) = 3.1824: ± 2.0543.
FOUR = [1.0, 2.0, 3.0, 4.0]
RATE = [1.0, 0.0, 0.0, 0.0]


def episodes(code: str, *numbers: dict[str, float]) -> list[EpisodeScore]:
    return [EpisodeScore(f"{code}/{i}/0", code, {"model": "m", "code": code}, x) for i, x in enumerate(numbers)]


SIM = episodes("sim", *({"deadlock": d, "meals": x, "fair": x, "calls": x} for d, x in zip(RATE, FOUR, strict=True)))
SEQ = episodes("seq", {"deadlock": 1.0, "meals": 5.0, "fair": 5.0, "calls": 5.0})


def made(scores: Sequence[EpisodeScore], papers: Sequence[PublishedTable] = (), **entry: Any) -> Table:
    basic = {"title": "T", "rows": "code", "metrics": list(METRICS), "aggregate": "pooled"}
    return build(cited(TableSpec.parse({**basic, **entry}), papers), scores, METRICS)


def line(table: Table, row: int = 0) -> list[str]:
    """The cells of a row as Markdown shows them."""
    output = render(table, "markdown").replace("\\", "").splitlines()[4 + row]
    return [cell.strip() for cell in output.strip("|").split("|")][1:]


def test_std_is_the_population_standard_deviation_of_the_pooled_numbers() -> None:
    table = made([*SIM, *SEQ], rows="model", metrics="meals", uncertainty="std")
    cell = table.rows[0].cells[0]
    assert (cell.value, cell.std) == (3.0, pytest.approx(2**0.5))  # (4 + 1 + 0 + 1 + 4) / 5
    assert (cell.low, cell.high) == (None, None)
    assert line(table) == ["3.00 (1.41)"]
    assert line(made(SIM, metrics="meals", uncertainty="std", error_style="plus_minus")) == ["2.50 ± 1.12"]
    assert table.notes == ("In parentheses: population standard deviation.",)


def test_t_is_students_interval_of_the_mean() -> None:
    table = made(SIM, metrics="meals", uncertainty="t")
    cell = table.rows[0].cells[0]
    assert (cell.low, cell.high) == (pytest.approx(0.44574, abs=1e-5), pytest.approx(4.55426, abs=1e-5))
    assert cell.std is None
    assert line(table) == ["2.50 [0.45, 4.55]"]
    assert table.notes == ("In brackets: 95 % t interval of the mean.",)


def test_an_overall_column_pools_the_rows_numbers() -> None:
    table = made([*SIM, *SEQ], rows="model", columns="code", metrics="meals", uncertainty="std", overall="pooled")
    assert line(table) == ["2.50 (1.12)", "5.00 (0.00)", "3.00 (1.41)"]


def test_each_metric_shows_its_own_kind_and_the_others_none() -> None:
    table = made(SIM, uncertainty=MIXED, labels={"deadlock": "DL", "meals": "TP"})
    assert line(table) == ["0.25 [0.05, 0.70]", "2.50 (1.12)", "2.50 [0.45, 4.55]", "10.00"]
    assert table.notes == (
        "In brackets: 95 % Wilson interval (DL), 95 % t interval of the mean (fair); "
        "in parentheses: population standard deviation (TP).",
    )
    down = made(SIM, uncertainty=MIXED, rows=["code", "metric"], columns="model")
    assert [line(down, i)[1] for i in range(4)] == line(table)


def test_standard_errors_stand_beside_other_kinds() -> None:
    table = made(SIM, metrics=["meals", "fair"], uncertainty={"meals": "sem", "fair": "std"}, error_style="plus_minus")
    assert line(table) == ["2.50 ± 0.65", "2.50 ± 1.12"]
    assert table.notes == ("After ±: standard error (meals), population standard deviation (fair).",)


@pytest.mark.parametrize("error", [None, "sem", "wilson"])
def test_what_parentheses_and_brackets_always_meant_needs_no_note(error: str | None) -> None:
    assert made(SIM, metrics="deadlock", uncertainty=error).notes == ()


def test_tidy_rows_carry_what_was_asked_for() -> None:
    def keys(error: Any) -> set[str]:
        return {"low", "high", "std"} & made(SIM, uncertainty=error).long()[0].keys()

    assert [keys(error) for error in (None, "sem", {"meals": "sem"})] == [set()] * 3
    assert [keys(error) for error in ("std", "t", "wilson")] == [{"std"}, {"low", "high"}, {"low", "high"}]
    tidy = {row["metric"]: row for row in made(SIM, uncertainty=MIXED).long()}
    assert {metric: [x for x in ("low", "high", "std") if row[x] is not None] for metric, row in tidy.items()} == {
        "deadlock": ["low", "high"],
        "meals": ["std"],
        "fair": ["low", "high"],
        "calls": [],
    }
    items = list(csv.DictReader(io.StringIO(render(made(SIM, uncertainty=MIXED), "csv"))))
    assert float(items[1]["std"]) == pytest.approx(1.25**0.5)
    assert (items[0]["std"], items[1]["low"]) == ("", "")


def test_json_says_kinds_and_has_std_only_where_asked() -> None:
    data = json.loads(render(made(SIM, uncertainty=MIXED), "json"))
    assert data["error"] == MIXED
    assert data["rows"][0]["cells"][1]["std"] == pytest.approx(1.25**0.5)
    plain = json.loads(render(made(SIM, uncertainty="sem"), "json"))
    assert plain["error"] == "sem"
    assert list(plain["rows"][0]["cells"][0]) == ["value", "stderr", "n", "failed", "missing", "low", "high"]


def test_no_label_can_take_the_name_of_a_tidy_rows_field() -> None:
    lines = [replace(score, uses_ground_truth=True) for score in SIM]
    own = {key for error in ("std", "t") for row in made(lines, uncertainty=error).long() for key in row}
    more = {"best", "beyond", "group", "unread"}  # standings, abilities, groups of rows, models that were not read
    assert (own | more) - {"code", "metric"} == RESERVED


# ------------------------------------------------------------------------------ what has no error


@pytest.mark.parametrize(
    ("error", "shown", "why"),
    [
        ("std", "10.00 (–)", "it has no population standard deviation"),
        ("interval", "10.00", "it has no interval"),
    ],
)
def test_a_total_has_none_of_these_errors(error: str, shown: str, why: str) -> None:
    scores = episodes("sim", *({"calls": x} for x in FOUR))
    table = made(scores, metrics="calls", uncertainty=error)
    assert line(table) == [shown]
    assert f"calls is not the mean of its episodes' numbers: {why}." in table.notes


def test_a_single_number_has_no_interval_and_no_deviation() -> None:
    table = made([*SIM, *SEQ], metrics=["meals", "fair"], uncertainty={"meals": "std", "fair": "t"})
    assert line(table, 1) == ["5.00 (0.00)", "5.00"]
    assert table.notes[1:] == (
        "1 of 2 cells have a single number for meals: its standard deviation is 0.",
        "1 of 2 cells have a single number for fair: it has no interval.",
    )


def test_the_numbers_decide_which_interval_they_have() -> None:
    table = made(SIM, metrics=["meals", "deadlock"], uncertainty="interval")
    assert line(table) == ["2.50 [0.45, 4.55]", "0.25 [0.05, 0.70]"]
    assert table.notes == ("In brackets: 95 % t interval of the mean (meals), 95 % Wilson interval (deadlock).",)
    bounded = [replace(score, numbers={"share": x}) for score, x in zip(SIM, (0.7, 1.0, 1.0, 1.0), strict=True)]
    entry = TableSpec.parse(
        {"title": "T", "rows": "code", "metrics": "share", "aggregate": "pooled", "uncertainty": "interval"}
    )
    shares = build(entry, bounded, {"share": Share()})
    assert line(shares) == ["0.93 [0.47, 0.99]"]
    assert shares.notes == ("In brackets: 95 % interval of the mean by Wilson's formula.",)
    equal = build(entry, [replace(score, numbers={"share": 0.5}) for score in SIM], {"share": Share()})
    assert line(equal) == ["0.50"]
    assert equal.notes == ("1 of 1 means are of equal numbers: they have no interval.",)


@pytest.mark.parametrize("aggregate", ["pooled", "mean_of_conditions"])
@pytest.mark.parametrize("figure", [None, "bar"])
@given(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]), st.integers(2, 5), st.sampled_from(["sem", "interval"]))
def test_equal_numbers_are_no_certainty(
    figure: str | None, aggregate: str, value: float, count: int, error: str
) -> None:
    scores = [score for code in ("sim", "seq") for score in episodes(code, *[{"fair": value}] * count)]
    drawn: dict[str, Any] = {"figure": figure} if figure else {}
    table = made(scores, rows="model", metrics="fair", uncertainty=error, aggregate=aggregate, **drawn)
    cell, shown = table.rows[0].cells[0], render(table)
    assert cell.stderr == 0 and cell.equal, "the data keep what was computed"
    what = {"sem": "standard error", "interval": "interval"}[error]
    assert "1 of 1 means are of equal numbers: they have no " + what in shown and cell.low is None
    assert ("if these are shares, `bounds: [0, 1]`" in shown) == (error == "interval" and value in (0, 1))
    if figure is None:
        assert line(table)[0].endswith(" (–)") == (error == "sem")
        assert "(0.00)" not in shown and "[" not in line(table)[0]
    if figure:
        assert shown.splitlines()[4].split().count("–") == (1 if error == "sem" else 3)


def test_one_number_more_that_differs_is_an_error_again() -> None:
    table = made(episodes("sim", *[{"fair": 1.0}] * 3, {"fair": 2.0}), metrics="fair", uncertainty="sem")
    assert line(table) == ["1.25 (0.25)"] and not table.notes


def test_a_paper_stands_as_it_was_printed() -> None:
    paper = PublishedTable("p", "Paper", "T", (PublishedFigure({"model": "them"}, "fair", 1.0, 0.0, n=9),))
    table = made(
        episodes("sim", *[{"fair": 1.0}] * 3),
        (paper,),
        rows="model",
        metrics="fair",
        uncertainty="sem",
        published=["p"],
    )
    assert [line(table, i) for i in range(2)] == [["1.00 (–)"], ["1.00 (0.00)"]]


@pytest.mark.parametrize("word", ["wilson", "t"])
def test_older_words_for_an_interval_mean_the_same(word: str) -> None:
    assert made(SIM, uncertainty=word) == made(SIM, uncertainty="interval")


# ------------------------------------------------------------------------------------------ clusters

SHARED = [
    EpisodeScore(f"{code}/case{case}/{repeat}", code, {"model": "m", "code": code, "graph": case % 2}, {"meals": x})
    for code in ("sim", "seq")
    for (case, repeat), x in zip([(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)], [0, 0, 1, 1, 1, 1], strict=True)
]


def shared(**entry: Any) -> Table:
    return made(SHARED, rows="model", metrics="meals", uncertainty="sem", **entry)


def test_repeats_of_a_case_are_one_observation() -> None:
    each = 3**-0.5 / 3**0.5  # of three cases: 0, 1, 1
    table = shared(columns="code")
    assert [cell.stderr for cell in table.rows[0].cells] == [pytest.approx(each), pytest.approx(each)]
    assert table.notes == ("Standard errors treat repeats of a case as one observation (clustered).",)
    both = shared()
    assert both.rows[0].cells[0].stderr == pytest.approx((4 / 3 / 5 / 6) ** 0.5)  # 0, 1, 1, 0, 1, 1
    by_condition = shared(aggregate="mean_of_conditions")
    assert by_condition.rows[0].cells[0].stderr == pytest.approx(each / 2**0.5)


def test_a_table_says_what_else_is_one_observation() -> None:
    case, every = shared(cluster="case"), shared(cluster="episode")
    assert case.rows[0].cells[0].stderr == pytest.approx(3**-0.5 / 3**0.5)  # the conditions share their cases
    assert case.notes == ("Standard errors treat episodes with equal case as one observation (clustered).",)
    assert every.rows[0].cells[0].stderr == pytest.approx((8 / 3 / 11 / 12) ** 0.5)
    assert every.notes == ("Standard errors treat episodes as independent.",)
    graph = shared(cluster=["graph", "code"])
    assert graph.notes == ("Standard errors treat episodes with equal graph, code as one observation (clustered).",)
    assert shared(aggregate="mean_of_conditions", cluster="case").rows[0].cells[0].stderr == pytest.approx(1 / 3)


def test_a_single_cluster_has_no_error() -> None:
    table = made(SHARED[:2], rows="model", metrics="meals", uncertainty="interval")
    assert (table.rows[0].cells[0].stderr, table.rows[0].cells[0].low) == (None, None)
    assert table.notes[-1] == "1 of 1 cells have a single observation of meals: it has no interval."


def test_mistakes_in_clusters_are_reported() -> None:
    entry = {"title": "T", "rows": "code", "metrics": "meals"}
    assert check({**entry, "cluster": "grap"}, ["code", "graph"], METRICS) == [
        "cluster: unknown label 'grap'. Did you mean graph? Available: code, graph, metric, model."
    ]
    assert check({**entry, "cluster": ["graph", "episode"]}, ["code", "graph"], METRICS) == [
        "cluster: 'episode' stands alone"
    ]
    assert check({**entry, "cluster": "episode"}, ["code"], METRICS) == []
    assert check({**entry, "cluster": ["code", "case"]}, ["code"], METRICS) == []


def test_cells_without_numbers_stay_empty_whatever_the_error() -> None:
    silent = [EpisodeScore("sim/0/0", "sim", {"model": "m", "code": "sim"})]
    assert line(made(silent, uncertainty=MIXED)) == ["–"] * 4


numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)


@given(numbers, st.sampled_from(["std", "t"]))
def test_errors_enclose_the_mean_and_are_never_negative(values: list[float], kind: str) -> None:
    cell = made(episodes("sim", *({"meals": x} for x in values)), metrics="meals", uncertainty=kind).rows[0].cells[0]
    assert cell.value is not None
    if kind == "std":
        assert cell.std is not None
        assert 0 <= cell.std <= (max(values) - min(values)) / 2 * (1 + 1e-9)
    elif cell.low is not None or cell.high is not None:
        assert cell.low is not None and cell.high is not None
        assert cell.low <= cell.value <= cell.high
    else:
        assert len({*values}) == 1 or (cell.stderr is not None and cell.stderr <= 1e-14 * max(map(abs, values)))


# ----------------------------------------------------------------------------------------- published

PAPER = PublishedTable(
    "paper/t4",
    "Paper, Table 4",
    "Extended",
    (
        PublishedFigure({"model": "X", "code": "sim"}, "deadlock", 0.65),
        PublishedFigure({"model": "X", "code": "sim"}, "meals", 0.45, std=0.15),
        PublishedFigure({"model": "X", "code": "sim"}, "fair", 0.53, stderr=0.05, std=0.22),
    ),
)


def test_published_deviations_are_shown_where_the_table_shows_deviations() -> None:
    cell = ["deadlock", "meals", "fair"]
    table = made(SIM, [PAPER], rows=["model", "code"], metrics=cell, uncertainty=MIXED, published="paper/t4")
    assert line(table, 1)[1:] == ["0.65", "0.45 (0.15)", "0.53"]  # published rates and means have no interval
    assert [cell.std for cell in table.rows[1].cells] == [None, 0.15, None]
    errors = {"deadlock": "std", "fair": "sem"}
    other = made(SIM, [PAPER], rows=["model", "code"], metrics=cell, uncertainty=errors, published="paper/t4")
    assert line(other, 1)[1:] == ["0.65 (–)", "0.45", "0.53 (0.05)"]


def test_a_ratio_is_sum_over_sum_of_the_episodes_that_have_both() -> None:
    scores = [*SIM, *episodes("sim", {"meals": 7.0})]
    table = made(scores, metrics=["each", "calls"], ratio={"each": ["meals", "deadlock"]}, uncertainty={"calls": "std"})
    each, calls = table.rows[0].cells
    assert (each.value, each.n, each.missing) == (10.0, 4, 1) and calls.value == 10.0


def test_a_ratio_without_a_denominator_is_none() -> None:
    nothing = made(
        [*episodes("sim", {"deadlock": 0.0, "meals": 1.0})], metrics="each", ratio={"each": ["meals", "deadlock"]}
    )
    assert nothing.rows[0].cells[0].value is None


def test_a_ratio_of_unknown_metrics_is_reported() -> None:
    entry = {
        "title": "T",
        "rows": "code",
        "metrics": ["each"],
        "ratio": {"each": ["meals", "call"], "other": ["calls", "meals"]},
    }
    assert check(entry, ["code"], METRICS) == ["ratio: metrics does not use 'other'"]
    del entry["ratio"]["other"]  # type: ignore[attr-defined]
    assert check(entry, ["code"], METRICS) == [
        "ratio: unknown metric 'call'. Did you mean calls? Available: calls, deadlock, fair, meals."
    ]


def test_an_interval_of_a_ratio_is_fiellers_and_lies_where_ratios_can() -> None:
    def table(*right: float) -> Table:
        scores = episodes("sim", *({"meals": 100.0 + i, "deadlock": x} for i, x in enumerate(right)))
        entry: dict[str, Any] = {"ratio": {"each": ["meals", "deadlock"]}, "uncertainty": "interval"}
        return made(scores, rows="model", metrics=["each", "calls"], **entry)

    some, few = table(*[1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0]), table(*[1.0] + [0.0] * 9)
    cell = some.rows[0].cells[0]
    assert cell.value is not None and cell.low is not None and cell.high is not None
    assert 0 < cell.low < cell.value < cell.high and cell.high - cell.value > cell.value - cell.low
    tops, bottoms = numpy.arange(100.0, 110), numpy.array([1, 0, 1, 1, 0, 1, 1, 1, 0, 1])
    for end in (cell.low, cell.high):  # where the difference from 0 is just significant
        assert scipy.stats.ttest_1samp(tops - end * bottoms, 0).pvalue == pytest.approx(0.05, abs=1e-9)
    assert some.notes[0] == "In brackets: 95 % interval of a ratio by Fieller's theorem (each), 95 % interval (calls)."
    assert few.rows[0].cells[0].low is None and few.rows[0].cells[0].stderr is not None
    assert "each: 1 of 1 ratios have no interval, as theirs would have no end" in " ".join(few.notes)


def test_no_note_names_the_interval_of_what_has_none() -> None:
    scores = episodes("sim", *({"meals": 0.8 + i / 10, "fair": 0.2 * i} for i in range(4)))
    lost: dict[str, Any] = {"relative_drop": {"lost": ["meals", "fair"]}, "uncertainty": "interval"}
    table = made(scores, rows="model", metrics=["meals", "lost"], **lost)
    assert table.rows[0].cells[1].value is not None
    assert not [note for note in table.notes if "lost" in note and "95 %" in note]


def test_a_loss_is_one_minus_mean_over_mean_of_episodes_that_need_not_be_the_same() -> None:
    scores = episodes("sim", {"meals": 0.8}, {"meals": 0.4}, {"fair": 0.2}, {"fair": 0.4}, {"fair": 0.3})
    table = made(scores, metrics=["meals", "fair", "lost"], relative_drop={"lost": ["meals", "fair"]})
    meals, fair, lost = table.rows[0].cells
    assert (meals.value, fair.value, lost.value) == (pytest.approx(0.6), pytest.approx(0.3), pytest.approx(0.5))
    nothing = made(
        episodes("sim", {"meals": 0.0, "fair": 0.5}), metrics="lost", relative_drop={"lost": ["meals", "fair"]}
    )
    assert nothing.rows[0].cells[0].value is None
    unknown = {"title": "T", "rows": "code", "metrics": "lost", "relative_drop": {"lost": ["meals", "far"]}}
    assert check(unknown, ["code"], METRICS)[0].startswith("relative_drop: unknown metric 'far'. Did you mean fair?")


# ---------------------------------------------------------------------- the same numbers in every table


@pytest.mark.parametrize("uncertainty", ["sem", "interval"])
def test_the_same_numbers_have_the_same_uncertainty_however_tables_average(uncertainty: str) -> None:
    scores = [
        EpisodeScore(f"g{i}/{i}/0", f"g{i}", {"model": "m"}, {"deadlock": x, "meals": y})
        for i, (x, y) in enumerate(zip(RATE, FOUR, strict=True))
    ]
    pooled, each = (
        made(scores, rows="model", metrics=["deadlock", "meals"], aggregate=how, uncertainty=uncertainty)
        for how in ("pooled", "mean_of_conditions")
    )
    assert line(pooled) == line(each)
    assert [note for note in each.notes if "some conditions have a single observation" in note]
    assert not [note for note in pooled.notes if "one sample" in note]


def soft(*numbers: float) -> list[EpisodeScore]:
    return [
        EpisodeScore(f"c{i // 3}/{i}/0", f"c{i // 3}", {"model": "m", "code": f"c{i // 3}"}, {"score": x})
        for i, x in enumerate(numbers)
    ]


def scored_table(scores: Sequence[EpisodeScore]) -> Table:
    spec = TableSpec.parse(
        {"title": "T", "rows": "code", "metrics": "score", "aggregate": "pooled", "uncertainty": {"score": "interval"}}
    )
    return build(spec, scores, {"score": Share()})


def test_intervals_of_a_score_stay_within_0_and_1_and_the_note_names_them() -> None:
    table = scored_table(soft(0, 0, 0.5, 1, 0.5, 0, 1, 1, 1))
    assert line(table) == ["0.17 [0.01, 0.85]"] and line(table, 2) == ["1.00 [0.44, 1.00]"]
    assert all(0 <= row.cells[0].low <= row.cells[0].high <= 1 for row in table.rows)  # type: ignore[operator]
    assert table.notes == ("In brackets: 95 % interval of the mean by Wilson's formula (score).",)
    # A task with a scale of its own: no row is cut at bounds that do not hold for the run.
    amounts = scored_table(soft(0, 0, 0.5, 10, 20, 30, 1, 1, 1))
    assert amounts.rows[0].cells[0].low < 0  # type: ignore[operator]
    assert amounts.rows[2].cells[0].low is None, "ones among amounts are no shares"
    assert amounts.notes == (
        "In brackets: 95 % t interval of the mean (score).",
        "1 of 3 means are of equal numbers: they have no interval.",
    )


def test_numbers_without_bounds_are_shares_if_the_whole_column_says_so() -> None:
    def shown(*values: Sequence[float]) -> tuple[list[str], tuple[str, ...]]:
        scores = [
            s for code, own in zip("ab", values, strict=True) for s in episodes(code, *({"fair": x} for x in own))
        ]
        table = made(scores, rows="code", metrics="fair", uncertainty="interval")
        return [line(table, i)[0] for i in range(len(values))], table.notes

    assert shown([0, 0, 0, 0], [1, 1, 1, 1]) == (["0.00 [0.00, 0.49]", "1.00 [0.51, 1.00]"], ())
    amounts, notes = shown([0, 0, 0, 0], [-20, -30, -25, 1])
    assert amounts == ["0.00", "-18.50 [-40.18, 3.18]"]
    assert notes[-1] == "1 of 2 means are of equal numbers: they have no interval."
    alike, notes = shown([0, 0, 0, 0], [0, 0, 0, 0])
    assert alike == ["0.00", "0.00"]
    assert notes[-1] == "fair: if these are shares, `bounds: [0, 1]` of the metric gives them an interval."


def test_who_cannot_give_a_metric_bounds_is_not_told_to(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (tmp_path / "metrics" / "mine.py").write_text(
        "from harness.api import Metric, plugin\n\n@plugin\nclass Mine(Metric):\n"
        "    def measure(self, episode):\n        return None\n"
    )
    project = find(tmp_path)
    metrics = {
        "silo/gap": project.load("metrics", "silo/gap")(),
        "mine": project.load("metrics", "mine")(),
        "ended": project.load("metrics", "fact")(of="ended"),
        "agreed": project.load("metrics", "panels/unanimity")(of="first"),
    }
    scores = episodes("sim", *[dict.fromkeys(metrics, 0.0)] * 3)
    entry = {"title": "T", "rows": "code", "metrics": [*metrics], "aggregate": "pooled", "uncertainty": "interval"}
    table = build(TableSpec.parse(entry), scores, metrics)
    assert [cell.low is None for cell in table.rows[0].cells] == [True, True, True, False]
    assert [note for note in table.notes if "if these are shares" in note] == [
        "ended: if these are shares, `bounds: [0, 1]` of the metric gives them an interval.",
        "mine: if these are shares, `bounds = (0, 1)` in its class gives them an interval.",
    ]
