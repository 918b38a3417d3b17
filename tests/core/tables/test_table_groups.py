"""Rows that stand for several others: lm-eval's means and errors of groups, set apart in every format."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Episode, Metric, RatioMetric, Statistic
from harness.api.errors import SpecError
from harness.extensions.charts.page_html import page
from harness.report import render
from harness.tables import Cell, EpisodeScore, Table, TableSpec, build, check
from harness.tables.group_rows import combined
from tests.helpers.samples import examples


class Right(Metric):
    bounds = (0, 1)

    def measure(self, episode: Episode) -> float | None:
        return episode.grade.get("right")


class Share(RatioMetric):
    def parts(self, episode: Episode) -> tuple[float, float] | None:
        return None


class Largest(Right):
    """An aggregation that is no mean, as corpus metrics have."""

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return Statistic(max(numbers), 0.25, len(numbers))


METRICS: dict[str, Metric] = {"right": Right(), "share": Share(), "largest": Largest()}
TABLE: dict[str, Any] = {"title": "Tasks", "rows": "task", "metrics": "right", "uncertainty": "sem", "digits": 4}
MMLU = {"title": "mmlu", "of": ["law", "algebra", "logic"]}


def scores(model: str = "m", **tasks: str) -> list[EpisodeScore]:
    """Episodes of tasks: one a character, 1 is right and 0 is wrong."""
    return [
        EpisodeScore(
            f"{task}/{i}/0",
            task,
            {"model": model, "task": task},
            {"right": float(x), "share": (float(x), 2.0), "largest": float(x)},
        )
        for task, answers in tasks.items()
        for i, x in enumerate(answers)
    ]


THREE = scores(law="1110", algebra="10", logic="110010")


def made(entry: dict[str, Any], episodes: Sequence[EpisodeScore] = THREE) -> Table:
    return build(TableSpec.parse({**TABLE, **entry}), episodes, METRICS)


def cells(table: Table) -> dict[tuple[str, ...], tuple[Cell, ...]]:
    return {row.names: row.cells for row in table.rows}


@given(
    st.lists(st.tuples(st.integers(2, 2000), st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8), st.booleans()
)
@settings(max_examples=examples(60), deadline=None)
def test_values_and_errors_are_those_of_lm_eval_to_the_last_bit(
    members: list[tuple[int, float, float]], by_size: bool
) -> None:
    from lm_eval.api.metrics import aggregate_subtask_metrics, pooled_sample_stderr, unweighted_mean_stderr

    sizes, values, errors = map(list, zip(*members, strict=True))
    ours = combined([Cell(v, e, n) for n, v, e in members], "size" if by_size else "equal")
    assert ours.value == aggregate_subtask_metrics(values, sizes, by_size)
    assert ours.stderr == (pooled_sample_stderr(errors, sizes) if by_size else unweighted_mean_stderr(errors))
    assert ours.n == sum(sizes)


def test_a_group_weighs_rows_by_size_or_all_the_same() -> None:
    table = made({"groups": [MMLU, {**MMLU, "title": "macro", "weight": "equal"}]})
    assert [row.names[0] for row in table.rows] == ["law", "algebra", "logic", "mmlu", "macro"]
    assert cells(table)[("mmlu",)][0].value == pytest.approx(7 / 12)
    assert cells(table)[("macro",)][0].value == pytest.approx((3 / 4 + 1 / 2 + 3 / 6) / 3)
    # s² = (3·¼ + 1·½ + 5·0.3)/9, SE = √(s²/12); law's variance is ¼, algebra's ½, logic's 0.3
    assert cells(table)[("mmlu",)][0].stderr == pytest.approx(((3 / 4 + 1 / 2 + 1.5) / 9 / 12) ** 0.5)
    assert cells(table)[("macro",)][0].stderr == pytest.approx((0.25 / 4 + 0.5 / 2 + 0.3 / 6) ** 0.5 / 3)
    assert [row.group for row in table.rows] == [None, None, None, "size", "equal"]
    assert "mmlu: the mean of the group's rows, weighted by their observations (micro)." in table.notes
    assert "macro: the mean of the group's rows, all of which count the same (macro)." in table.notes


def test_groups_of_groups_have_the_rows_of_all_of_them_once() -> None:
    groups = [
        {"title": "all", "of": ["formal", "law", "logic"], "weight": "equal"},
        {"title": "formal", "of": ["algebra", "logic"]},
    ]
    table = made({"groups": groups})
    assert cells(table)[("all",)][0].value == pytest.approx((3 / 4 + 1 / 2 + 3 / 6) / 3)
    assert cells(table)[("all",)][0].n == 12
    own_name = made({"groups": [{"title": "law", "of": ["law", "logic"]}]})
    assert [row.cells[0].n for row in own_name.rows if row.names == ("law",)] == [4, 10]


def test_ratios_and_metrics_of_the_whole_corpus_are_combined_from_their_rows() -> None:
    table = made({"metrics": ["share", "largest"], "groups": [MMLU, {**MMLU, "title": "macro", "weight": "equal"}]})
    share, largest = cells(table)[("mmlu",)]
    assert share.value == pytest.approx(7 / 24)
    assert largest.value == 1.0
    assert largest.stderr is not None
    assert cells(table)[("macro",)][1].stderr == pytest.approx(0.25 / 3**0.5)


def test_a_group_has_a_row_for_each_model_and_a_cell_for_each_column() -> None:
    episodes = [*THREE, *scores("other", law="00", algebra="1111")]
    by_model = made({"groups": [MMLU]}, episodes)
    assert {names: row[0].value for names, row in cells(by_model).items() if "mmlu" in names} == {
        ("m", "mmlu"): pytest.approx(7 / 12),
        ("other", "mmlu"): pytest.approx(4 / 6),
    }
    assert any("mmlu: no right of logic" in note for note in by_model.notes)
    in_columns = made({"columns": "model", "groups": [MMLU]}, episodes)
    assert [cell.value for cell in cells(in_columns)[("mmlu",)]] == [pytest.approx(7 / 12), pytest.approx(4 / 6)]
    metrics_in_rows = made({"rows": ["task", "metric"], "metrics": ["right", "largest"], "groups": [MMLU]})
    assert cells(metrics_in_rows)[("mmlu", "largest")][0].value == 1.0


def test_a_group_may_leave_metrics_out_and_costs_have_no_mean() -> None:
    table = made(
        {
            "metrics": ["right", "lost"],
            "relative_drop": {"lost": ["right", "largest"]},
            "groups": [{**MMLU, "metrics": ["right"]}],
        }
    )
    assert [cell.value is None for cell in cells(table)[("mmlu",)]] == [False, True]
    entry = {**TABLE, "metrics": ["right", "lost"], "relative_drop": {"lost": ["right", "largest"]}}
    assert check({**entry, "groups": [{**MMLU, "metrics": ["lost"]}]}, ["task"], METRICS) == [
        "groups: 'lost' has no mean over rows"
    ]


def test_a_single_observation_leaves_the_group_without_an_error() -> None:
    table = made({"groups": [MMLU, {**MMLU, "title": "macro", "weight": "equal"}]}, scores(law="1", algebra="10"))
    assert cells(table)[("mmlu",)][0].stderr is None
    assert cells(table)[("macro",)][0].stderr is None
    assert combined([Cell(1.0, None, 0)], "size").value is None


def shared(rows: Sequence[str]) -> list[EpisodeScore]:
    """Rows that answer the same questions."""
    return [
        EpisodeScore(f"{task}/{i}/0", task, {"model": "m", "task": task}, {"right": float(x)}, problem=f"q{i}")
        for task, answers in zip(("law", "algebra", "logic"), rows, strict=True)
        for i, x in enumerate(answers)
    ]


@pytest.mark.parametrize("weight", ["size", "equal"])
@pytest.mark.parametrize("error", ["sem", "interval"])
def test_rows_that_share_questions_have_clustered_errors(weight: str, error: str) -> None:
    episodes = shared(["110100", "110100", "111100"])
    entry = {**TABLE, "uncertainty": error, "groups": [{**MMLU, "weight": weight}]}
    group = cells(made(entry, episodes))["mmlu",][0]
    plain = {key: value for key, value in {**TABLE, **entry, "rows": "model"}.items() if key != "groups"}
    over = cells(build(TableSpec.parse(plain), episodes, METRICS))["m",][0]
    assert group.value == pytest.approx(over.value)
    assert group.stderr == pytest.approx(over.stderr)
    assert (group.low, group.high) == (over.low and pytest.approx(over.low), over.high and pytest.approx(over.high))
    apart = cells(made(entry, scores(law="110100", algebra="110100", logic="111100")))["mmlu",][0]
    assert apart.stderr is not None and group.stderr > 1.3 * apart.stderr
    assert (
        "mmlu: some numbers of right are of one observation; their errors are clustered." in made(entry, episodes).notes
    )


def test_intervals_of_groups_stay_within_the_metrics_bounds() -> None:
    table = made({"uncertainty": "interval", "groups": [MMLU]}, scores(law="1110", algebra="11111111111111111110"))
    cell = cells(table)[("mmlu",)][0]
    assert cell.value is not None
    assert cell.low is not None
    assert 0 < cell.low < cell.value < (cell.high or 0) <= 1


def test_every_format_sets_groups_apart() -> None:
    table = made({"groups": [MMLU]})
    text = render(table).splitlines()
    at = next(i for i, line in enumerate(text) if line.startswith("mmlu"))
    assert set(text[at - 1]) == {"-", " "}
    assert "| **mmlu** |" in render(table, "markdown")
    latex = render(table, "latex")
    assert latex.count("\\midrule") == 2
    assert (latex.count("\\toprule"), latex.count("\\bottomrule"), latex.count("\\hline")) == (1, 1, 0)
    lines = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [(line["task"], line["group"]) for line in lines][-2:] == [("logic", ""), ("mmlu", "size")]
    assert json.loads(render(table, "json"))["rows"][-1]["group"] == "size"
    html = page("tasks", [table])
    assert html.index('<tbody class="groups">') < html.index('scope="row">mmlu<')
    plain = made({})
    assert "group" not in render(plain, "csv")
    assert "group" not in json.loads(render(plain, "json"))["rows"][0]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"groups": [{"title": "x", "of": ["laws"]}]}, "groups: 'x': task is never 'laws'. Did you mean law?"),
        ({"groups": [{"title": "x"}]}, "missing required key 'of'"),
        ({"groups": [{"title": "x", "of": ["y"]}, {"title": "y", "of": ["x"]}]}, "part of itself: x → y → x"),
        ({"groups": [MMLU, MMLU]}, "two groups have one title"),
        ({"groups": [{**MMLU, "metrics": ["rihgt"]}]}, "metrics has no 'rihgt'. Did you mean right?"),
        ({"groups": [{**MMLU, "weight": "n"}]}, "groups"),
        ({"rows": "model", "groups": [MMLU]}, "rows need a label besides model and metric"),
        ({"figure": "bar", "groups": [MMLU]}, "a figure has no groups"),
        (
            {"groups": [MMLU], "compare": {"label": "task", "base": "law", "with": "logic"}},
            "groups: only a plain table has it",
        ),
    ],
)
def test_mistakes_are_named(entry: dict[str, Any], message: str) -> None:
    labels = {"task": ["law", "algebra", "logic"]}
    assert any(message in mistake for mistake in check({**TABLE, **entry}, labels, METRICS))
    if "laws" not in str(entry):
        with pytest.raises(SpecError):
            TableSpec.parse({**TABLE, **entry})
