"""Teams of tournaments: who sits where, in games whose teams are fixed, drawn, and written in the spec."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError
from harness.config import resolve, spec
from harness.config.plan import Plan
from harness.config.project import builtin
from harness.tables import CorpusRecord
from tests.extensions.games.test_tournaments import BOLD, DICE, MEEK, RANDOM

POOL = [{"policy": "random"}, {"label": "last", "policy": {"use": "expression", "act": "options[-1]"}}]


def body(task: dict[str, Any], teams: Any, pool: Any = POOL, **more: Any) -> dict[str, Any]:
    tournament = {"pool": pool, "teams": teams, "games_per_pairing": 2} | more
    return {"name": "teams", "task": task, "protocol": "steps", "tournament": tournament}


def planned(*args: Any, **more: Any) -> Plan:
    return resolve.plan(spec.parse(body(*args, **more), builtin()), builtin())


def sides(plan: Plan) -> list[tuple[str, dict[str, str]]]:
    """(Who is first, agent → contestant) of every game."""
    return [(str(condition.labels["first"]), dict(case.roles)) for condition, case, _ in plan.episodes()]


@pytest.mark.parametrize("teams", ["game", [[0, 2], [1, 3]], [["Player-2", 0], ["Player-1", "Player-3"]]])
@pytest.mark.parametrize("game", ["spades", "bridge"])
def test_partners_sit_opposite_each_other_and_both_pairs_change_sides(game: str, teams: Any) -> None:
    found = sides(planned({"use": "openspiel", "game": game}, teams))
    other = {"random": "last", "last": "random"}
    assert [first for first, _ in found] == ["random", "random", "last", "last"]
    for first, roles in found:
        assert [roles[f"Player-{i}"] for i in range(4)] == [first, other[first]] * 2


def test_the_mafia_is_one_contestant_and_the_village_another_in_every_case(tmp_path: Path) -> None:
    task = {"use": "textarena", "env": "SecretMafia-v0", "players": 6}
    pool = [{"policy": "textarena/random"}, {"label": "other", "policy": "textarena/random"}]
    run = harness.evaluate(body(task, "game", pool, games_per_pairing=4), output_path=tmp_path, project=builtin())
    mafias = set()
    for transcript in run.transcripts():
        assert transcript.outcome is not None
        roles = transcript.outcome.facts["secret_roles"]
        mafia = frozenset(agent for agent, role in roles.items() if role == "Mafia")
        mafias.add(mafia)
        village = str(transcript.condition.rpartition("first=")[2])
        assert {agent for agent, name in transcript.roles.items() if name != village} == mafia
        assert len(mafia) == 2
    assert len(mafias) > 1, "the cases differ in who the mafia is"
    for score in run.scores:
        record = score.numbers["games/results"]
        assert isinstance(record, CorpusRecord)
        won = {name: {seat[1] for seat in record.value if seat[0] == name} for name, *_ in record.value}
        assert sorted(map(sorted, won.values())) == [[-1.0], [1.0]], "a team wins and loses together"


def test_teams_meet_in_swiss_rounds_and_of_a_larger_pool_two_at_a_time(tmp_path: Path) -> None:
    world = {**DICE, "agents": 4}
    pool = [BOLD, MEEK, RANDOM, {"policy": "random", "label": "r2"}]
    games = Counter(frozenset(roles.values()) for _, roles in sides(planned(world, [[0, 3], [1, 2]], pool)))
    assert len(games) == 6 and {*games.values()} == {4}
    drawn = body(world, [[0, 3], [1, 2]], pool, pairing="swiss", rounds=2) | {"metrics": ["score", "games/results"]}
    run = harness.evaluate(drawn, output_path=tmp_path, project=builtin())
    assert Counter(score.labels["round"] for score in run.scores) == {1: 8, 2: 8} and not run.failed


@pytest.mark.parametrize(
    ("game", "teams", "problem"),
    [
        ("chess", "game", "teams: this game says nothing of teams"),
        ("spades", [[0, 2], [1]], "teams: Player-3 is in no team"),
        ("spades", [[0, 2], [1, 2, 3]], "teams: Player-2 is in two places"),
        ("spades", [[0, 2], [1, 4]], "teams: no agent 4"),
        ("spades", [[0, 2], [1, "Player-33"]], "teams: no agent 'Player-33'"),
        ("spades", [[0, 1, 2, 3]], "a game of one team has no pairings"),
        ("spades", [[0], [1], [2, 3]], "the game has 3 teams, the pool 2 contestants"),
        ("spades", "gmae", "'teams' must be game or a list, found text 'gmae'. Did you mean game?"),
    ],
)
def test_mistakes_in_teams_are_found_before_a_run(game: str, teams: Any, problem: str) -> None:
    with pytest.raises(SpecError) as error:
        planned({"use": "openspiel", "game": game}, teams)
    assert problem in str(error.value)
