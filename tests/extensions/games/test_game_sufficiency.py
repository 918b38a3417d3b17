"""What a seat reads over a game is one-to-one with what the game lets it know: nothing leaks, and nothing is lost.

`results/games_table.py` plays games twice and more, each time with another deal or another move somewhere, and
compares.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.extensions.games.test_openspiel import GRIDS, KINDS, ONE_PLAYER, SLOW_TO_LOAD, WRAPPED

ROOT = Path(__file__).parents[3]


def module() -> ModuleType:
    """results/games_table.py."""
    found = importlib.util.spec_from_file_location("results_games_table", ROOT / "results" / "games_table.py")
    assert found is not None and found.loader is not None
    made = sys.modules[found.name] = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


TABLE = module()
GAMES = sorted({*KINDS, *WRAPPED, *GRIDS.values(), *TABLE.OTHERS} - {*ONE_PLAYER, *SLOW_TO_LOAD})


def same(text: str, games: int, twins: int) -> None:
    """Whether texts and knowledge are one-to-one, and texts say what is legal."""
    found = TABLE.compared(text, games, twins)
    assert found.leaks == [] and found.losses == []
    assert found.answered == found.states > 0


@pytest.mark.sampled(12)
@pytest.mark.parametrize("text", GAMES)
def test_a_seat_reads_what_it_may_know(text: str) -> None:
    same(text, 1, 4)


@pytest.mark.slow
@pytest.mark.parametrize("text", GAMES)
def test_a_seat_reads_what_it_may_know_over_more_games(text: str) -> None:
    same(text, 2, 8)


@pytest.mark.slow
@pytest.mark.parametrize("text", SLOW_TO_LOAD)
def test_a_seat_reads_what_it_may_know_where_ends_take_seconds(text: str) -> None:
    same(text, 1, 2)


def test_a_text_that_leaks_or_loses_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    states = sys.modules[type(TABLE.condition("kuhn_poker").task).__module__.rpartition(".")[0] + "._openspiel.state"]
    monkeypatch.setattr(states, "readable", lambda name, text, seat: "")
    assert TABLE.compared("kuhn_poker", 2, 8).losses
    monkeypatch.setattr(states.Rules, "text", lambda self, state, seat: str(state))
    monkeypatch.setattr(states, "readable", lambda name, text, seat: text)
    assert TABLE.compared("kuhn_poker", 2, 8).leaks


@pytest.mark.parametrize("game", ["nim", "kuhn_poker", "matrix_pd"])
def test_the_page_has_what_the_command_prints(game: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert TABLE.main(["--check", game]) == 0
    assert capsys.readouterr().out.strip() in TABLE.PAGE.read_text("utf-8").split("\n")


def test_the_page_has_a_row_for_each_game_and_tells_where_one_fails() -> None:
    page = TABLE.PAGE.read_text("utf-8").partition("\n## ")[0]
    rows = [line.split(" | ") for line in page.split("\n") if line.startswith("| `")]
    assert [row[0].split("`")[1] for row in rows] == TABLE.games()
    assert {row[0].partition("` ")[2] for row in rows} <= {"", "(leaks)", "(not enough)"}
    assert all(len(row) == len(TABLE.HEAD) for row in rows)
