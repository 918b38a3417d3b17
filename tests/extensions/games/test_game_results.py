"""`games/results`: who played and what each got, and what is no game."""

from __future__ import annotations

import math
from typing import Any

import pytest

from harness.api import Episode, Move, Outcome
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


def turns(moves: list[Move], invalid: Any = None) -> Any:
    """What is counted of the seats of a game with these moves."""
    outcome = Outcome(facts={} if invalid is None else {"invalid": invalid})
    grade = {"returns": {move.agent: 0 for move in moves}}
    episode = Episode("c/k/0", "c", "k", 0, {}, {}, [[move] for move in moves], outcome, grade)
    record = builtin().load("metrics", "games/results")().measure(episode)
    return [tuple(seat[2][key] for key in ("turns", "substituted", "illegal", "failed")) for seat in record]


def test_a_seat_has_counts_of_the_turns_that_were_not_its_own() -> None:
    moves = [Move("P", "act", "BET"), Move("P", "act", None, "?", "parse"), Move("P", "act", None, "?", "refused")]
    moves += [Move("P", "act", {"act": "PASS", "message": "hi"}, "?", "parse"), Move("P", "act", None, "?", "limit")]
    assert turns(moves) == [(5, 4, 2, 2)]
    assert turns([*moves, Move("P", "talk", None, "?", "parse"), Move("Q", "act", "BET")]) == [
        (5, 4, 2, 2),
        (1, 0, 0, 0),
    ]
    assert turns([Move("P", "vote", None, "?", "parse"), Move("P", "vote", 1)]) == [(2, 1, 1, 0)]


def test_actions_that_the_environment_calls_invalid_are_illegal() -> None:
    texts = [Move("P", "act", "[fold]"), Move("P", "act", "hm"), Move("P", "act", None, "?", "refused")]
    assert turns(texts, {"P": 2}) == [(3, 1, 1, 1)]  # the empty text of a failed request is one of them
    assert turns(texts, {"P": 0}) == [(3, 1, 0, 1)]
    assert turns(texts, {"P": 99, "Q": 1}) == [(3, 1, 2, 1)]
    assert turns(texts, {"P": "many"}) == turns(texts, 7) == [(3, 1, 0, 1)]
