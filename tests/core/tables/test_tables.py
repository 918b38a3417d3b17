"""Tables from scores: values, errors, order, what is said about failures, and what is refused."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Episode, Metric, Statistic
from harness.api.errors import PluginError, SpecError
from harness.extensions.analysis.published_beside import cited
from harness.tables import (
    NOT_RUN,
    DerivedCell,
    EpisodeScore,
    Table,
    TableSpec,
    build,
    rows,
)
from harness.tables.published_figures import PublishedFigure, PublishedTable


class Solved(Metric):
    """A metric with the default aggregation."""

    def measure(self, episode: Episode) -> float | None:
        return episode.grade.get("solved")


class Largest(Solved):
    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return Statistic(max(numbers), None, len(numbers))


METRICS: dict[str, Metric] = {"solved": Solved(), "score": Solved(), "largest": Largest()}
SOLVED = {"title": "Solved", "rows": "model", "columns": "problem", "metrics": "solved"}


CASES = itertools.count()


def score(
    model: str = "m", condition: str = "c", solved: float | None = 1.0, error: str | None = None, **labels: Any
) -> EpisodeScore:
    numbers = {"solved": solved, "score": solved, "largest": solved}
    return EpisodeScore(f"{condition}/{next(CASES)}/0", condition, {"model": model, **labels}, numbers, error)


def condition(name: str, values: Iterable[float], **labels: Any) -> list[EpisodeScore]:
    return [score(condition=name, solved=value, **labels) for value in values]


def made(scores: Sequence[EpisodeScore], papers: Iterable[PublishedTable] = (), **entry: Any) -> Table:
    return build(cited(TableSpec.parse({**SOLVED, **entry}), papers), scores, METRICS)


def grid(table: Table) -> dict[tuple[str, ...], list[float | None]]:
    return {row.names: [cell.value for cell in row.cells] for row in table.rows}


# ------------------------------------------------------------------------------------------- values

UNEVEN = [
    *condition("col-4", [1, 1, 0, 0], problem="coloring", size=4),
    *condition("col-8", [0, 0], problem="coloring", size=8),
    *condition("con-4", [1, 1], problem="consensus", size=4),
]


def test_mean_of_conditions_weighs_conditions_and_pooled_weighs_episodes() -> None:
    per_condition, pooled = made(UNEVEN), made(UNEVEN, aggregate="pooled")
    assert grid(per_condition) == {("m",): [0.25, 1.0]}
    assert grid(pooled) == {("m",): [pytest.approx(1 / 3), 1.0]}
    cell = per_condition.rows[0].cells[0]
    # Variances 1/3 and 0, pooled 2/9. With three more degrees of freedom: (3/3 + 3 · 2/9) / 6 and (0 + 3 · 2/9) / 4.
    assert cell.stderr == pytest.approx(((5 / 18) / 4 + (1 / 6) / 2) ** 0.5 / 2)
    assert (cell.n, cell.failed, cell.missing) == (6, 0, 0)


def test_overall_runs_over_the_rows_conditions_or_episodes() -> None:
    assert grid(made(UNEVEN, overall="mean_of_conditions")) == {("m",): [0.25, 1.0, 0.5]}
    pooled = made(UNEVEN, overall="pooled", overall_title="Average")
    assert grid(pooled) == {("m",): [0.25, 1.0, 0.5]}  # 4 of 8 episodes; (0.5 + 0 + 1) / 3 conditions: equal here
    assert pooled.rows[0].cells[-1].stderr == pytest.approx((2 / 7) ** 0.5 / 8**0.5)
    assert [c.names for c in pooled.columns] == [("coloring",), ("consensus",), ("Average",)]
    assert [c.overall for c in pooled.columns] == [False, False, True]


def test_the_metrics_own_aggregation_is_used() -> None:
    assert grid(made(UNEVEN, metrics="largest", aggregate="pooled")) == {("m",): [1.0, 1.0]}
    assert grid(made(UNEVEN, metrics="largest")) == {("m",): [0.5, 1.0]}  # largest of each condition, then the mean


def test_wilson_intervals_of_rates() -> None:
    rates = made(UNEVEN, uncertainty="interval", aggregate="pooled", overall="pooled")
    cell = rates.rows[0].cells[1]
    assert (cell.low, cell.high) == (pytest.approx(2 / (2 + 1.959964**2), abs=1e-6), 1.0)
    assert rates.notes == ()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 1)), min_size=1, max_size=40))
def test_every_episode_counts_once_and_pooled_cells_average_to_the_overall(
    episodes: list[tuple[str, str, int]],
) -> None:
    table = made([score(m, p, s, problem=p) for m, p, s in episodes], aggregate="pooled", overall="pooled")
    assert sum(cell.n or 0 for row in table.rows for cell in row.cells[:-1]) == len(episodes)
    for row in table.rows:
        solved = sum((cell.value or 0) * (cell.n or 0) for cell in row.cells[:-1])
        assert row.cells[-1].value == pytest.approx(solved / (row.cells[-1].n or 1))


# ------------------------------------------------------------------------------------------- layout


def test_rows_and_columns_stand_as_first_seen_and_are_grouped_by_their_first_label() -> None:
    scores = [
        score(problem=p, size=s, awareness=a) for a in ("aware", "unaware") for s in (8, 4) for p in ("vc", "col")
    ]
    table = made(scores, rows="problem", columns=["size", "awareness"])
    assert [r.names for r in table.rows] == [("vc",), ("col",)]
    heads = [("size 8", "aware"), ("size 8", "unaware"), ("size 4", "aware"), ("size 4", "unaware")]
    assert [c.names for c in table.columns] == heads  # a number alone would not say of what
    assert table.columns[0].key == {"size": 8, "awareness": "aware"}
    ordered = made(scores, rows="problem", columns=["size", "awareness"], order={"size": [4], "problem": ["col"]})
    assert [r.names for r in ordered.rows] == [("col",), ("vc",)]
    assert [c.names[0] for c in ordered.columns] == ["size 4", "size 4", "size 8", "size 8"]


def test_several_metrics_make_a_level_of_their_own_wherever_it_is_put() -> None:
    last = made(UNEVEN, metrics=["score", "solved"])
    assert [c.names for c in last.columns][:2] == [("coloring", "score"), ("coloring", "solved")]
    assert [c.metric for c in last.columns][:2] == ["score", "solved"]
    first = made(UNEVEN, metrics=["score", "solved"], columns=["metric", "problem"], overall="pooled")
    assert [c.names for c in first.columns][-2:] == [("score", "Overall"), ("solved", "Overall")]
    down = made(UNEVEN, metrics=["score", "solved"], rows=["model", "metric"], overall="pooled")
    assert [r.names for r in down.rows] == [("m", "score"), ("m", "solved")]
    assert [r.cells[-1].n for r in down.rows] == [8, 8]
    flat = build(TableSpec.parse({"title": "t", "rows": "model", "metrics": ["score", "solved"]}), UNEVEN, METRICS)
    assert [c.names for c in flat.columns] == [("score",), ("solved",)]


def test_where_filters_and_labels_only_change_what_is_shown() -> None:
    output = made(UNEVEN, where={"size": "4"}, labels={"coloring": "Coloring", "model": "Model", "m": "M"})
    assert [c.names for c in output.columns] == [("Coloring",), ("consensus",)]
    assert (output.row_names, output.rows[0].names, dict(output.rows[0].key)) == (("Model",), ("M",), {"model": "m"})
    assert grid(output) == {("M",): [0.5, 1.0]}
    assert made(UNEVEN, where={"size": [5, 6]}).notes == ("There are no episodes to show.",)


def test_models_are_never_averaged_together() -> None:
    scores = [score("a", problem="p", solved=1), score("b", problem="p", solved=0)]
    assert grid(made(scores, rows="problem", columns="metric")) == {("a", "p"): [1.0], ("b", "p"): [0.0]}
    assert grid(made(scores[:1], rows="problem", columns="metric")) == {("p",): [1.0]}
    assert grid(made(scores, rows="problem", columns="model")) == {("p",): [1.0, 0.0]}


def test_cells_without_episodes_are_empty() -> None:
    table = made([score("a", problem="p"), score("b", problem="q")])
    assert grid(table) == {("a",): [1.0, None], ("b",): [None, 1.0]}
    assert table.rows[0].cells[1].n == 0


@given(st.permutations(range(8)))
def test_order_of_completion_changes_no_number(order: list[int]) -> None:
    names = {"model": ["m"], "problem": ["coloring", "consensus"]}
    shuffled = made([UNEVEN[i] for i in order], order=names, overall="mean_of_conditions", uncertainty="sem")
    assert shuffled == made(UNEVEN, order=names, overall="mean_of_conditions", uncertainty="sem")


# ----------------------------------------------------------------------------------------- failures


def test_failed_episodes_are_counted_and_never_averaged() -> None:
    scores = [
        *condition("a", [1, 1], problem="p"),
        score(condition="a", solved=0, error="boom", problem="p"),
        score(condition="b", solved=None, error=NOT_RUN, problem="p"),
        score(condition="c", solved=None, problem="p"),
        score(condition="c", solved=float("nan"), problem="p"),
    ]
    table = made(scores)
    cell = table.rows[0].cells[0]
    assert (cell.value, cell.n, cell.failed, cell.missing) == (1.0, 2, 1, 3)
    assert table.notes == (
        "1 of 6 episodes failed and count in no number: a (1).",
        "1 of 6 episodes were not run: b (1).",
        "solved: not reported in 2 of 4 episodes.",
        "2 of 3 conditions have no number for solved and are left out of its means.",
    )


def test_many_failed_conditions_are_summed_up() -> None:
    scores = [score(condition=f"c{i}", error="boom", problem="p") for i in range(5)]
    assert made(scores).notes == (
        "5 of 5 episodes failed and count in no number: c0 (1), c1 (1), c2 (1), and in 2 more.",
    )


def test_an_error_that_cannot_be_known_is_explained() -> None:
    table = made([*UNEVEN, *condition("con-8", [1], problem="consensus", size=8)], uncertainty="sem")
    assert [cell.stderr for cell in table.rows[0].cells] == [pytest.approx(((5 / 18) / 4 + (1 / 6) / 2) ** 0.5 / 2), 0]
    assert table.notes == (
        "solved: behind 1 of 2 means some conditions have a single observation, or equal ones: the standard errors "
        "take from all conditions how much these vary.",
        "1 of 2 means are of equal numbers: they have no standard error.",
    )
    alone = made(condition("con-8", [1], problem="consensus"), uncertainty="sem")
    assert alone.rows[0].cells[0].stderr is None
    assert alone.notes == ("1 of 1 cells have a single number for solved: it has no standard error.",)


def test_a_metric_without_any_number_leaves_the_cells_empty_and_says_so() -> None:
    table = made([*condition("a", [1], problem="p", other=1), score(solved=None, problem="q")], note="Mind this.")
    assert grid(table) == {("m",): [1.0, None]}
    silent = made([score(solved=None, problem="q")], note="Mind this.")
    assert silent.notes == ("Mind this.", "solved: not reported.")


# ----------------------------------------------------------------------------------------- published

PAPER = PublishedTable(
    "paper/t2",
    "Paper, Table 2",
    "Solved",
    (
        PublishedFigure({"model": "X", "problem": "coloring"}, "solved", 0.3, 0.1),
        PublishedFigure({"model": "X", "problem": "matching"}, "solved", 0.4, 0.1),
        PublishedFigure({"model": "X"}, "solved", 0.35, 0.05, overall=True),
        PublishedFigure({"model": "X", "problem": "coloring"}, "calls", 7.0),
    ),
    covers={"size": (4, 8, 16)},
    warnings=("The paper dropped runs.",),
)


def test_published_figures_stand_below_marked_and_with_their_warnings() -> None:
    table = made(UNEVEN, [PAPER], published="paper/t2", overall="mean_of_conditions")
    assert grid(table) == {("m",): [0.25, 1.0, None, 0.5], ("X",): [0.3, None, 0.4, 0.35]}
    assert [row.published for row in table.rows] == [None, "Paper, Table 2"]
    assert [cell.n for cell in table.rows[1].cells] == [None] * 4
    assert table.notes == (
        "† published: Paper, Table 2; not run here.",
        "† The paper dropped runs.",
        "† Paper, Table 2 covers size 4, 8, 16; this run size 4, 8: not comparable as a whole.",
        "† 1 of 4 published figures are not placed in this table: 1 of metrics for which it has no column.",
    )


def test_published_figures_show_only_when_asked_for_and_never_mix_with_ours() -> None:
    assert made(UNEVEN, published="paper/t2") == made(UNEVEN)
    assert made(UNEVEN, [PAPER]) == made(UNEVEN)
    rows_by_problem = made(UNEVEN, [PAPER], published="paper/t2", rows="problem", columns="metric")
    assert grid(rows_by_problem) == {
        ("m", "coloring"): [0.25],
        ("m", "consensus"): [1.0],
        ("X", "coloring"): [0.3],
        ("X", "matching"): [0.4],
    }
    filtered = made(UNEVEN, [PAPER], published="paper/t2", where={"problem": "coloring"})
    assert grid(filtered) == {("m",): [0.25], ("X",): [0.3]}
    with pytest.raises(SpecError, match="unknown published table 'paper/t3'"):
        made(UNEVEN, [PAPER], published="paper/t3")


# ------------------------------------------------------------------------------------ empty columns


def with_program(**labels: Any) -> EpisodeScore:
    return EpisodeScore("p/0/0", "p", {"model": "m", **labels}, {"solved": 1.0, "score": 0.5, "largest": None})


def test_columns_in_which_nothing_can_stand_are_left_out_where_the_table_wants_it() -> None:
    """Some benchmarks have a second metric, others have not."""
    scores = [EpisodeScore(f"{c.id}{i}", c.condition, c.labels, {"solved": 1.0}) for i, c in enumerate(UNEVEN)]
    scores.append(with_program(problem="matching"))
    entry: dict[str, Any] = {"columns": ["problem", "metric"], "metrics": ["solved", "score"], "aggregate": "pooled"}
    whole, short = made(scores, **entry), made(scores, **entry, hide_empty=True)
    assert [column.names for column in whole.columns][:2] == [("coloring", "solved"), ("coloring", "score")]
    assert [column.names for column in short.columns] == [
        ("coloring", "solved"),
        ("consensus", "solved"),
        ("matching", "solved"),
        ("matching", "score"),
    ]
    assert grid(short) == {("m",): [1.0, 1.0, 1.0, 0.5]}
    assert any("score: not reported in 8 of 9" in note for note in whole.notes)
    assert not any("no number" in note for note in short.notes)


def test_a_column_with_some_numbers_stays_and_says_what_is_missing() -> None:
    table = made([*UNEVEN, score(condition="con-4", solved=None, problem="consensus", size=4)], hide_empty=True)
    assert [column.names for column in table.columns] == [("coloring",), ("consensus",)]
    assert any("solved: not reported in 1 of 9 episodes" in note for note in table.notes)


def test_a_column_that_only_a_publication_fills_stays() -> None:
    scores = [*UNEVEN, score(solved=None, problem="matching")]
    assert len(made(scores, hide_empty=True).columns) == 2
    output = made(scores, [PAPER], published="paper/t2", hide_empty=True)
    assert [column.names[0] for column in output.columns] == ["coloring", "consensus", "matching"]


# ------------------------------------------------------------------------------------------- figures


def test_stacked_contributions_add_up_to_the_mean() -> None:
    table = made(UNEVEN, rows=["size", "model"], figure="stacked", where={"size": 4})
    assert grid(table) == {("4", "m"): [0.25, 0.5]}
    assert table.rows[0].cells[0].stderr == pytest.approx(12**-0.5 / 2)
    first = table.long()[0]
    assert {k: first[k] for k in ("panel", "x", "series", "size", "problem", "value", "n")} == {
        "panel": "4",
        "x": "m",
        "series": "coloring",
        "size": 4,
        "problem": "coloring",
        "value": 0.25,
        "n": 4,
    }


def test_several_metrics_pile_up_to_their_sum() -> None:
    table = made(
        UNEVEN, rows="size", columns="metric", metrics=["solved", "score"], figure="stacked", aggregate="pooled"
    )
    assert grid(table) == {("4",): [4 / 6, 4 / 6], ("8",): [0.0, 0.0]}
    assert [(r["x"], r["series"], r["metric"]) for r in table.long()[:2]] == [
        (4, "solved", "solved"),
        (4, "score", "score"),
    ]
    assert not any("shares of a stack" in note for note in table.notes)


def test_long_rows_of_a_table_hold_every_cell_once() -> None:
    table = made(UNEVEN, overall="pooled", aggregate="pooled", uncertainty="interval")
    assert [(r.get("problem"), r["overall"], r["metric"], r["n"]) for r in table.long()] == [
        ("coloring", False, "solved", 6),
        ("consensus", False, "solved", 2),
        (None, True, "solved", 8),
    ]
    assert {"low", "high", "failed", "missing", "published", "stderr"} <= table.long()[0].keys()
    assert "low" not in made(UNEVEN).long()[0]
    assert made(UNEVEN, rows="size", columns="problem", figure=True).long()[0]["x"] == 4
    assert json.loads(json.dumps(table.to_json()))["rows"][0]["cells"][0]["n"] == 6


# -------------------------------------------------------------------------------------- result rows


def test_result_rows_are_one_per_model_condition_and_metric() -> None:
    scores = [*UNEVEN[:4], score(condition="col-4", error="boom", problem="coloring", size=4, graph=3), score("n")]
    result = rows(scores, {"solved": METRICS["solved"]}, "run1")
    assert result[0] == {
        "schema": 1,
        "run": "run1",
        "model": "m",
        "condition": "col-4",
        "labels": {"problem": "coloring", "size": 4},
        "metric": "solved",
        "value": 0.5,
        "stderr": pytest.approx(12**-0.5),
        "n": 4,
        "failed": 1,
    }
    assert [(r["model"], r["condition"]) for r in result] == [("m", "col-4"), ("n", "c")]
    assert len(rows(scores, METRICS, "run1")) == 6


def test_building_refuses_what_is_not_there() -> None:
    with pytest.raises(SpecError, match=r"unknown metric 'sovled'\n.*Did you mean solved"):
        made(UNEVEN, metrics="sovled")
    with pytest.raises(SpecError, match=r"no episode has the label 'sizes'\n.*Did you mean size"):
        made(UNEVEN, columns="sizes")
    assert made([]).rows == ()


def _no_cell(scores: Sequence[EpisodeScore], failed: int) -> Any:
    return float(failed)


@pytest.mark.parametrize("total", [_no_cell, functools.partial(_no_cell)])
def test_a_total_that_is_no_cell_is_a_mistake_with_its_place(total: Any) -> None:
    table = TableSpec(title="T", rows=("model",), cells=("cost",), derived={"cost": DerivedCell("cost", (), total)})
    line = _no_cell.__code__.co_firstlineno
    words = rf"{__file__}:{line}:1: .*table 'T': `total` of cost 'cost' gives 0.0, not a Cell"
    with pytest.raises(PluginError, match=words):
        build(table, [score()], METRICS)
    broken = TableSpec(title="T", rows=("model",), cells=("cost",), derived={"cost": DerivedCell("cost", (), 3)})  # type: ignore[arg-type]
    with pytest.raises(PluginError, match="table 'T': TypeError: 'int' object is not callable"):
        build(broken, [score()], METRICS)
