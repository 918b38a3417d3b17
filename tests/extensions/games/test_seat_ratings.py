"""Ratings of tournaments: what a seat and a deal are worth, several games, and wins that go round in a circle."""

from __future__ import annotations

import itertools
import math
import random
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy
import pytest

from harness.config import spec
from harness.config.project import builtin
from harness.config.proposals import complete
from harness.extensions.games.tournaments.cycles import alpha_rank
from harness.extensions.games.tournaments.ratings_model import ELO
from harness.tables import CorpusRecord, EpisodeScore, Table, TableSpec, build
from tests.extensions.games.test_table_ratings import METRICS, shown
from tests.extensions.games.test_tournaments import data

TRUE = {"A": 1.0, "B": 1 / 3, "C": -1 / 3, "D": -1.0}


def tournament(
    seed: int,
    advantage: float = 0.0,
    luck: float = 0.0,
    deals: int = 20,
    rotated: bool = True,
    true: dict[str, float] = TRUE,
    game: str = "",
) -> list[EpisodeScore]:
    """Every pair plays every deal, from both sides; the first seat is better by `advantage`, and by a deal's luck."""
    rng = random.Random(seed)
    dealt = [rng.gauss(0, luck) for _ in range(deals)]
    scores = []
    for deal, pair in itertools.product(range(deals), itertools.combinations(true, 2)):
        for one, other in [pair, pair[::-1]] if rotated else [pair]:
            odds = math.exp(true[one] - true[other] + advantage + dealt[deal])
            won = float(rng.random() < odds / (1 + odds))
            scores.append(episode(f"d{deal}", " vs ".join(pair), [(one, won), (other, 1 - won)], game))
    return scores


def episode(case: str, pairing: str, seats: Sequence[tuple[str, float]], game: str = "") -> EpisodeScore:
    first = seats[0][0]
    condition = f"{game and f'game={game},'}pairing={pairing},first={first}"
    labels = {"model": "pool", "pairing": pairing, "first": first, **({"game": game} if game else {})}
    record = CorpusRecord([list(seat) for seat in seats])
    return EpisodeScore(f"{condition}/{case}/0", condition, labels, {"games/results": record})


def made(scores: Sequence[EpisodeScore], **entry: Any) -> Table:
    return build(TableSpec.parse({"title": "T", "kind": "rating", "of": "games/results", **entry}), scores, METRICS)


def looked(scores: Callable[[int], list[EpisodeScore]], count: int, **entry: Any) -> tuple[float, float]:
    """(Share of true strengths in their intervals, by how much differences are stretched), over so many tournaments."""
    covered, stretched = 0, 0.0
    for seed in range(count):
        for row in made(scores(seed), **entry).rows:
            cell, true = row.cells[0], TRUE[row.key["contestant"]]
            covered += (cell.low or -math.inf) <= 1500 + ELO * true <= (cell.high or math.inf)
            stretched += (cell.value - 1500) / ELO * true / sum(x * x for x in TRUE.values())
    return covered / count / len(TRUE), stretched / count


@pytest.mark.parametrize(("advantage", "luck"), [(2.0, 0.0), pytest.param(1.0, 2.0, marks=pytest.mark.slow)])
def test_intervals_cover_true_strengths_also_where_seats_and_deals_matter(advantage: float, luck: float) -> None:
    """`benchmarks/run.py ratings_seats` has more of this; the seeds are fixed."""
    count = 3 if not luck else 12
    covered, stretched = looked(lambda seed: tournament(seed, advantage, luck), count)
    assert covered >= 0.9 and 0.9 < stretched < 1.15
    covered, stretched = looked(lambda seed: tournament(seed, advantage, luck), count, seats=False)
    assert covered < 0.7 and stretched < 0.75, "without the terms all differences shrink"


def test_a_note_says_what_seats_and_deals_are_worth() -> None:
    plain = " ".join(made(tournament(1, advantage=1.5, deals=4)).notes)
    assert "Seats are worth +1" in plain and "points, in their order (95 % intervals): ratings" in plain
    lucky = " ".join(made(tournament(1, luck=2.0)).notes)
    assert "The luck of the deal makes a difference between two seats of ±" in lucky


@pytest.mark.parametrize(
    ("advantage", "luck"), [(1.0, 0.0), (0.0, 0.0), pytest.param(1.0, 1.0, marks=pytest.mark.slow)]
)
def test_intervals_of_seats_cover_what_they_are_worth(advantage: float, luck: float) -> None:
    covered = 0
    for seed in range(20):
        notes = " ".join(made(tournament(seed, advantage, luck, deals=20 if luck else 8)).notes)
        low, high = re.findall(r"Seats are worth \S+ \[(\S+), (\S+)\]", notes)[0]
        covered += float(low) <= ELO * advantage / 2 <= float(high)
    assert covered >= 17


def test_seats_of_few_observations_have_no_interval() -> None:
    """One deal, in which wins go round."""
    games = [
        episode("d", f"{one} vs {other}", seats)
        for one, other in ("AB", "BC", "CA")
        for seats in ([(one, 1.0), (other, 0.0)], [(other, 0.0), (one, 1.0)])
    ]
    assert "(too few observations for intervals)" in " ".join(made(games).notes)


def test_seats_that_cannot_be_told_from_who_sat_in_them_have_no_term() -> None:
    """Of two, one always sat first."""
    scores = tournament(1, true={"A": 0.5, "B": -0.5}, rotated=False)
    table = made(scores)
    assert any(note.startswith("No term for seats: the games cannot tell") for note in table.notes)
    assert shown(table) == shown(made(scores, seats=False))
    assert not any("Seats are worth" in note for note in table.notes)


def test_who_does_the_same_again_in_the_same_deal_is_not_lucky() -> None:
    """Players without chance repeat themselves: four times the same games say what the games once say."""
    once = tournament(3, advantage=1.0, deals=6, true={"A": 1.0, "B": 0.0, "C": -1.0})
    again = [one for one in once for _ in range(4)]
    ratings = [{name: one["rating"] for name, one in shown(made(scores)).items()} for scores in (once, again)]
    assert ratings[0] == pytest.approx(ratings[1], abs=15)
    cells = [{row.key["contestant"]: row.cells[0] for row in made(scores).rows}["A"] for scores in (once, again)]
    widths = [cell.high - cell.low for cell in cells]
    assert widths[1] == pytest.approx(widths[0], rel=0.15)


def test_every_game_of_a_matrix_weighs_the_same_and_a_note_says_so() -> None:
    """A wins at go, of which there are many games, and B at chess."""
    go = [episode(f"g{i}", "A vs B", [("A", float(i % 5 > 0)), ("B", 0.5)], "go") for i in range(100)]
    chess = [episode(f"c{i}", "A vs B", [("A", float(i % 5 == 0)), ("B", 0.5)], "chess") for i in range(10)]
    table = made([*go, *chess])
    assert shown(table)["A"]["rating"] == pytest.approx(1500, abs=1)
    assert any("Games of 2 conditions weigh as much as each other" in note for note in table.notes)
    apart = made([*go, *chess], rows="game")
    by_game = {tuple(row.names): row.cells[0].value for row in apart.rows}
    assert by_game["go", "A"] > 1600 and by_game["chess", "A"] < 1400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_alpha_rank_is_that_of_openspiel(seed: int) -> None:
    from open_spiel.python.egt import alpharank  # takes seconds

    shares = numpy.random.default_rng(seed).integers(0, 5, (4, 4)) / 4
    shares = numpy.where(numpy.tri(4, k=-1, dtype=bool), 1 - shares.T, shares)
    numpy.fill_diagonal(shares, 0.5)
    _, _, expected, _, _ = alpharank.compute([shares], use_inf_alpha=True, inf_alpha_eps=0.01)
    assert alpha_rank(shares) == pytest.approx(expected, abs=1e-8)


def test_wins_that_go_round_are_said_with_alpha_rank() -> None:
    games = [
        episode(f"{one}{i}", f"{one} vs {other}", seats if i % 2 else seats[::-1])
        for one, other in ("AB", "BC", "CA", "AD", "BD", "CD")
        for i in range(12)
        for seats in [[(one, float(i % 6 < 5)), (other, 0.5)]]
    ]
    [note] = [note for note in made(games).notes if note.startswith("Wins go round in a circle")]
    assert "(A, B, C: each won more than half against the next)" in note
    assert "33 %" in note or "32 %" in note
    assert not [note for note in made(tournament(1, deals=40)).notes if note.startswith("Wins go round")]


def test_a_tournament_of_several_games_has_ratings_of_each_and_over_all_by_default() -> None:
    written = data(matrix={"stake": [1, 9]})
    written["task"] = {**written["task"], "draw": {"stake": "${stake}"}}
    tables = complete(spec.parse(written, builtin()), builtin()).tables
    rated = [(table["title"], table.get("rows")) for table in tables if table.get("kind") == "rating"]
    assert rated == [
        ("dice: ratings", ["stake"]),
        ("dice: ratings over all of stake, with equal weights", None),
    ]
    one = complete(spec.parse(data(), builtin()), builtin()).tables
    assert [table.get("rows") for table in one if table.get("kind") == "rating"] == [None]


def test_intervals_over_games_of_unequal_size_are_those_of_what_the_smaller_one_says() -> None:
    """With equal weights the error of the mean of two games is mostly that of the smaller one, with luck or without."""
    many, few = (
        [replace(score, id=f"{score.condition}/{game}-{score.case}/0") for score in tournament(2, deals=n, game=game)]
        for n, game in ((40, "go"), (5, "chess"))
    )
    for luck in (True, False):
        alone, both, large = (
            made(scores, **({} if luck else {"seats": False})).rows for scores in (few, [*many, *few], many)
        )
        widths = [
            statistics.fmean(row.cells[0].high - row.cells[0].low for row in rows) for rows in (alone, both, large)
        ]
        assert widths[2] < widths[1] < widths[0] and widths[1] > 0.4 * widths[0]
