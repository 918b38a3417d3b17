"""Runs of one spec merge into one table; others are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.api import Episode, Metric
from harness.api.errors import DataError
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.tables import EpisodeScore, Table, TableSpec
from harness.tables.published_figures import PublishedFigure, PublishedTable


class Solved(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


ENTRIES = (
    {"title": "By problem", "rows": "model", "columns": "problem", "metrics": "solved"},
    {"title": "By size", "rows": "problem", "columns": "size", "metrics": "solved", "published": "paper/t"},
)
TABLES = [TableSpec.parse(entry) for entry in ENTRIES]


def run(name: str, *values: float, model: str = "m", digest: str = "d" * 64, **meta: Any) -> RunScores:
    scores = [
        EpisodeScore(f"c/{i}/0", "c", {"model": model, "problem": "p", "size": 4}, {"solved": value})
        for i, value in enumerate(values)
    ]
    facts = {"schema": 1, "run": name, "spec": "agentsnet", "spec_digest": digest, "model": model, **meta}
    return RunScores(facts, scores, TABLES, {"solved": Solved()})


def values(table: Table) -> dict[tuple[str, ...], list[float | None]]:
    return {row.names: [cell.value for cell in row.cells] for row in table.rows}


def board(*runs: RunScores, published: Sequence[PublishedTable] = ()) -> list[Table]:
    return leaderboard(runs, published)


def test_one_row_a_model_in_the_order_given() -> None:
    first, second = board(run("r2", 1, 0, model="b"), run("r1", 1, 1, model="a"))
    assert list(values(first).items()) == [(("b",), [0.5]), (("a",), [1.0])]
    assert values(second) == {("b", "p"): [0.5], ("a", "p"): [1.0]}
    assert (first.notes, second.notes) == ((), ())


def test_one_run_gives_its_own_tables() -> None:
    assert [values(table) for table in board(run("r", 1, 0))] == [{("m",): [0.5]}, {("p",): [0.5]}]


def test_the_same_model_twice_is_distinguished_by_run() -> None:
    first, _ = board(run("r1", 1), run("r2", 0), run("r3", 0, model="other"))
    assert values(first) == {("m (r1)",): [1.0], ("m (r2)",): [0.0], ("other",): [0.0]}


def test_differing_generation_settings_are_reported_and_equal_ones_are_not() -> None:
    one = run("r1", 1, generation_kwargs={"temperature": 0, "top_p": 1.0, "stop": ["x"]})
    two = run("r2", 1, model="b", generation_kwargs={"temperature": 0.7, "top_p": 1.0})
    for table in board(one, two):
        assert table.notes[-1] == (
            'The runs differ in generation_kwargs. r1: stop=["x"], temperature=0; r2: stop=unset, temperature=0.7.'
        )
    third = run("r3", 1, model="c", generation_kwargs=one.run["generation_kwargs"])
    assert 'r1, r3: stop=["x"], temperature=0; r2: stop=unset' in board(one, two, third)[0].notes[-1]
    assert board(one, run("r3", 1, model="b", generation_kwargs=one.run["generation_kwargs"]))[0].notes == ()
    assert board(run("r1", 1), run("r2", 1, generation_kwargs=None))[0].notes == ()


def test_published_rows_can_stand_below() -> None:
    paper = PublishedTable(
        "paper/t", "Paper, Table 1", "T", (PublishedFigure({"model": "X", "problem": "p", "size": 4}, "solved", 0.1),)
    )
    _, second = board(run("r1", 1), run("r2", 0, model="b"), published=[paper])
    assert values(second) == {("m", "p"): [1.0], ("b", "p"): [0.0], ("X", "p"): [0.1]}


def test_models_of_different_runs_can_be_tested_against_each_other() -> None:
    entry = {"title": "T", "rows": "problem", "metrics": "solved"}
    table = TableSpec.parse({**entry, "compare": {"label": "model", "base": "a", "with": "b"}})
    runs = [replace(run("r1", 0, 1, model="a"), tables=[table]), replace(run("r2", 1, 1, model="b"), tables=[table])]
    both, alone = board(*runs)[0], board(runs[0])[0]
    assert values(both) == {("p",): [0.5, 1.0, 0.5, 1.0, 1.0, None, 2]}
    assert values(alone) == {("p",): [*[None] * 6, 0]}
    assert "No episode has model 'b'. Available: a." in alone.notes


def test_code_of_a_part_that_does_not_count_is_left_alone() -> None:
    codes = ({"play": {"a.py": "1"}, "later": {"b.py": name}, "task": None} for name in "xy")
    assert len(board(*(run(f"r{i}", 1, code=code) for i, code in enumerate(codes)))) == 2


def test_what_cannot_be_compared_is_named() -> None:
    with pytest.raises(
        DataError, match=r"run odd cannot be compared with r1.*digest eeeeeeeeeeee; agentsnet, digest ddd"
    ):
        board(run("r1", 1), run("r2", 1), run("odd", 1, digest="e" * 64))
    with pytest.raises(DataError, match="run r1 does not say which spec it ran"):
        board(run("r1", 1, digest=""))
    with pytest.raises(DataError, match="run r1 is given 2 times"):
        board(run("r1", 1), run("r1", 1))
    with pytest.raises(DataError, match="at least one run"):
        board()
