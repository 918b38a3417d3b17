"""Tables of games: ratings against independent programs, what has no rating and why, cross-play, self-play."""

from __future__ import annotations

import csv
import io
import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import choix
import numpy
import pytest
from openskill.models import PlackettLuce

from harness.api.errors import SpecError
from harness.cli import main
from harness.config.project import builtin
from harness.extensions.charts.page_html import page
from harness.extensions.games.tournaments.ratings_model import ELO
from harness.report import FORMATS, render
from harness.tables import CorpusRecord, EpisodeScore, Table, TableSpec, build, check

METRICS = {
    "games/results": builtin().load("metrics", "games/results")(),
    "score": builtin().load("metrics", "score")(),
}
Seats = Sequence[tuple[str, float]]
BEST = ("A", 1.0)


def episodes(games: Iterable[tuple[str, Seats | None]], **labels: Any) -> list[EpisodeScore]:
    """(case, seats) → an episode each."""
    return [
        EpisodeScore(
            f"{i}/{case}/0",
            str(i),
            {"model": "pool", **labels},
            {"games/results": None if seats is None else CorpusRecord([list(seat) for seat in seats]), "score": 1.0},
        )
        for i, (case, seats) in enumerate(games)
    ]


def made(scores: Sequence[EpisodeScore], **entry: Any) -> Table:
    return build(TableSpec.parse({"title": "T", "kind": "rating", "of": "games/results", **entry}), scores, METRICS)


def shown(table: Table) -> dict[str, dict[str, float | None]]:
    """Contestant → statistic or opponent → number, in the order of the rows."""
    names = [next(iter(column.key.values())) for column in table.columns]
    return {
        row.key["contestant"]: {name: cell.value for name, cell in zip(names, row.cells, strict=True)}
        for row in table.rows
    }


def strengths(table: Table) -> dict[str, float]:
    """Ratings as log-strengths whose mean is 0."""
    return {name: (numbers["rating"] - 1500) / ELO for name, numbers in shown(table).items()}


def drawn(
    true: Mapping[str, float], count: int, sides: int = 2, ties: float = 0.0, seed: int = 0
) -> list[tuple[str, Seats]]:
    """Random games between random contestants, by the model of Plackett and Luce; some are rounded into ties."""
    rng = random.Random(seed)
    games: list[tuple[str, Seats]] = []
    for i in range(count):
        playing = rng.sample(sorted(true), sides)
        scores = [(name, true[name] - math.log(-math.log(rng.random()))) for name in playing]
        rounded = rng.random() < ties
        games.append((f"k{i}", [(name, float(round(x)) if rounded else x) for name, x in scores]))
    return games


TRUE = {"A": 0.9, "B": 0.3, "C": -0.3, "D": -0.9}


# --------------------------------------------------------------- against programs of other authors


@pytest.mark.slow
def test_ratings_and_errors_of_two_are_those_of_a_logistic_regression() -> None:
    games = drawn(TRUE, 300)
    table = made(episodes((f"k{i // 2}", seats) for i, (_, seats) in enumerate(games)), cluster="case")
    places = {name: i for i, name in enumerate(sorted(TRUE))}
    design, won = numpy.zeros((300, 4)), []
    for line, (_, ((one, more), (other, less))) in zip(design, games, strict=True):
        line[places[one]], line[places[other]] = 1, -1
        won.append(float(more > less))
    import statsmodels.api  # takes seconds

    model = statsmodels.api.GLM(won, design[:, 1:], statsmodels.api.families.Binomial())
    groups = [i // 2 for i in range(300)]
    fitted = model.fit(cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}, tol=1e-12)
    contrast = numpy.vstack([numpy.zeros(3), numpy.eye(3)]) - 0.25
    expected = contrast @ fitted.params
    errors = numpy.sqrt(numpy.diag(contrast @ fitted.cov_params() @ contrast.T) * 150 / 149)
    found = strengths(table)
    assert [found[name] for name in places] == pytest.approx(list(expected), abs=1e-6)
    cells = {row.key["contestant"]: row.cells[0] for row in table.rows}
    halves = [(cells[name].high - cells[name].low) / 2 / ELO for name in places]
    assert halves == pytest.approx(list(errors * 1.976), rel=1e-3)  # Student's t with 149 degrees of freedom
    assert list(found) == sorted(found, key=lambda name: -found[name])  # the best first


@pytest.mark.slow
@pytest.mark.parametrize("sides", [2, 4])
def test_rankings_have_the_strengths_that_choix_finds(sides: int) -> None:
    games = drawn(TRUE, 200, sides)
    found = strengths(made(episodes(games), model="plackett_luce"))
    names = sorted(TRUE)
    rankings = [[names.index(name) for name, _ in sorted(seats, key=lambda seat: -seat[1])] for _, seats in games]
    expected = choix.opt_rankings(4, rankings, tol=1e-9)
    assert [found[name] for name in names] == pytest.approx(list(expected - expected.mean()), abs=1e-4)


def test_with_draws_points_and_draws_are_what_the_model_of_davidson_expects() -> None:
    games = drawn(TRUE, 400, ties=0.7)
    found = strengths(made(episodes(games)))
    draws = sum(seats[0][1] == seats[1][1] for _, seats in games)
    pairs = [(found[seats[0][0]], found[seats[1][0]]) for _, seats in games]

    def expected(nu: float) -> list[tuple[float, float]]:
        """(The first's points, the probability of a draw) of each game (Davidson, 1970, equation 2.4)."""
        games = []
        for one, other in pairs:
            parts = math.exp(one), math.exp(other), nu * math.exp((one + other) / 2)
            games.append(((parts[0] + parts[2] / 2) / sum(parts), parts[2] / sum(parts)))
        return games

    low, high = 0.01, 10.0
    for _ in range(60):  # the ν that expects as many draws as there are
        middle = (low + high) / 2
        low, high = (middle, high) if sum(draw for _, draw in expected(middle)) < draws else (low, middle)
    points = dict.fromkeys(TRUE, 0.0)
    for (_, ((one, more), (other, less))), (share, _) in zip(games, expected(low), strict=True):
        seen = (1 + (more > less) - (more < less)) / 2
        points[one] += seen - share
        points[other] -= seen - share
    assert list(points.values()) == pytest.approx([0.0] * 4, abs=1e-5)


def test_a_tie_of_three_is_a_choice_of_three() -> None:
    """The model with ties has, for every contestant and every size of tie, what the games have (Firth et al., 2019)."""
    names = "ABCD"
    found = strengths(made(episodes(drawn(TRUE, 300, 4, ties=1.0, seed=5)), model="plackett_luce"))
    assert sorted(found, key=lambda name: -found[name]) == list(names)
    same = strengths(made(episodes(drawn(TRUE, 300, 2, ties=1.0, seed=5)), model="plackett_luce"))
    assert same == pytest.approx(strengths(made(episodes(drawn(TRUE, 300, 2, ties=1.0, seed=5)))))


@pytest.mark.parametrize("seats", [[("A", 2.0), ("B", 1.0)], [("A", 2.0), ("B", 2.0), ("C", 0.0)]])
def test_openskill_is_the_package(seats: Seats) -> None:
    """The same game again and again has one order only."""
    model = PlackettLuce(tau=0.0)
    rated = {name: model.rating() for name, _ in seats}
    for _ in range(7):
        teams = model.rate([[rated[name]] for name, _ in seats], ranks=[-number for _, number in seats])
        rated = {name: team[0] for (name, _), team in zip(seats, teams, strict=True)}
    mean = sum(rating.mu for rating in rated.values()) / len(rated)
    expected = {name: (rating.mu - mean) / math.sqrt(2) / model.beta for name, rating in rated.items()}
    games = [(f"k{i}", seats) for i in range(7)]
    assert strengths(made(episodes(games), model="openskill")) == pytest.approx(expected)


def test_elo_is_the_formula_and_no_matter_in_which_order_games_stand() -> None:
    games = [(f"k{i}", [BEST, ("B", 0.0)]) for i in range(5)]
    rating = 0.0
    for _ in range(5):
        rating += 32 * (1 - 1 / (1 + 10 ** (-2 * rating / 400)))
    found = shown(made(episodes(games), model="elo", k_factor=32))
    assert found["A"]["rating"] == pytest.approx(1500 + rating) and found["B"]["rating"] == pytest.approx(1500 - rating)
    several = drawn(TRUE, 60, ties=0.3)
    for model in ("elo", "openskill", "bradley_terry"):
        there, back = (made(episodes(x), model=model) for x in (several, several[::-1]))
        assert strengths(back) == pytest.approx(strengths(there))
        assert sorted(strengths(there)) == sorted(TRUE) and strengths(there)["A"] > strengths(there)["D"]


@pytest.mark.slow
def test_intervals_cover_the_true_strengths() -> None:
    """`benchmarks/run.py ratings` has more of this; the seeds are fixed."""
    covered = 0
    for seed in range(150):
        games = drawn(TRUE, 60, seed=seed)
        for row in made(episodes(games)).rows:
            cell = row.cells[0]
            covered += (cell.low or -math.inf) <= 1500 + ELO * TRUE[row.key["contestant"]] <= (cell.high or math.inf)
    assert 0.93 <= covered / 600 <= 0.97


# ------------------------------------------------------------------------------------- what is shown


def test_a_row_counts_games_and_the_mean_return() -> None:
    games = [("a", [BEST, ("B", 0.0)]), ("a", [("B", 3.0), BEST]), ("b", [BEST, ("B", 1.0)]), ("c", None)]
    table = made(episodes(games))
    assert shown(table)["A"] | {"rating": None} == {
        "rating": None,
        "rank": 1.0,
        "games": 3,
        "wins": 1,
        "draws": 1,
        "losses": 1,
        "mean_return": 1.0,
    }
    assert shown(table)["B"]["mean_return"] == pytest.approx(4 / 3)
    assert "games/results: not reported in 1 of 4 episodes." in table.notes
    assert any("are one observation (2 of them)" in note for note in table.notes)


def test_ranks_span_those_who_do_not_differ_significantly() -> None:
    close = [(f"k{i}", [BEST, ("B", float(i % 2) * 2)]) for i in range(20)]
    weak = [(f"w{i}", [(name, 1.0 if i else 0.0), ("C", 0.5)]) for i in range(30) for name in "AB"]
    table = made(episodes([*close, *weak]))
    assert {row.key["contestant"]: (row.cells[1].low, row.cells[1].high) for row in table.rows} == {
        "A": (1, 2), "B": (1, 2), "C": (3, 3),
    }  # fmt: skip
    assert "1–2" in render(table)


def test_the_same_deal_from_both_sides_is_one_observation() -> None:
    """First seats win deals with an odd number, whoever sits there: alone these are coins, together they are draws."""
    games = [(f"k{i}", [(one, float(i % 2)), (other, 0.5)]) for i in range(20) for one, other in ("AB", "BA")]
    together, apart = made(episodes(games)), made(episodes(games), cluster="episode")
    cells = [table.rows[0].cells[0] for table in (together, apart)]
    assert cells[0].value == pytest.approx(1500) and cells[1].high - cells[1].low > 100
    assert (cells[0].low, cells[0].high) == (None, None) and "No interval for A, B: all obser" in " ".join(
        together.notes
    )
    assert "Games are independent (40 of them)." in " ".join(apart.notes)


def test_the_anchor_is_a_number_or_a_contestant() -> None:
    games = episodes(drawn(TRUE, 100))
    plain, named, zero = made(games), made(games, anchor="D"), made(games, anchor=0)
    ratings = {name: numbers["rating"] for name, numbers in shown(plain).items()}
    assert math.fsum(ratings.values()) / 4 == pytest.approx(1500)
    assert shown(named)["A"]["rating"] == pytest.approx(ratings["A"] - ratings["D"])
    last = named.rows[-1]
    assert (last.key["contestant"], last.cells[0].value, last.cells[0].low) == ("D", 0, None)
    assert shown(zero)["A"]["rating"] == pytest.approx(ratings["A"] - 1500)
    assert any("Nemo, the anchor, has no game" in note for note in made(games, anchor="Nemo").notes)


def test_several_models_and_rows_are_rated_apart_and_names_are_the_readers() -> None:
    both = [*episodes(drawn(TRUE, 40), game="go"), *episodes(drawn(TRUE, 40, seed=1), game="chess")]
    table = made(both, rows="game", labels={"A": "Anna", "go": "Go"}, order={"contestant": ["D", "A"]})
    assert [row.names for row in table.rows[:2]] == [("Go", "D"), ("Go", "Anna")]
    assert table.row_labels == ("game", "contestant") and len(table.rows) == 8
    assert any(note.startswith("Go: Rating: Bradley–Terry") for note in table.notes)
    other = [EpisodeScore(f"x{s.id}", s.condition, {**s.labels, "model": "m"}, s.numbers) for s in both]
    assert made([*both, *other]).row_labels == ("model", "contestant")


def test_a_contestant_in_several_seats_counts_with_their_mean() -> None:
    table = made(episodes([("k", [("A", 4.0), ("A", 0.0), ("B", 1.0)]), ("l", [("A", 0.0), ("B", 1.0)])]))
    assert shown(table)["A"]["wins"] == 1 and shown(table)["A"]["mean_return"] == 1.0


def test_games_choose_the_model_where_none_is_named() -> None:
    mixed = [*episodes(drawn(TRUE, 40), game="two"), *episodes(drawn(TRUE, 40, 3), game="three")]
    table = made(mixed, rows="game")
    for game, name in (("two", "Bradley–Terry"), ("three", "Plackett–Luce")):
        assert any(note.startswith(f"{game}: Rating: {name}") for note in table.notes), table.notes
        assert all(row.cells[0].value is not None for row in table.rows)
    assert any("Rating: Plackett–Luce" in note for note in made(mixed).notes)


@pytest.mark.parametrize("model", ["elo", "openskill"])
def test_what_does_not_vary_has_no_interval(model: str) -> None:
    drawn_games = episodes([(f"k{i}", [BEST, ("B", 1.0)]) for i in range(12)])
    won = episodes([(f"k{i}", [BEST, ("B", 0.0)]) for i in range(12)])
    for table in (made(drawn_games, model=model), made(won, model=model)):
        assert all((row.cells[0].low, row.cells[0].high) == (None, None) for row in table.rows)
        assert "No interval for A, B: all observations say the same." in table.notes
        assert all((row.cells[1].low, row.cells[1].high) == (1, 2) for row in table.rows)


# ---------------------------------------------------------------------------------- without a rating


def test_who_wins_every_game_has_a_rating_by_a_prior_and_an_interval_without_end() -> None:
    games = [(f"k{i}", [("A", 9.0), (name, 0.0)]) for i in range(6) for name in "BCD"]
    games += [(f"l{i}", [(one, float(i % 2)), (other, 0.5)]) for i in range(6) for one, other in ("BC", "CD", "BD")]
    table = made(episodes(games))
    first = table.rows[0]
    assert first.key["contestant"] == "A" and 1700 < first.cells[0].value < 2500
    assert first.cells[0].low is not None and first.cells[0].high is None
    assert all(row.cells[0].low is not None and row.cells[0].high is not None for row in table.rows[1:])
    assert any("Maximum likelihood has no finite answer (A did at least as well as all" in x for x in table.notes)
    assert "–]" in render(table)


def test_games_of_a_case_are_one_observation_also_with_a_prior() -> None:
    """A game that is played four times and always ends alike says no more than once."""
    games: list[tuple[str, Seats]] = [(f"{name}{i}", [("A", 9.0), (name, 0.0)]) for i in range(8) for name in "BCD"]
    lots = random.Random(3)
    for i, (one, other) in itertools.product(range(8), itertools.combinations("BCD", 2)):
        games.append((f"{one}{other}{i}", [(one, lots.random()), (other, 0.5)]))

    def width(games: list[tuple[str, Seats]], **entry: Any) -> float:
        table = made(episodes(games), **entry)
        assert any("Maximum likelihood has no finite answer" in note for note in table.notes)
        cell = {row.key["contestant"]: row.cells[0] for row in table.rows}["C"]
        return float(cell.high - cell.low)

    again = [game for game in games for _ in range(4)]
    assert 0.9 < width(again) / width(games) < 1.2
    assert width(again, cluster="episode") < 0.85 * width(games)


@pytest.mark.parametrize(
    ("games", "note"),
    [
        ([("k", [("A", 1.0), ("B", 0.0)]), ("k", [("C", 1.0), ("D", 0.0)])], "No games connect these groups"),
        ([("k", [("A", 1.0), ("B", 1.0)]), ("l", [("A", 0.0), ("B", 0.0)])], "No game has a winner"),
        ([("k", [("A", 1.0), ("A", 0.0)])], "1 of 1 games are of a contestant with itself"),
        ([("k", [("A", 2.0), ("B", 1.0), ("C", 0.0)])], "1 of 1 games have more than two contestants"),
        ([("k", None)], "There are no games between contestants"),
        ([], "There are no episodes to show."),
    ],
)
@pytest.mark.parametrize("model", ["bradley_terry", "elo"])
def test_what_has_no_rating_says_why(games: list[tuple[str, Any]], note: str, model: str) -> None:
    if note == "No game has a winner" and model == "elo":
        return  # Elo rates draws
    table = made(episodes(games), model=model)
    assert any(line.startswith(note) for line in table.notes), table.notes
    assert all(numbers["rating"] is None for numbers in shown(table).values())
    for form in FORMATS:
        assert "nan" not in render(table, form).lower()


def counted(name: str, number: float, turns: int, substituted: int = 0, illegal: int = 0, failed: int = 0) -> Any:
    return (name, number, {"turns": turns, "substituted": substituted, "illegal": illegal, "failed": failed})


def test_who_never_played_has_no_rating_and_shares_stand_beside_the_others() -> None:
    """What stood in for Z and W won games: their ratings would be those of random moves."""
    games: list[tuple[str, Any]] = []
    for i in range(12):
        games.append((f"k{i}", [counted("A", i % 3, 4), counted("B", 1, 4, 1, 0, 1)]))
        games.append((f"k{i}", [counted("A", 0, 4), counted("Z", 1, 5, 5, 5)]))
        games.append((f"k{i}", [counted("W", i % 2, 4, 4, 0, 4), counted("B", 0, 4, 2, 2)]))
    table = made(episodes(games))
    numbers = shown(table)
    alone = shown(made(episodes(games[::3])))
    for name in "AB":
        assert numbers[name]["rating"] == alone[name]["rating"] and numbers[name]["games"] == 12
    for name in "ZW":
        assert numbers[name] | {"illegal": 0, "failed": 0} == {
            "rating": None, "rank": None, "games": 0, "wins": 0, "draws": 0, "losses": 0, "mean_return": None,
            "substituted": 1, "illegal": 0, "failed": 0,
        }  # fmt: skip
    assert [*numbers][2:] == ["Z", "W"] and (numbers["Z"]["illegal"], numbers["W"]["failed"]) == (1, 1)
    assert numbers["A"]["substituted"] == 0 and numbers["B"]["substituted"] == 36 / 96
    notes = "\n".join(table.notes)
    assert "B: 37.5 % substituted, 25.0 % illegal, 12.5 % failed; Z: 100.0 % substituted" in notes
    assert "Z is not rated: it made no legal move in any of its turns, and a rating takes at least 50 %" in notes
    assert "(`min_legal`). Its 12 games count in no number here." in notes
    assert "100.0%" in render(table) and [*numbers["A"]][-3:] == ["substituted", "illegal", "failed"]
    for kind in ("cross_play", "self_play"):
        other = made(episodes(games), kind=kind)
        assert all(line in other.notes for line in table.notes[-3:])
        assert [row.key["contestant"] for row in other.rows][2:] == ["Z", "W"]
        assert not any(value for row in other.rows[2:] for value in (cell.value for cell in row.cells[:4]))
    matrix = shown(made(episodes(games), kind="cross_play"))
    assert (matrix["Z"]["illegal"], matrix["W"]["failed"], matrix["B"]["substituted"]) == (1, 1, 36 / 96)
    assert matrix["A"]["Z"] is None and matrix["B"]["W"] is None and matrix["A"]["B"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("least", "rated"), [(0.25, ["A", "B", "C"]), (0.5, ["A", "B"]), (1.0, ["A"]), (0, ["A", "B", "C"])]
)
def test_no_rating_with_fewer_legal_moves_than_the_table_asks_for(least: float, rated: list[str]) -> None:
    """A made all of its moves itself, B half of them and C a quarter; Z none, and is in no table."""
    legal = {"A": 4, "B": 2, "C": 1, "Z": 0}
    games = [
        (f"k{i}", [counted(name, (i + j) % 3, 4, 4 - legal[name], 4 - legal[name]) for j, name in enumerate(pair)])
        for i in range(6)
        for pair in itertools.combinations("ABCZ", 2)
    ]
    table = made(episodes(games), min_legal=least)
    numbers = shown(table)
    played = 6 * (len(rated) - 1)
    assert {name: numbers[name]["games"] for name in "ABCZ"} == {name: played * (name in rated) for name in "ABCZ"}
    assert [name for name in "ABCZ" if numbers[name]["rating"] is not None] == (rated if played else [])
    unrated = [name for name in "BCZ" if name not in rated]
    assert [name for name in "ABCZ" if f"{name} is not rated" in " ".join(table.notes)] == unrated


def test_who_forfeits_has_lost_whatever_the_game_gave_it() -> None:
    """Of three that one forfeits, the others have beaten it, and nothing is known about these two."""

    def forfeits(name: str, number: float) -> Any:
        return (name, number, {"turns": 4, "substituted": 1, "illegal": 1, "failed": 0, "forfeited": 1})

    two = [(f"k{i}", [forfeits("A", 5.0), counted("B", 0, 4)]) for i in range(6)]
    table = made(episodes(two))
    numbers = shown(table)
    assert [*numbers] == ["B", "A"] and (numbers["A"]["losses"], numbers["B"]["wins"], numbers["A"]["mean_return"]) == (
        6,
        6,
        5,
    )
    matrix = shown(made(episodes(two), kind="cross_play"))
    assert (matrix["A"]["B"], matrix["B"]["A"]) == (0, 1)
    three = [(f"k{i}", [forfeits("A", 5.0), counted("B", 0, 4), counted("C", 1, 4)]) for i in range(6)]
    rated = shown(made(episodes(three)))
    assert rated["B"]["rating"] == pytest.approx(rated["C"]["rating"]) and rated["A"]["rating"] < rated["B"]["rating"]
    matrix = shown(made(episodes(three), kind="cross_play"))
    assert (matrix["A"]["B"], matrix["C"]["A"], matrix["B"]["C"]) == (0, 1, None)


def test_turns_are_said_where_they_are_known() -> None:
    fine = [(f"k{i}", [counted("A", i % 2, 3), counted("B", 0.5, 3)]) for i in range(6)]
    table = made(episodes(fine))
    assert "illegal" not in shown(table)["A"] and not any("contestant's own" in note for note in table.notes)
    old: list[tuple[str, Any]] = [("l", [("A", 1.0), ("A", 1.0), counted("B", 0.0, 3, 1, 1)])]
    mixed = shown(made(episodes([*fine, *old, ("m", [("C", 1.0), ("A", 0.0)])])))
    assert (mixed["A"]["illegal"], mixed["B"]["illegal"], mixed["C"]["illegal"]) == (0, pytest.approx(1 / 21), None)
    only = made(episodes([("k", [counted("A", 1, 2, 2, 2), counted("B", 0, 0)])]))
    assert {name: numbers["rating"] for name, numbers in shown(only).items()} == {"B": None, "A": None}


def test_records_that_are_none_are_no_games() -> None:
    scores = [
        EpisodeScore(f"{i}/k/0", str(i), {"model": "m"}, {"games/results": CorpusRecord(record), "score": None})
        for i, record in enumerate(
            ["A", [["A"]], [["A", "1"]], [["A", True], ["B", 0]], [], {"A": 1}, [["A", 1, {}, 2]]]
        )
    ]
    assert made(scores).rows == ()


# ---------------------------------------------------------------------------- each against each


def test_cross_play_has_the_share_of_points_and_games_of_three_count_pair_by_pair() -> None:
    games = [("k", [BEST, ("B", 0.0)]), ("l", [BEST, ("B", 1.0)]), ("m", [("A", 0.0), ("B", 1.0), ("C", 1.0)])]
    table = made(episodes(games), kind="cross_play")
    assert shown(table)["A"] == {"B": 0.5, "C": 0.0, "A": None} and shown(table)["B"]["C"] == 0.5
    assert [row.key["contestant"] for row in table.rows] == [column.key["opponent"] for column in table.columns]
    assert "50%" in render(table) and any("over 1 to 3 games each" in note for note in table.notes)
    [cell] = [
        x for x in csv.DictReader(io.StringIO(render(table, "csv"))) if (x["contestant"], x["opponent"]) == ("A", "B")
    ]
    assert (cell["value"], cell["n"], cell["metric"]) == ("0.5", "3", "games/results")


def test_cross_play_of_returns_has_games_with_itself_on_the_diagonal() -> None:
    games = [("k", [("A", 10.0), ("A", 8.0)]), ("k", [("A", 4.0), ("B", 4.0)]), ("k", [("B", 2.0), ("B", 2.0)])]
    table = made(episodes(games), kind="cross_play", value="return", digits=1)
    assert shown(table) == {"A": {"A": 9.0, "B": 4.0}, "B": {"A": 4.0, "B": 2.0}}
    assert "9.0" in render(table)
    assert any("over 1 game each; on the diagonal with itself alone, over 1 game" in note for note in table.notes)
    mostly = made(episodes([*games, *games[:1], games[0]]), kind="cross_play", value="return")
    assert any(
        "over 1 game each; on the diagonal with itself alone, over 1 to 3 games" in note for note in mostly.notes
    )


def test_cross_play_of_a_game_without_winners_says_what_to_look_at() -> None:
    together: list[tuple[str, Seats]] = [("k", [("A", 3.0), ("B", 3.0)]), ("l", [("A", 1.0), ("B", 1.0)])]
    table = made(episodes(together), kind="cross_play")
    assert any("No game has a winner; `value: return` shows" in note for note in table.notes)
    for other in (
        made(episodes(together), kind="cross_play", value="return"),
        made(episodes(drawn({"A": 1.0, "B": 0.0}, 9)), kind="cross_play"),
    ):
        assert not any("winner;" in note for note in other.notes)


def test_the_gap_is_the_difference_of_two_means_within_cases() -> None:
    hard = [3.0, -1.0, 2.0, 0.0]
    games = [(f"k{i}", [("A", 8 + x), ("A", 8 + x)]) for i, x in enumerate(hard)]
    games += [(f"k{i}", [("A", 5 + x + (i == 0)), ("B", 5 + x)]) for i, x in enumerate(hard)]
    table = made(episodes(games), kind="self_play")
    first = table.rows[0].cells
    assert (first[0].value, first[1].value, first[2].value, first[3].value) == (4, 9.0, 4, 6.25)
    differences = [2.0, 3.0, 3.0, 3.0]
    half = 3.182446 * numpy.std(differences, ddof=1) / 2
    assert (first[4].low, first[4].high) == pytest.approx((2.75 - half, 2.75 + half))
    assert table.rows[1].cells[4].value is None and "B: games of one kind are missing." in table.notes


def test_names_are_data_in_every_form() -> None:
    wild = "<b>x</b>|&_%\x1b[31m"
    games = episodes([(f"k{i}", [(wild, float(i % 2)), ("=B", 0.5)]) for i in range(6)])
    for kind in ("rating", "cross_play", "self_play"):
        table = made(games, kind=kind)
        for form in FORMATS:
            assert "\x1b" not in render(table, form)
        assert "<b>x" not in page("P", [table]) and "&lt;b&gt;x" in page("P", [table])


# ------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"of": "score"}, "of: score keeps no results of games, as games/results does"),
        ({"of": "games/resluts"}, "of: unknown metric 'games/resluts'"),
        ({"kind": "ratings"}, "'kind' is 'ratings'. Did you mean rating?"),
        ({"model": "trueskill"}, "'model' is 'trueskill'. Did you mean openskill?"),
        ({"k_factor": 3}, "k_factor: it belongs to model: elo"),
        ({"value": "return"}, "value: it belongs to kind: cross_play"),
        ({"kind": "cross_play", "model": "elo"}, "model: it belongs to kind: rating"),
        ({"kind": "cross_play", "figure": "bar"}, "figure: cross_play is drawn as heat"),
        ({"figure": "bar"}, "kind: figure cannot stand beside it"),
        ({"figure": "heat"}, "kind: figure cannot stand beside it: it is shown as a table; cross_play can be drawn as"),
        ({"uncertainty": "sem"}, "kind: uncertainty cannot stand beside it: it has 95 % intervals"),
        ({"columns": "game"}, "kind: columns cannot stand beside it"),
        ({"metrics": "score"}, "metrics: this kind of table has its own columns; of names the metric"),
        ({"aggregate": "mean_of_conditions"}, "kind: it is made of episodes, not of conditions"),
        ({"effects": "game"}, "kind: effects is another kind of table"),
        ({"rows": "contestant"}, "a table cannot group by 'contestant': the name is taken"),
        ({"where": {"contestant": "A"}}, "where: unknown label 'contestant'"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_a_run(entry: dict[str, Any], problem: str) -> None:
    entry = {"title": "T", "kind": "rating", "of": "games/results", **entry}
    problems = check(entry, {"game": ["go", "chess"]}, METRICS)
    assert any(line.startswith(problem) for line in problems), problems


def test_other_tables_have_no_keys_of_games() -> None:
    entry = {"title": "T", "rows": "game", "metrics": "score", "of": "score", "anchor": 3}
    assert check(entry, {"game": []}, METRICS) == [
        "of: it belongs to kind: cross_play, kind: rating, kind: self_play",
        "anchor: it belongs to kind: rating",
    ]
    assert check({"title": "T", "kind": "rating"}, {}, METRICS) == ["missing required key 'of'"]
    assert check({"title": "T", "kind": "rating", "of": "games/results"}, {}, METRICS) == []
    with pytest.raises(SpecError, match="score keeps no results of games"):
        made(episodes([]), of="score")


def test_twenty_contestants_and_every_pair() -> None:
    names = [f"p{i:02}" for i in range(20)]
    games = [
        (f"k{k}", [(one, float((k + i) % 3)), (other, 1.0)])
        for i, (one, other) in enumerate(itertools.combinations(names, 2))
        for k in range(3)
    ]
    assert len(shown(made(episodes(games)))) == 20


@pytest.mark.parametrize(
    "entry, place, words",
    [
        ("comapre: {}, rows: model, metrics: score", "4:5", "unknown key 'comapre'. Did you mean compare?"),
        ("kind: ratng, of: score", "4:11", "'kind' is 'ratng'. Did you mean rating?"),
        ("kind: null, of: score", "4:11", "'kind' must be a name, found nothing. Available: cross_play, rating"),
        ("kind: 3, rows: model, metrics: score", "4:11", "'kind' must be a name, found 3. Available: cross_play"),
        ("kind: [rating], of: score", "4:11", "'kind' must be a name, found ['rating']. Available: cross_play"),
        ("kind: compare, metrics: score", "4:11", "'kind' is 'compare', which an entry takes by a key of that name"),
        ("of: score, rows: model, metrics: score", "4:5", "of: it belongs to kind: cross_play, kind: rating"),
        ("effects: game, kind: rating, of: score", "4:14", "kind: effects is another kind of table"),
    ],
)
def test_a_mistake_in_the_kind_is_told_once_at_its_value(
    entry: str, place: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.yaml"
    lines = "\n    ".join(entry.split(", "))
    spec.write_text(f"extends: arithmetic\ntables:\n  - title: T\n    {lines}\n")
    assert main(["validate", str(spec)]) == 2
    told = capsys.readouterr().err.strip()
    assert told.startswith(f"{spec}:{place}: {words}") and "\n" not in told
