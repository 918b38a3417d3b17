"""The scale of skill: between what random play gets and what a strong player gets, against random players."""

import importlib.util
import json
import random
import statistics
import sys
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any

import pyspiel
import pytest

import harness
from harness.api import Outcome
from harness.config import spec
from harness.config.project import builtin
from tests.extensions.games.test_openspiel import first, task_of
from tests.helpers.commands import invoke

ROOT = Path(__file__).parents[3]
FILE = ROOT / "registry" / "tasks" / "_openspiel" / "skill.json"


def module() -> ModuleType:
    """results/skill.py."""
    found = importlib.util.spec_from_file_location("results_skill", ROOT / "results" / "skill.py")
    assert found is not None and found.loader is not None
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


SKILL = module()


def graded(game: str, returns: dict[str, float], unscored: tuple[str, ...] = ()) -> Any:
    task = task_of(game)
    case = first(task)
    object.__setattr__(case, "unscored", frozenset(unscored))
    facts = {"returns": returns, "invalid": dict.fromkeys(returns, 0)}
    return task.grade(case, Outcome(facts=facts))["skill"]


def test_random_play_has_no_skill_and_the_strong_player_all() -> None:
    kept = json.loads(FILE.read_text())["leduc_poker"]
    ends = [dict(zip(("Player-0", "Player-1"), kept[end], strict=True)) for end in ("floor", "ceiling")]
    assert graded("leduc_poker", ends[0]) == pytest.approx(0) and graded("leduc_poker", ends[1]) == pytest.approx(1)
    half = {"Player-0": statistics.fmean(end["Player-0"] for end in ends), "Player-1": -100.0}
    assert graded("leduc_poker", half, ("Player-1",)) == pytest.approx(0.5)
    assert graded("leduc_poker", {"Player-0": -9.0, "Player-1": 9.0}, ("Player-1",)) < 0


def test_games_without_a_scale_have_no_skill() -> None:
    assert graded("matrix_pd", {"Player-0": 5.0, "Player-1": 5.0}) is None, "nobody has measured it"
    assert graded("lewis_signaling", {"Player-0": 1.0, "Player-1": 1.0}) is None, "no play beats random play"


def test_exact_ends_are_those_of_openspiel_and_the_file_has_them() -> None:
    for game in ("kuhn_poker", "lewis_signaling"):
        assert json.loads(json.dumps(SKILL.measured(game))) == json.loads(FILE.read_text())[game]
    entry = SKILL.measured("kuhn_poker")
    assert entry["floor"] == [0.125, -0.125] and entry["ceiling"] == [0.5, 0.4167]


def test_the_file_says_how_each_game_was_measured() -> None:
    kept = json.loads(FILE.read_text())
    assert set(kept) == set(SKILL.GAMES)
    for game, entry in kept.items():
        settings = {"game": game, **{key: entry[key] for key in ("how", "simulations", "games", "floors")}}
        digest = blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=8).hexdigest()
        assert entry["digest"] == digest and entry["how"] == SKILL.GAMES[game], game
        players = pyspiel.load_game(game).num_players()
        assert all(len(entry[end]) == players for end in ("floor", "ceiling", "floor_error", "ceiling_error"))


def test_the_page_says_how_sure_the_ends_are() -> None:
    kept = json.loads(FILE.read_text())
    assert SKILL.PAGE.read_text("utf-8").endswith("\n\n" + SKILL.section(kept))
    entry = {"floor": [0, -1], "ceiling": [2, 1], "floor_error": [0.3, 0.4], "ceiling_error": [0, 0.2]}
    assert SKILL.unsure(entry) == pytest.approx((0.125, 0.05))


def test_a_strong_player_that_has_won_all_its_games_may_still_lose_one() -> None:
    game = pyspiel.load_game("connect_four")
    assert SKILL.error([1.0] * 100, game) == pytest.approx(statistics.stdev([1.0] * 101 + [-1.0]) / 102**0.5)
    assert SKILL.error([1.0, -1.0], game) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["game_suite", "game_suite_hidden"])
def test_every_game_of_the_suites_has_a_scale(name: str) -> None:
    games = spec.load(name, builtin()).data["matrix"]["game"]
    scales = sys.modules[type(task_of("nim")).__module__.rpartition(".")[0] + "._openspiel.skill"].scales()
    assert [game for game in games if game not in scales or not scales[game].measures] == []


def test_beliefs_are_states_that_a_seat_cannot_tell_apart() -> None:
    state, rng = pyspiel.load_game("phantom_ttt").new_initial_state(), random.Random(0)
    for action in (4, 0, 8):
        state.apply_action(action)
    found = list(SKILL.beliefs(state, 1, rng, 20))
    assert len(found) == 20 and {str(one) for one in found} != {str(state)}
    assert {one.information_state_string(1) for one in found} == {state.information_state_string(1)}


def test_the_command_checks_and_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    assert SKILL.main(["--check", "kuhn_poker"]) == 0
    with pytest.raises(SystemExit):
        SKILL.main(["chess960"])
    assert "no scale is kept of chess960" in capsys.readouterr().err


@pytest.mark.slow
def test_the_hidden_suite_plays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = harness.evaluate("game_suite_hidden", limit=2, output_path=tmp_path / "run")
    assert not run.failed and all(score.numbers["skill"] is not None for score in run.scores)
    assert invoke(capsys, "validate", "--spec", "game_suite_hidden")[0] == 0
