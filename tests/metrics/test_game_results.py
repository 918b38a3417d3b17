"""`games/results`: who played and what each got, and what is no game."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.api import Episode
from harness.config.project import builtin


def results(returns: Any, roles: dict[str, str] | None = None, of: str = "returns") -> Any:
    metric = builtin().load("metrics", "games/results")(of=of)
    assert metric.needs == (of,)
    return metric, metric.measure(Episode("c/k/0", "c", "k", 0, {}, roles or {}, [], grade={of: returns}))


def test_a_record_has_every_seat_with_its_contestant() -> None:
    _, record = results({"P-0": 1, "P-1": -1.5, "P-2": 0}, {"P-0": "A", "P-1": "B"})
    assert record == [["A", 1.0], ["B", -1.5], ["default", 0.0]]
    assert results({"P-0": 3}, of="coins")[1] == [["default", 3.0]]


@pytest.mark.parametrize("returns", [None, {}, {"P-0": 1, "P-1": None}, {"P-0": math.nan}, {"P-0": True}, {"P-0": "1"}])
def test_without_a_number_for_every_seat_there_is_no_game(returns: Any) -> None:
    assert results(returns)[1] is None


def test_a_grade_that_is_no_mapping_is_named() -> None:
    with pytest.raises(ValueError, match=r"grade .returns. must map agents to numbers, found 0\.5"):
        results(0.5)


def test_as_a_number_it_is_the_share_of_games_with_one_winner() -> None:
    metric, _ = results(None)
    games = [[["A", 1.0], ["B", 0.0]], [["A", 1.0], ["B", 1.0]], [["A", 2.0], ["A", 0.0], ["B", 1.0]], [["A", 1.0]]]
    assert (metric.aggregate(games).value, metric.aggregate(games).n) == (pytest.approx(1 / 3), 3)
    assert metric.aggregate([[["A", 1.0]], "hostile", [["A"]]]).value is None
