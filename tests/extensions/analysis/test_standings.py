"""Who is ahead: ranks by paired tests, the best marked, one page over all benchmarks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Episode, Metric
from harness.config.project import find
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.standings import standings
from harness.extensions.charts.page_html import page
from harness.report import render
from harness.tables import EpisodeScore, HeadlineSpec, TableSpec, check_headline
from harness.tables.cost import Price
from harness.tables.published_figures import PublishedFigure, PublishedTable


class Share(Metric):
    bounds = (0, 1)

    def measure(self, episode: Episode) -> float | None:
        return None


class Count(Metric):
    bounds = (0, float("inf"))

    def measure(self, episode: Episode) -> float | None:
        return None


METRICS: Mapping[str, Metric] = {name: Share() for name in ("solved", "score")} | {
    name: Count() for name in ("parse_failures", "tokens_total", "tokens_input", "tokens_output")
}
SPEC: dict[str, Any] = {"headline": {"metric": "solved", "title": "Solved", "unit": "percent", "digits": 0}}


def run(model: str, values: Sequence[float | None], spec: Mapping[str, Any] = SPEC, **meta: Any) -> RunScores:
    counts = {"parse_failures": 1.0, "tokens_input": 1e6, "tokens_output": 2e6}
    scores = [
        EpisodeScore(f"c/{i}/0", "c", {"model": model, "kind": i % 2}, {"solved": x, "score": x, **counts})
        for i, x in enumerate(values)
    ]
    facts = {"run": f"run-{model}", "spec": "toy", "spec_digest": "d" * 64, "model": model, **meta}
    return RunScores(facts, scores, [], METRICS, {}, HeadlineSpec.of(spec, METRICS))


def ranks(*runs: RunScores) -> dict[str, str]:
    return {row.model: row.rank for row in standings(runs).rows}


ONES, HALF, ZEROS = [1.0] * 20, [1.0, 0.0] * 10, [0.0] * 20
FIFTH, NEARLY = [1.0] * 4 + [0.0] * 16, [1.0] * 16 + [0.0] * 4


def test_the_best_stands_first_and_models_that_do_not_differ_share_their_ranks() -> None:
    board = standings([run("zeros", ZEROS), run("half", HALF), run("ones", ONES), run("nearly", [0.0, *ONES[1:]])])
    assert [(row.model, row.rank) for row in board.rows] == [
        ("ones", "1–2"),
        ("nearly", "1–2"),
        ("half", "3"),
        ("zeros", "4"),
    ]
    lines = render(board.table(), "text").splitlines()
    assert lines[2].split() == ["Rank", "Model", "Solved", "↑", "n", "failed", "missing", "parse", "failures"]
    assert lines[4].split() == ["1–2", "ones", "100%", "[84%,", "100%]", "20", "0", "0", "1.00"]
    assert lines[-2].startswith("Rank: the ranks that a model may have")
    assert "all 6 pairs" in lines[-2]


def test_where_lower_is_better_the_lowest_stands_first() -> None:
    spec = {"headline": {"metric": "solved", "better": "lower"}}
    board = standings([run("ones", ONES, spec), run("zeros", ZEROS, spec)])
    assert [(row.model, row.rank) for row in board.rows] == [("zeros", "1"), ("ones", "2")]
    assert board.table().columns[0].names == ("solved ↓",)
    assert [row.cells[0].best for row in board.table().rows] == [True, False]


def test_pairs_find_differences_that_intervals_hide() -> None:
    hard = [0.0, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8]
    better = [x + 0.05 for x in hard]
    assert ranks(run("a", hard), run("b", better)) == {"b": "1", "a": "2"}
    assert ranks(run("a", hard), run("b", better[::-1])) == {"b": "1–2", "a": "1–2"}


def test_episodes_that_only_one_model_has_are_in_no_pair() -> None:
    board = standings([run("a", [*HALF, *[None] * 20]), run("b", [*HALF, *ONES])])
    assert {row.model: (row.rank, row.cell.n, row.cell.missing) for row in board.rows} == {
        "b": ("1–2", 40, 0),
        "a": ("1–2", 20, 20),
    }


def test_models_without_a_common_episode_share_their_ranks() -> None:
    odd = run("b", [0.1, 0.12, 0.13, 0.11] * 5)
    odd = replace(odd, scores=[replace(s, id=f"c/other{i}/0") for i, s in enumerate(odd.scores)])
    board = standings([run("a", [0.9, 0.8, 0.85, 0.95] * 5), odd])
    assert {row.model: row.rank for row in board.rows} == {"a": "1–2", "b": "1–2"}
    assert board.notes[1] == (
        "Rank: no two models can be tested: they differ in no episode, or have fewer than two cases in common."
    )


@pytest.mark.parametrize(
    ("models", "cases", "rank", "note"),
    [
        (2, 5, "1–2", "5 in common, and 6 must differ before p can be below 0.05."),
        (2, 6, "1", None),
        (3, 6, "1–3", "6 in common, and 7 must differ before p can be below 0.05 after the correction for 3 pairs."),
        (3, 7, "1", None),
    ],
)  # fmt: skip
def test_too_few_cases_to_separate_models_are_said(models: int, cases: int, rank: str, note: str | None) -> None:
    board = standings([run(f"m{i}", [(models - i) / 4] * cases) for i in range(models)])
    assert board.rows[0].rank == rank
    expected = [f"Too few cases to separate any two models: they have at most {note}"] if note else []
    assert [line for line in board.notes if line.startswith("Too few")] == expected


def test_pairs_with_too_few_common_clusters_are_counted() -> None:
    spec = {**SPEC, "cluster": "case"}
    short = run("short", [1.0] * 5, spec)
    doubled = replace(short, scores=[*short.scores, *(replace(s, id=s.id[:-1] + "1") for s in short.scores)])
    board = standings([run("a", ONES, spec), run("b", ZEROS, spec), doubled])
    (note,) = [line for line in board.notes if line.startswith("2 of 3 pairs of models cannot be separated")]
    assert note.endswith("they have fewer than 6 clusters in common, so p cannot be below 0.05.")


def test_a_model_without_a_number_has_no_rank_and_failures_are_counted() -> None:
    failed = run("broken", [None] * 3)
    failed = replace(failed, scores=[replace(failed.scores[0], error="boom"), *failed.scores[1:]])
    table = standings([run("a", [1.0, 0.0, 1.0]), failed]).table()
    assert [(row.names, [cell.value for cell in row.cells[:4]]) for row in table.rows] == [
        (("1", "a"), [pytest.approx(2 / 3), 3, 0, 0]),
        (("–", "broken"), [None, 0, 1, 2]),
    ]


def test_floor_and_ceiling_are_shown_and_not_ranked() -> None:
    board = standings(
        [run("a", HALF), run("b", ZEROS)], [("floor", run("random", ZEROS)), ("ceiling", run("best", ONES))]
    )
    assert [(row.rank, row.model, row.role) for row in board.rows] == [
        ("–", "best", "ceiling"),
        ("1", "a", "model"),
        ("–", "random", "floor"),
        ("2", "b", "model"),
    ]
    assert [row.names[1] for row in board.table().rows] == ["best (ceiling)", "a", "random (floor)", "b"]
    assert [row.cells[0].best for row in board.table().rows] == [False, True, False, False]
    page_over_all = overall([board, replace(board, name="other")])
    assert [row.names[0] for row in page_over_all.rows] == ["a", "b", "Ceiling", "Floor"]


def of_policy(
    model: str, values: Sequence[float | None], reference: object, spec: Mapping[str, Any] = SPEC
) -> RunScores:
    return run(model, values, spec, policies_only=True, identity={"spec": {"baseline": reference}})


def test_a_floor_that_is_a_run_of_its_own_stands_there_once() -> None:
    policy = of_policy("random", ZEROS, "random")
    board = standings([run("a", HALF), policy], [("floor", policy), ("ceiling", run("best", ONES))])
    assert [row.names for row in board.table().rows] == [("–", "best (ceiling)"), ("1", "a"), ("2", "random (floor)")]
    assert [row.names[0] for row in overall([board, replace(board, name="other")]).rows] == [
        "a", "random", "Ceiling", "Floor",
    ]  # fmt: skip
    namesake = run("random", ONES)
    assert len(standings([run("a", HALF), namesake], [("floor", policy)]).rows) == 3


def test_a_floor_that_knows_the_answers_is_found_among_the_runs() -> None:
    spec = {"headline": {"metric": "solved", "floor": {"use": "simulated", "label": "one in ten"}}}
    own = of_policy("simulated (one in ten)", ZEROS, {"label": "one in ten", "use": "simulated"}, spec)
    board = standings([run("a", HALF, spec), own])
    assert [row.end for row in board.rows] == [None, "floor"]
    namesake = run("simulated (one in ten)", ZEROS, spec)
    assert {row.end for row in standings([run("a", HALF, spec), namesake]).rows} == {None}


def test_a_policy_with_only_the_name_of_the_ceiling_is_not_the_ceiling() -> None:
    spec = {"headline": {"metric": "solved", "ceiling": "silo/oracle"}}
    liars = of_policy("silo/oracle", ZEROS, {"use": "silo/oracle", "mistake": "lie"}, spec)
    oracle = of_policy("silo/oracle", ONES, "silo/oracle", spec)
    cases: Any = (
        ([], [("silo/oracle", None, "model")]),
        ([("ceiling", oracle)], [("silo/oracle of the spec", None, "ceiling"), ("silo/oracle", None, "model")]),
    )
    for baselines, rows in cases:
        board = standings([liars], baselines)
        assert [(row.model, row.end, row.role) for row in board.rows] == rows
        assert any("Not the spec's ceiling, though of its name: silo/oracle." in note for note in board.notes)
    alike = of_policy("silo/oracle", ONES, {"use": "silo/oracle"}, spec)
    board = standings([alike], [("ceiling", oracle)])
    assert [(row.model, row.end, row.role) for row in board.rows] == [("silo/oracle", "ceiling", "model")]
    assert not any("though of its name" in note for note in board.notes)


TENTH: dict[str, Any] = {"use": "simulated", "accuracy": 0.1}


@pytest.mark.parametrize(
    ("played", "end"),
    [
        pytest.param({"baseline": TENTH | {"malformed": 0.0}}, "floor", id="default"),
        pytest.param({"baseline": "random", "agents": {"default": {"policy": TENTH}}}, "floor", id="policy"),
        pytest.param({"agents": {"default": {"baseline": TENTH}}}, "floor", id="baseline"),
        pytest.param({"baseline": TENTH, "agents": {"liar": {"policy": "random", "count": 1}}}, "floor", id="liar"),
        pytest.param({"baseline": TENTH | {"malformed": 0.5}}, None, id="other"),
        pytest.param({"baseline": TENTH, "agents": {"a": {"baseline": "random", "count": 1}}}, "floor", id="group"),
    ],
)
def test_a_floor_is_known_by_all_of_its_parameters(played: Mapping[str, Any], end: str | None) -> None:
    spec = {"headline": {"metric": "solved", "floor": TENTH}}
    own = run("simulated", ZEROS, spec, policies_only=True, identity={"spec": played})
    board = standings([replace(own, project=find())])
    assert [row.end for row in board.rows] == [end]
    other = played.get("baseline") == TENTH | {"malformed": 0.5}
    assert any("though of its name" in note for note in board.notes) == other


def test_the_correction_counts_the_pairs_that_have_a_test() -> None:
    empty = run("empty", [None] * 20)
    board = standings([run("a", ONES), run("b", ZEROS), empty])
    assert any("Holm's correction for 1 of 3 pairs of models; the others cannot be tested" in n for n in board.notes)


def test_published_figures_of_the_whole_benchmark_stand_among_the_models() -> None:
    records = (
        PublishedFigure({"model": "Paper"}, "solved", 0.8, 0.1, 27, overall=True),
        PublishedFigure({"model": "Paper", "kind": 0}, "solved", 0.1),
        PublishedFigure({"model": "Paper", "kind": 1}, "solved", 0.1),
        PublishedFigure({"model": "Other"}, "score", 0.2, overall=True),
    )
    paper = PublishedTable("paper/t", "Paper, Table 1", "T", records, warnings=("Mind this.",))
    table = TableSpec.parse({"title": "T", "rows": "model", "metrics": "solved", "published": "paper/t"})
    board = standings([replace(run("a", HALF), tables=[table])], published=[paper])
    assert [(row.rank, row.model, row.cell.value) for row in board.rows] == [("–", "Paper", 0.8), ("1", "a", 0.5)]
    lines = render(board.table(), "text").splitlines()
    assert lines[4].split() == ["–", "Paper", "†", "80%", "27", "–", "–", "–"]
    assert board.notes[-2:] == ["† published: Paper, Table 1; not run here.", "† Mind this."]
    assert [row.names for row in overall([board]).rows] == [("a",)]
    assert [row.model for row in standings([run("a", HALF)], published=[paper]).rows] == ["a"]


def test_only_the_headlines_episodes_count() -> None:
    spec = {"headline": {"metric": "solved", "where": {"kind": 0}, "title": "Even"}}
    board = standings([run("half", HALF, spec)])
    assert (board.rows[0].cell.value, board.rows[0].cell.n) == (1.0, 10)
    assert board.notes[0] == "Even ↑: solved, higher is better, with its 95 % interval over n episodes with kind 0."


def test_a_spec_without_a_headline_is_ranked_by_its_first_metric() -> None:
    board = standings([run("a", ONES, {"tables": [{"title": "T", "rows": "model", "metrics": ["score", "solved"]}]})])
    assert (board.headline.metric, board.rows[0].rank) == ("score", "1")
    assert "The spec declares no `headline:`; its first metric stands for it." in board.notes


def test_costs_are_shown_where_there_are_prices() -> None:
    priced = replace(run("a", ONES), prices={"a": Price(0.5, 1.0)})
    table = standings([priced, run("b", ONES)]).table()
    assert table.columns[-1].names == ("USD an episode",)
    assert [row.cells[-1].value for row in table.rows] == [2.5, None]
    assert any(note.startswith("USD an episode: mean") and "(a 0.5 in, 1 out)" in note for note in table.notes)
    assert "No USD for b: neither the spec's `prices:` nor your `prices.yaml` has a price." in table.notes
    cheap = standings([replace(run("a", ONES), prices={"a": Price(0.00001, 0.00002)})]).table()
    assert " 0.000050\n" in render(cheap, "text")


def test_counts_and_costs_have_no_error_of_their_own() -> None:
    board = standings([replace(run("a", HALF), prices={"a": Price(1, 1)}), run("b", ONES)])
    tidy = board.table().long()
    assert {row["metric"]: row["stderr"] is None for row in tidy if row["model"] == "a"} == {
        "solved": False, "n": True, "failed": True, "missing": True, "parse_failures": False, "usd": True,
    }  # fmt: skip


def test_what_is_one_observation_is_counted_and_said() -> None:
    table = standings([run("a", ZEROS, {**SPEC, "cluster": "kind"})]).table()
    assert [(column.names[0], cell.value) for column, cell in zip(table.columns, table.rows[0].cells, strict=True)][
        1:3
    ] == [("n", 20), ("clusters", 2)]
    assert any("treat episodes with equal kind as one observation (clustered)" in note for note in table.notes)
    plain = standings([run("a", ZEROS)]).table()
    assert "clusters" not in str(plain)


def test_the_headline_does_not_stand_beside_itself() -> None:
    spec = {"headline": {"metric": "solved", "also_show": ["score", "solved"]}}
    assert standings([run("a", HALF, spec)]).headline.also_show == ("score",)


def test_episodes_that_reached_a_limit_have_a_column() -> None:
    stopped = run("a", HALF)
    stopped = replace(stopped, scores=[replace(s, limited=i < 3) for i, s in enumerate(stopped.scores)])
    table = standings([stopped, run("b", ONES)]).table()
    assert [column.names[0] for column in table.columns][1:5] == ["n", "failed", "missing", "limited"]
    assert {row.key["model"]: row.cells[4].value for row in table.rows} == {"a": 3, "b": 0}


def test_clusters_of_the_spec_decide_how_sure_a_rank_is() -> None:
    spec = {**SPEC, "cluster": "kind"}
    assert ranks(run("half", HALF), run("zeros", ZEROS)) == {"half": "1", "zeros": "2"}
    assert ranks(run("half", HALF, spec), run("zeros", ZEROS, spec)) == {"half": "1–2", "zeros": "1–2"}


values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=8)


@given(st.lists(values, min_size=1, max_size=5))
def test_rank_intervals_hold_the_plain_rank(samples: list[list[float]]) -> None:
    board = standings([run(f"m{i}", sample) for i, sample in enumerate(samples)])
    for row in board.rows:
        low, high = row.ranks
        ahead = sum(other.cell.value > row.cell.value for other in board.rows)
        assert 1 <= low <= 1 + ahead and low <= high <= len(samples)
        assert high >= 1 + ahead
    shuffled = standings([run(f"m{i}", sample) for i, sample in reversed([*enumerate(samples)])])
    assert {row.model: row.ranks for row in shuffled.rows} == {row.model: row.ranks for row in board.rows}


# ------------------------------------------------------------------------------- all benchmarks


def boards() -> list[Any]:
    lower = {"headline": {"metric": "solved", "better": "lower", "title": "Stuck"}}
    ends: list[Any] = [("floor", run("random", FIFTH))]
    first = standings([run("a", ONES), run("b", HALF), run("c", ZEROS)], ends, name="one")
    ends = [("floor", run("random", NEARLY, lower)), ("ceiling", run("clever", FIFTH, lower))]
    second = standings([run("a", HALF, lower), run("b", ZEROS, lower), run("d", ONES, lower)], ends, name="two")
    return [first, second]


def test_one_page_over_all_benchmarks() -> None:
    table = overall(boards())
    assert [column.names for column in table.columns] == [
        ("one", "Solved ↑"),
        ("two", "Stuck ↓"),
        ("Average ↑", ""),
    ]
    found = {row.names[0]: [cell.value for cell in row.cells] for row in table.rows}
    assert found == {
        "a": [1.0, 0.5, pytest.approx((1 + 0.5) / 2)],
        "b": [0.5, 0.0, pytest.approx((0.375 + 1) / 2)],
        "c": [0.0, None, None],
        "d": [None, 1.0, None],
        "Floor": [0.2, 0.8, 0.0],
        "Ceiling": [None, 0.2, None],
    }
    assert [[cell.best for cell in row.cells] for row in table.rows][:2] == [[True, False, True], [False, True, False]]
    assert "–: not run." in table.notes
    assert all(0 <= x <= 1 for row in table.rows for x in (row.cells[2].low, row.cells[2].high) if x is not None)
    lines = render(table, "text").splitlines()
    assert lines[-5].split()[:2] == ["c", "0%"] or any(line.split()[:2] == ["c", "0%"] for line in lines)


def test_without_floors_there_is_no_average_and_a_note_says_which_are_lacking() -> None:
    two = [standings([run("a", HALF), run("b", ONES)], name=name) for name in ("one", "two")]
    table = overall(two)
    assert not any(column.overall for column in table.columns)
    [note] = [note for note in table.notes if note.startswith("No average")]
    assert "one has no floor here; two has no floor here" in note and "--with_baselines" in note


def test_benchmarks_in_which_all_episodes_agree_add_their_uncertainty_to_the_average() -> None:
    ends: list[Any] = [("floor", run("nothing", ZEROS))]
    two = [
        standings([run("a", values), run("b", HALF)], ends, name=name) for name, values in (("x", ZEROS), ("y", ONES))
    ]
    row = next(row for row in overall(two).rows if row.names == ("a",))
    assert row.cells[-1].value == 0.5
    reach = (two[0].rows[-1].cell.high or 0) / 2
    assert (row.cells[-1].low, row.cells[-1].high) == (pytest.approx(0.5 - reach), pytest.approx(0.5 + reach))
    assert reach > 0.05
    sure = [standings([run("a", ZEROS), run("b", HALF)], ends, name=name) for name in "xyz"]
    low, high = next((r.cells[-1].low, r.cells[-1].high) for r in overall(sure).rows if r.names == ("a",))
    assert low == 0 and 0.05 < high < 0.16


def test_the_page_over_all_says_why_there_is_no_number_or_average() -> None:
    broken = run("a", [None] * 5)
    twice = [run("b", HALF, run="r1"), run("b", HALF, run="r2")]
    warm = {"generation_kwargs": {"temperature": 1}}
    second = standings([run("b", HALF, **warm), replace(broken, run={**broken.run, **warm})], name="two")
    table = overall([standings([*twice, run("a", ONES)], name="one"), second])
    assert "–, though run: a in two: all episodes failed or have no number." in table.notes
    assert any(note.startswith("Run more than once: b in one. Each run has a row of its own") for note in table.notes)
    assert any(note.endswith("one: none; two: temperature=1.") for note in table.notes)
    assert not any("generation_kwargs" in note for note in overall(boards()).notes)


def test_players_that_know_the_answer_are_marked_on_the_page_over_all() -> None:
    informed = run("a", HALF)
    informed = replace(informed, scores=[replace(s, uses_ground_truth=True) for s in informed.scores])
    table = overall([standings([informed], name="one"), standings([run("b", HALF)], name="two")])
    assert any(note.startswith("‡ simulated") for note in table.notes)


def test_numbers_without_a_scale_have_no_average() -> None:
    tokens = standings([run("a", ONES, {"headline": {"metric": "parse_failures", "better": "lower"}})], name="two")
    table = overall([boards()[0], tokens])
    assert [column.names[0] for column in table.columns] == ["one", "two"]
    assert any(note.startswith("No average") for note in table.notes)


@pytest.mark.parametrize(
    ("form", "best"),
    [
        ("markdown", "**100% \\[84%, 100%\\]**"),
        ("latex", r"\textbf{100\%"),
        ("html", "<strong>100% [84%, 100%]</strong>"),
    ],
)
def test_the_best_is_bold_in_every_format_that_has_bold(form: str, best: str) -> None:
    table = boards()[0].table()
    output = page("t", [table]) if form == "html" else render(table, form)
    assert output.count(best) == 1
    if form == "latex":
        assert [output.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
        assert r"$\uparrow$" in output and "↑" not in output


def test_json_and_csv_hold_numbers_and_ranks() -> None:
    table = boards()[0].table()
    data = json.loads(render(table, "json"))
    assert data["rows"][0]["key"] == {"rank": "1", "model": "a"}
    assert data["rows"][0]["cells"][0]["best"] is True
    head, first, *_ = render(table, "csv").splitlines()
    assert head.split(",")[:3] == ["rank", "model", "metric"]
    assert first.split(",")[:4] == ["1", "a", "solved", "1.0"]


def test_long_names_are_cut_for_readers_and_whole_in_data() -> None:
    names = ["m" * 300 + end for end in ("", "x" + "m" * 200, "y" + "m" * 200)]
    table = standings([run(name, values) for name, values in zip(names, (ONES, HALF, ZEROS), strict=True)]).table()
    for form in ("text", "markdown", "latex"):
        words = set(re.findall("m+…[m0-9]+", render(table, form).replace("*", "")))
        assert len(words) == 3 and max(map(len, words)) == 60
    assert all(name in render(table, form) for name in names for form in ("csv", "json"))


# -------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"metric": "sloved"}, "metrics: unknown metric 'sloved'. Did you mean solved?"),
        ({"metric": "solved", "also_show": ["tokens"]}, "metrics: unknown metric 'tokens'."),
        ({"metric": "solved", "where": {"kin": 1}}, "where: unknown label 'kin'. Did you mean kind?"),
        ({"metric": "solved", "where": {"kind": 3}}, "where: kind is never '3'."),
    ],
)
def test_mistakes_in_a_headline_are_reported(entry: dict[str, Any], problem: str) -> None:
    (found,) = check_headline(entry, {"kind": [0, 1]}, METRICS)
    assert found.startswith(problem)


def test_ranks_of_many_models_take_every_pair() -> None:
    levels = [[float(i < k) for i in range(30)] for k in (2, 12, 22, 30)]
    found = ranks(*(run(f"m{i}", level) for i, level in enumerate(levels)))
    assert found == {"m3": "1", "m2": "2", "m1": "3", "m0": "4"}


def test_a_mean_of_conditions_is_tested_as_one() -> None:
    spec = {"headline": {"metric": "solved", "aggregate": "mean_of_conditions"}}

    def two(model: str, small: float, large: float) -> RunScores:
        plain = run(model, [small] * 6 + [large] * 30, spec)
        scores = [replace(s, id=f"{i >= 6}/{i}/0", condition=str(i >= 6)) for i, s in enumerate(plain.scores)]
        return replace(plain, scores=scores)

    # Pooled a is ahead (0.48 to 0.42); as the mean of both conditions b is (0.45 to 0.7).
    found = standings([two("a", 0.4, 0.5), two("b", 1.0, 0.4)])
    assert [(row.model, row.rank) for row in found.rows] == [("b", "1"), ("a", "2")]
    assert found.rows[0].cell.value == pytest.approx(0.7)
