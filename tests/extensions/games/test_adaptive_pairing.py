"""`pairing: adaptive`: which pairs a round draws, and that a run of it is a part of the round robin."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.extensions.games.tournaments.adaptive import SeatedGame, choose
from tests.extensions.games.test_tournaments import BOLD, MEEK, data, many
from tests.helpers.commands import invoke

POOL = [BOLD, MEEK, *many(3)]


def played(folder: Path, **tournament: Any) -> Any:
    written = data(**{"pool": POOL, "games_per_pairing": 3, **tournament})
    return harness.evaluate(written, output_path=folder, project=builtin())


def test_an_adaptive_tournament_plays_so_many_games_of_the_round_robin(tmp_path: Path) -> None:
    whole = {score.id: score.numbers["games/results"] for score in played(tmp_path / "whole").scores}
    run = played(tmp_path / "part", pairing="adaptive", games=30, rounds=4)
    found = {score.id: score.numbers["games/results"] for score in run.scores}
    assert len(found) == 30 and found.items() <= whole.items(), "the same episodes by the same names"
    both = {(score.labels["pairing"], score.case) for score in run.scores}
    assert len(both) == 15, "every case is played from both sides"
    assert len(run.spec.data["tournament"]["drawn"]["all"]) == 4
    assert len(load_run(tmp_path / "part", builtin()).scores) == 30
    assert rescored(tmp_path / "part", builtin()).scores == run.scores


def test_a_run_that_stopped_within_a_round_draws_the_same_games(tmp_path: Path) -> None:
    entry = {"pairing": "adaptive", "games": 24, "rounds": 3}
    whole = [score.id for score in played(tmp_path / "whole", **entry).scores]
    stop = tmp_path / "stop"
    played(stop, **entry)
    journal = stop / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    ends = [i for i, line in enumerate(lines) if json.loads(line)["k"] == "end"]
    journal.write_text("".join(lines[: ends[len(ends) // 2]]))
    (stop / "scores.jsonl").unlink()
    meta = json.loads((stop / "run.json").read_text())
    (stop / "run.json").write_text(json.dumps({**meta, "status": "running", "journals": {}}))
    assert [score.id for score in played(stop, **entry).scores] == whole


def test_by_default_it_plays_half_of_the_round_robin_and_plan_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "dice.yaml"
    file.write_text(json.dumps(data(pool=POOL, games_per_pairing=8, pairing="adaptive")))
    code, out, _ = invoke(capsys, "plan", "--spec", str(file))
    assert code == 0
    assert "5 contestants, 10 pairings in 10 rounds, 20 with rotated seats, 8 games each: 80 of 160 games" in out
    assert [line.split()[1] for line in out.splitlines() if line.startswith("episodes")] == ["80"]


def test_a_matrix_has_its_own_rounds_in_each_condition_and_a_limit_bounds_a_pair(tmp_path: Path) -> None:
    written = data(pool=POOL, games_per_pairing=8, pairing="adaptive", rounds=3, games=36, matrix={"stake": [1, 2]})
    written["task"] = {**written["task"], "draw": {"stake": "${stake}"}}
    plan = resolve.plan(spec.parse(written, builtin(), limit=1), builtin())
    assert plan.in_all(len([*plan.episodes()])) == 2 * 20, "each of ten pairs once from each side"
    run = harness.evaluate(written, output_path=tmp_path, project=builtin())
    assert [sum(score.labels["stake"] == stake for score in run.scores) for stake in (1, 2)] == [36, 36]


def game(one: int, other: int, points: float) -> SeatedGame:
    return [(one, points), (other, 1 - points)], (0, 1)


def test_whose_order_is_open_meet_most_often() -> None:
    """0 and 1 are equal and much stronger than 2 and 3, of whom 2 is the stronger; all pairs get a few of the games."""
    rng = random.Random(0)
    strength = [3.0, 3.0, 0.0, -2.0]
    games = []
    for one, other in itertools.permutations(range(4), 2):
        for _ in range(12):
            games.append(game(one, other, float(rng.random() < 1 / (1 + 2.72 ** (strength[other] - strength[one])))))
    pairs = dict.fromkeys(itertools.combinations(range(4), 2), 100)
    drawn = choose(4, games, pairs, 30, 2, 0, 1)
    assert sum(drawn.values()) == 30 and drawn[0, 1] + drawn[2, 3] > 20 and len(drawn) == 6


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_the_first_round_lets_all_play_and_nothing_is_drawn_beyond_what_is_left(count: int) -> None:
    pairs = [*itertools.combinations(range(count), 2)]
    drawn = choose(count, [], dict.fromkeys(pairs, 2), 10**6, 2, 0, 0)
    assert drawn == dict.fromkeys(pairs, 2)
    some = choose(count, [], dict.fromkeys(pairs, 9), max(1, count), 2, 0, 0)
    assert sum(some.values()) == max(1, count) and {one for pair in some for one in pair} == set(range(count))
    assert some == choose(count, [], dict.fromkeys(pairs, 9), max(1, count), 2, 0, 0), "by the seed alone"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"pairing": "adaptive"}, "pairing: adaptive needs games_per_pairing"),
        ({"pairing": "swiss", "games": 9}, "games: belongs to pairing: adaptive"),
        ({"pairing": "adaptive", "games_per_pairing": 2, "self_play": True}, "self_play: belongs to pairing: round"),
        ({"pool": many(61), "pairing": "adaptive", "games_per_pairing": 2}, "with 61 contestants; at most 60"),
    ],
)
def test_mistakes(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        resolve.plan(spec.parse(data(**entry), builtin()), builtin())
