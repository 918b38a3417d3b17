"""Tournaments: who meets whom in which seats, on which games, and rounds that are drawn from results."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.api.errors import RefusedError, UserError
from harness.config import resolve, spec
from harness.config.plan import Plan
from harness.config.project import builtin
from harness.config.proposals import complete
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.games.tournaments.swiss import Draw, draw, points
from harness.tables import CorpusRecord, EpisodeScore
from tests.helpers.commands import invoke

BUILTIN = builtin()
DICE: dict[str, Any] = {
    "use": "world",
    "agents": 2,
    "draw": {"stake": "randint(1, 9)"},
    "own": {"purse": 0, "bold": False},
    "state": {"roll": 0},
    "sees": {"round": "rounds + 1"},
    "actions": {"BET": {"effects": {"mine.bold": True}}, "PASS": {"effects": {"mine.bold": False}}},
    "each_round": {"roll": "randint(0, 6)", "mine.purse": "mine.purse + stake * (roll - 3 if mine.bold else number)"},
    "end": "rounds >= 2",
    "scores": {"returns": "purse", "score": "1 if purse[agents[0]] > purse[agents[1]] else 0"},
}
"""A game with luck at the start and in between; the second seat is better."""
BOLD = {"policy": {"use": "expression", "act": "'BET'"}, "label": "bold"}
MEEK = {"policy": {"use": "expression", "act": "'PASS'", "label": "meek"}}
RANDOM = {"policy": "random"}


def many(count: int) -> list[dict[str, str]]:
    return [{"policy": "random", "label": f"r{i}"} for i in range(count)]


def data(task: Mapping[str, Any] = {}, matrix: Mapping[str, Any] | None = None, **tournament: Any) -> dict[str, Any]:
    return {
        "name": "dice",
        "task": {**DICE, **task},
        "protocol": "steps",
        "prompts": "world/standard",
        "metrics": ["score", "games/results"],
        "tournament": {"pool": [BOLD, MEEK, RANDOM], **tournament},
        **({} if matrix is None else {"matrix": matrix}),
    }


def plan(**keys: Any) -> Plan:
    return resolve.plan(spec.parse(data(**keys), BUILTIN), BUILTIN)


def played(folder: Path, on_score: Callable[..., None] | None = None, **keys: Any) -> Run:
    return harness.evaluate(data(**keys), output_path=folder, project=BUILTIN, on_score=on_score)


def test_games_of_contestants_with_themselves_fill_a_table_of_self_play(tmp_path: Path) -> None:
    body = data(pairing="self_play", games_per_pairing=1)
    body["tables"] = [{"title": "alone", "kind": "self_play", "of": "games/results"}]
    [table] = harness.evaluate(body, output_path=tmp_path, project=BUILTIN).tables
    assert len(table.rows) == 3


def record(score: EpisodeScore) -> list[list[Any]]:
    """[contestant, return] of each seat."""
    kept = score.numbers["games/results"]
    assert isinstance(kept, CorpusRecord) and isinstance(kept.value, list)
    return [seat[:2] for seat in kept.value]


# ---------------------------------------------------------------------------------- who meets whom


@pytest.mark.parametrize(("size", "seats", "alone"), [(2, 2, False), (5, 2, True), (5, 3, False), (4, 4, True)])
def test_all_meet_equally_often_in_all_seats_on_the_same_cases(size: int, seats: int, alone: bool) -> None:
    task = {"agents": seats, "scores": {"returns": "purse", "score": "0"}}
    made = plan(task=task, pool=many(size), games_per_pairing=3, self_play=alone)
    games: Counter[frozenset[str]] = Counter()
    sitting: Counter[tuple[str, str]] = Counter()
    cases = set()
    for condition, case, repeat in made.episodes():
        games[frozenset(case.roles.values())] += 1
        cases.add((condition.id, case.id, repeat))
        assert case.roles.keys() == set(case.agents) and not case.unscored
        if len({*case.roles.values()}) > 1:
            sitting.update(case.roles.items())
    combinations = [frozenset(names) for names in itertools.combinations([f"r{i}" for i in range(size)], seats)]
    mirrors = [frozenset([f"r{i}"]) for i in range(size)] if alone else []
    assert games == {**dict.fromkeys(combinations, 3 * seats), **dict.fromkeys(mirrors, 3)}
    assert len({*sitting.values()}) == 1
    by_condition = {id: {one[1:] for one in cases if one[0] == id} for id, *_ in cases}
    assert len({frozenset(one) for one in by_condition.values()}) == 1  # the same cases in all of them


def test_without_rotation_the_pool_says_who_sits_first() -> None:
    made = plan(rotate_seats=False, games_per_pairing=1)
    assert [condition.labels["first"] for condition in made.conditions] == ["bold", "bold", "meek"]
    alone = plan(pairing="self_play", games_per_pairing=1)
    assert [condition.id for condition in alone.conditions] == [
        f"pairing={name} vs {name},first={name}" for name in ("bold", "meek", "random")
    ]


def test_a_matrix_plays_the_tournament_in_each_of_its_games() -> None:
    made = plan(task={"agents": "${n}"}, matrix={"n": [2, 3]}, games_per_pairing=1)
    assert Counter(condition.labels["n"] for condition in made.conditions) == {2: 6, 3: 3}
    assert made.conditions[-1].id == "n=3,pairing=bold vs meek vs random,first=random"
    without_seat = {**data(), "baseline": "random"}
    assert resolve.plan(spec.parse(without_seat, BUILTIN), BUILTIN).model == "policies"  # not the baseline's name


@pytest.mark.parametrize(
    ("task", "limit", "games", "cases"),
    [
        ({}, None, [1] * 7, 7),
        ({"instances": 3}, None, [3, 2, 2], 3),
        ({}, 2, [1, 1], 2),
        ({"instances": 20}, None, [1] * 7, 7),
    ],
)
def test_games_are_cases_some_of_them_played_again(
    task: dict[str, Any], limit: int | None, games: list[int], cases: int
) -> None:
    made = resolve.plan(spec.parse(data(task=task, games_per_pairing=7), BUILTIN, limit=limit), BUILTIN)
    for condition in made.conditions:
        assert [repeats for _, repeats in made.cases(condition)] == games
    assert len([*made.episodes()]) == 6 * sum(games)


def test_both_sides_have_the_same_luck_and_readers_see_who_sat_where(tmp_path: Path) -> None:
    run = played(tmp_path, games_per_pairing=5)
    lucky: dict[tuple[str, str], set[float]] = {}
    for score in run.scores:
        result = record(score)
        assert result[0][0] == score.labels["first"]
        assert " vs ".join(sorted(name for name, _ in result)) == " vs ".join(
            sorted(score.labels["pairing"].split(" vs "))
        )
        for seat, (name, number) in enumerate(result):
            if name != "random":  # what these two get hangs on luck and seat alone
                lucky.setdefault((name, f"{seat} {score.id.rpartition('first=')[2].partition('/')[2]}"), set()).add(
                    number
                )
    assert {len(numbers) for numbers in lucky.values()} == {1} and len(lucky) == 2 * 2 * 5
    assert len({next(iter(n)) for (name, seat), n in lucky.items() if name == "bold" and seat[0] == "0"}) > 2
    first = next(iter(run.transcripts()))
    assert first.problem is None and set(first.roles.values()) == {"bold", "meek"}


# ------------------------------------------------------------------------------------ Swiss rounds


def simulated(count: int, rounds: int, seed: int) -> tuple[list[Draw], list[dict[str, float]]]:
    """Rounds of contestants of random strengths, and the points before each of them."""
    names, chance = [f"r{i}" for i in range(count)], random.Random(seed)
    drawn: list[Draw] = []
    results: list[tuple[int, list[tuple[str, float]]]] = []
    standings = []
    for number in range(1, rounds + 1):
        standings.append(points(drawn, results))
        drawn.append(draw(names, drawn, standings[-1], seed))
        results += [(number, [(one, chance.random()), (other, chance.random())]) for one, other in drawn[-1].pairs]
    return drawn, standings


@pytest.mark.parametrize("count", [2, 5, 8, 13])
def test_no_rematch_and_no_second_bye_while_avoidable(count: int) -> None:
    even = count + count % 2
    for seed in range(3):
        drawn, _ = simulated(count, even // 2, seed)  # a matching of unmet pairs is there by Dirac's theorem
        met = Counter(frozenset(pair) for one in drawn for pair in one.pairs)
        byes = Counter(one.bye for one in drawn if one.bye is not None)
        assert {*met.values(), *byes.values()} == {1} and sum(byes.values()) == count % 2 * len(drawn)
        for one in drawn:
            names = [*itertools.chain.from_iterable(one.pairs), *filter(None, [one.bye])]
            assert sorted(names) == sorted(f"r{i}" for i in range(count))
        assert drawn == simulated(count, even // 2, seed)[0]  # a pure function


def test_rounds_pair_equal_points_and_balance_who_sits_first() -> None:
    drawn, standings = simulated(16, 4, 7)
    apart = [abs(at.get(a, 0) - at.get(b, 0)) for one, at in zip(drawn, standings, strict=True) for a, b in one.pairs]
    assert sum(apart) / len(apart) < 0.2 and max(apart) <= 1
    firsts = Counter(pair[0] for one in drawn for pair in one.pairs)
    assert {firsts[f"r{i}"] for i in range(16)} <= {1, 2, 3}


def test_a_rematch_is_played_where_all_have_met() -> None:
    drawn, _ = simulated(4, 5, 1)
    met = Counter(frozenset(pair) for one in drawn for pair in one.pairs)
    assert len(met) == 6 and sum(met.values()) == 10 and max(met.values()) == 2


def test_points_count_games_of_a_round_and_byes() -> None:
    drawn = [Draw((("a", "b"), ("c", "d")), "e"), Draw((("a", "e"),))]
    results = [(1, [("a", 3.0), ("b", 1.0)]), (1, [("b", 2.0), ("a", 2.0)])]
    assert points(drawn, results) == {"a": 0.75 + 0.5, "b": 0.25, "c": 0.5, "d": 0.5, "e": 1.5}


class StopError(Exception):
    """Ends a run from outside."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stop", [2, 9])
def test_a_swiss_tournament_goes_on_where_it_was_stopped(tmp_path: Path, stop: int) -> None:
    cut, uncut = tmp_path / "cut" / "run", tmp_path / "uncut" / "run"
    keys: dict[str, Any] = {"pool": [BOLD, MEEK, *many(3)], "pairing": "swiss", "games_per_pairing": 1}
    whole = played(uncut, **keys)
    assert len(whole.scores) == 3 * 2 * 2 == whole.meta["planned"] and not whole.failed
    drawn = whole.spec.data["tournament"]["drawn"]["all"]
    assert [len(one["pairs"]) for one in drawn] == [2, 2, 2] and len({one["bye"] for one in drawn}) == 3

    seen = 0

    def interrupt(score: EpisodeScore | None, total: int) -> None:
        nonlocal seen
        assert total == 12
        seen += score is not None
        if seen == stop:
            raise StopError

    with pytest.raises(StopError):
        played(cut, interrupt, **keys)
    journal = cut / "journal.jsonl"
    meta = json.loads((cut / "run.json").read_text())
    meta.pop("journals", None)  # as a killed process leaves it
    (cut / "run.json").write_text(json.dumps(meta))
    journal.write_bytes(journal.read_bytes()[:-7])
    again = played(cut, **keys)
    assert again.scores == whole.scores
    for name in ("spec.yaml", "scores.jsonl", "results.json", "tables.md"):
        assert (cut / name).read_bytes() == (uncut / name).read_bytes(), name
    # Readers find the rounds in the run's spec, which is the same benchmark.
    read = load_run(cut, BUILTIN)
    assert read.spec.digest() == spec.parse(data(**keys), BUILTIN).digest()
    assert rescored(cut, BUILTIN).scores == whole.scores
    assert not any(transcript.problem for transcript in read.transcripts())


class Counted(Mock):
    """A model that counts how often it is started."""

    async def start(self) -> None:
        self.__dict__["starts"] = self.__dict__.get("starts", 0) + 1
        await super().start()

    async def complete(self, request: Request) -> Any:
        return await super().complete(request)


def test_models_and_policies_meet_and_engines_stay_for_all_rounds(tmp_path: Path) -> None:
    engine = Counted()
    body = data(pool=["model", {"model": "other", "label": "second"}, BOLD, MEEK], pairing="swiss", games_per_pairing=2)
    body["models"] = {"other": {"use": "mock", "model": "another"}}
    run = harness.evaluate(body, engine, output_path=tmp_path, project=BUILTIN)
    assert engine.__dict__["starts"] == 1 and run.meta["model"] == "mock"
    assert Counter(name for score in run.scores for name, _ in record(score)) == dict.fromkeys(
        ["model", "second", "bold", "meek"], 2 * 2 * 2
    )
    by_seat = {agent: transcript.roles[agent] for transcript in run.transcripts() for agent in transcript.models}
    assert set(by_seat.values()) <= {"model", "second"}


# --------------------------------------------------------------------------------------- mistakes


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("keys", "message", "hint"),
    [
        ({"pool": ["modle", RANDOM]}, "there is no model 'modle'", "Did you mean model?"),
        ({"pool": ["random", BOLD]}, "'random' is a policy, not a model", "{policy: random}"),
        ({"pool": [{"policy": "randm"}, BOLD]}, "there is no policy 'randm'", "Did you mean random"),
        ({"pool": [RANDOM, RANDOM]}, "two contestants are called 'random'", "label:"),
        ({"pool": [RANDOM]}, "the pool has one contestant", "self_play"),
        ({"pool": [{"label": "x"}, RANDOM]}, "either a model or a policy", "policy: NAME"),
        ({"pool": [{**RANDOM, "label": "a\x1b[2J"}, BOLD]}, "that cannot be printed", "label:"),
        (
            {"pool": [{**RANDOM, "label": "bold "}, BOLD]},
            "cannot be called 'bold ': it begins or ends with a",
            "label:",
        ),
        ({"pool": [{**RANDOM, "label": "model"}, BOLD]}, "cannot be called 'model': the harness gives that", "label:"),
        ({"pool": many(150)}, "11,175 pairings and 22,350 conditions; at most 10,000", "swiss"),
        ({"task": {"agents": 4}}, "the game has 4 seats, the pool 3 contestants", "Add contestants"),
        ({"task": {"agents": 1, "scores": {"score": "0"}}}, "a game of one agent has no pairings", "two or more"),
        ({"task": {"agents": 3}, "pairing": "swiss"}, "pairing: swiss needs two seats; this game has 3", "round_robin"),
        ({"pairing": "swiss", "results": "score2"}, "draws by the metric 'score2'", "games/results"),
        ({"pairing": "swiss", "results": "score"}, "'score' does not say who won a game", "games/results does"),
        ({"pairing": "swiss", "self_play": True}, "self_play: belongs to pairing: round_robin", ""),
        (
            {"pairing": "swiss", "drawn": {"all": [{"pairs": [["bold", "mek"]]}]}},
            "no contestant is called 'mek'",
            "meek",
        ),
        ({"rounds": 2}, "rounds: belongs to pairing: swiss", ""),
        ({"pairing": "robin"}, "'pairing' is 'robin'", "round_robin"),
        ({"matrix": {"first": [2]}, "task": {"agents": "${first}"}}, "is a label that the tournament gives", ""),
    ],
)
def test_mistakes_are_one_line_with_a_remedy(keys: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        plan(**keys)
    assert message in str(caught.value) and hint in str(caught.value) and caught.value.place is not None


def test_who_plays_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.yaml"
    body = data()
    for extra, message in (
        ({"agents": {"default": "model"}}, "agents: and tournament: both say who plays"),
        ({"repeats": 3, "tournament": {**body["tournament"], "games_per_pairing": 2}}, "both say how many games"),
        (
            {
                "task": "arithmetic",
                "protocol": {"use": "vote", "agents": 3},
                "prompts": "panels/standard",
                "metrics": ["score"],
            },
            "protocol 'vote' has agents of its own (Agent-0, Agent-1, Agent-2",
        ),
    ):
        file.write_text(json.dumps({**body, **extra}))
        code, _, err = invoke(capsys, "validate", str(file))
        assert code == 2 and message in err and "x.yaml:1:" in err


@pytest.mark.slow
def test_the_number_of_games_is_known_before_they_are_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(json.dumps(data(pool=[BOLD, MEEK, *many(5)], pairing="swiss", games_per_pairing=4)))
    line = "7 contestants, 9 pairings in 3 rounds, 18 with rotated seats, 4 games each: 72 games"
    code, out, _ = invoke(capsys, "validate", str(file))
    assert code == 0 and line in out
    code, out, _ = invoke(capsys, "plan", "--spec", str(file))
    assert code == 0 and f"tournament      {line}\n" in out and "episodes        72\n" in out
    alone = data(pool=many(1200), pairing="self_play", games_per_pairing=1)
    file.write_text(json.dumps(alone))
    assert "1200 contestants, 1,200 pairings, 1 game each: 1,200 games" in invoke(capsys, "validate", str(file))[1]
    file.write_text(json.dumps(data()))
    assert "3 contestants, 3 pairings, 6 with rotated seats, 1 game each" in invoke(capsys, "validate", str(file))[1]


def test_a_tournament_that_names_no_metrics_rates_its_contestants() -> None:
    body = {"name": "t", "task": {"use": "openspiel", "game": "connect_four"}, "protocol": "steps"}
    rated = complete(spec.parse({**body, "tournament": {"pool": ["model", {"policy": "random"}]}}, BUILTIN), BUILTIN)
    assert "games/results" in rated.data["metrics"]
    assert [table.get("kind") for table in rated.data["tables"]] == ["rating", "cross_play", None]
    assert rated.data["tables"][1]["figure"] == "heat"
    assert "games/results" not in rated.data["tables"][-1]["metrics"]
    assert "games/results" not in complete(spec.parse(body, BUILTIN), BUILTIN).data["metrics"]


@pytest.mark.parametrize(
    ("game", "tournament", "kinds"),
    [
        pytest.param("kuhn_poker(players=3)", {}, ["rating", "cross_play", None], id="three seats"),
        pytest.param("kuhn_poker", {"pairing": "self_play"}, [None], id="self-play"),
        pytest.param(
            "kuhn_poker(players=3)", {"self_play": True}, ["rating", "cross_play", "self_play", None], id="gap"
        ),
    ],
)
def test_tables_that_a_tournament_proposes_suit_its_games(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], game: str, tournament: dict[str, Any], kinds: list[str | None]
) -> None:
    file = tmp_path / "x.yaml"
    body = {"name": "t", "task": {"use": "openspiel", "game": game}, "protocol": "steps"}
    body["tournament"] = {"pool": many(3), "games_per_pairing": 1, **tournament}
    file.write_text(json.dumps(body))
    code, out, err = invoke(capsys, "eval", "--spec", str(file), "--output_path", str(tmp_path / "run"))
    assert code == 0, err
    assert [table.get("kind") for table in complete(spec.parse(body, BUILTIN), BUILTIN).data["tables"]] == kinds
    assert ("Rating: Plackett–Luce" in out) == ("rating" in kinds) and "r2" in out


def test_a_tournament_is_ranked_by_what_the_model_under_test_gets(tmp_path: Path) -> None:
    """In a game of two, the mean return of both is the same whoever plays."""
    body = {"name": "t", "task": {"use": "openspiel", "game": "kuhn_poker"}, "protocol": "steps"}
    for entry, name in (("model", "model"), ({"model": "model", "label": "ours"}, "ours")):
        pool = {"pool": [entry, *many(2)], "games_per_pairing": 4}
        run = harness.evaluate(
            {**body, "tournament": pool}, Mock(text="Bet"), output_path=tmp_path / name, project=BUILTIN
        )
        own = [number for score in run.scores for who, number in record(score) if who == name]
        cell = run.headline.cells(run.scores)["mock"]
        assert len(own) == 2 * 2 * 4 == cell.n and cell.value == pytest.approx(sum(own) / len(own))
        deals: dict[str, list[float]] = {}  # games of a deal are one observation: both sides had its luck
        for score in run.scores:
            deals.setdefault(score.case, []).extend(number for who, number in record(score) if who == name)
        means = [sum(numbers) / len(numbers) for numbers in deals.values()]
        half = 3.182446 * (sum((mean - cell.value) ** 2 for mean in means) / 3 / 4) ** 0.5
        assert len(means) == 4 and cell.high == pytest.approx(cell.value + half)
    others = complete(spec.parse({**body, "tournament": {"pool": many(3)}}, BUILTIN), BUILTIN)
    assert others.data["headline"]["metric"] == "score"


def test_ratings_call_the_model_under_test_by_its_name(tmp_path: Path) -> None:
    rating: dict[str, Any] = {"title": "Ratings", "kind": "rating", "of": "games/results"}
    pool = ["model", {"policy": "random"}, {"label": "uniform", "policy": "random"}]
    run = harness.evaluate({**data(pool=pool), "tables": [rating]}, Mock(text="LOW"), output_path=tmp_path)
    [table] = run.tables
    assert {row.key["contestant"]: row.names[0] for row in table.rows} == {
        "model": "mock",
        "random": "random",
        "uniform": "uniform",
    }


def never_playing(answer: Callable[[Request], str], folder: Path) -> harness.Run:
    """A tournament of a model that makes no legal move, and two policies."""
    rating: dict[str, Any] = {"title": "Ratings", "kind": "rating", "of": "games/results"}
    tables = [rating, {**rating, "title": "Matrix", "kind": "cross_play"}]
    pool: dict[str, Any] = {"pool": ["model", BOLD, MEEK], "games_per_pairing": 3}
    dice = {**data(**pool), "tables": tables}
    return harness.evaluate(dice, Mock(function=answer), output_path=folder, max_error_rate=1.0)


def test_a_model_that_never_plays_has_no_rating(tmp_path: Path) -> None:
    """Its seat goes on with the game's idle move, which beats some: that is no strength of the model."""
    run = never_playing(lambda request: "I resign.", tmp_path)
    ratings, matrix = run.tables
    rows = {row.key["contestant"]: row for row in ratings.rows}
    assert [*rows][-1] == "model" and rows["model"].cells[0].value is rows["model"].cells[1].value is None
    assert rows["bold"].cells[0].value is not None
    shares = {
        str(column.key["statistic"]): cell.value
        for column, cell in zip(ratings.columns, rows["model"].cells, strict=True)
    }
    assert (shares["substituted"], shares["illegal"]) == (1, 1)
    for table in (ratings, matrix):
        assert any("mock is not rated: it made no legal move in any of its turns" in note for note in table.notes), (
            table.notes
        )
        assert any("mock: 100.0 % substituted, 100.0 % illegal" in note for note in table.notes)
    again = {row.key["contestant"]: row.cells[0].value for row in rescored(tmp_path).tables[0].rows}
    assert again == {name: row.cells[0].value for name, row in rows.items()}


def test_games_in_which_a_model_answers_no_request_count_in_no_rating(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        raise RefusedError("not this")

    for table in never_playing(answer, tmp_path).tables:
        assert {row.key["contestant"] for row in table.rows} == {"bold", "meek"}
        assert "12 of 18 episodes failed and count in no number" in table.notes[0]


def test_rounds_that_are_drawn_later_make_no_cases_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, made = BUILTIN.load("tasks", DICE["use"]), list[tuple[Any, ...]]()
    real = task.cases

    def cases(self: Any, *arguments: Any) -> Any:
        made.append(arguments)
        return real(self, *arguments)

    monkeypatch.setattr(task, "cases", cases)
    run = played(tmp_path / "run", pool=[BOLD, MEEK, *many(3)], pairing="swiss", games_per_pairing=2)
    assert len(run.scores) == 24 and [one for one in made if one != (1, 0)] == [(2, 0)]  # (1, 0): examples


def test_a_spec_whose_tournament_is_taken_away_has_no_column_of_results(tmp_path: Path) -> None:
    body = data() | {"name": "base"}
    (tmp_path / "base.yaml").write_text(json.dumps(body))
    spec = tmp_path / "alone.yaml"
    spec.write_text("extends: base.yaml\nname: alone\ntournament:\nbaseline: random\n")
    [table] = harness.evaluate(spec, output_path=tmp_path / "run", limit=2).tables
    assert [column.metric for column in table.columns] == ["score"]
