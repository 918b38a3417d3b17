"""Tournaments of several runs: pools that grew, shrank, or were other people's, as one table of ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config.project import builtin
from harness.engines.mock import Mock
from tests.extensions.games.test_tournaments import BOLD, MEEK, RANDOM, data
from tests.helpers.commands import invoke


def play(folder: Path, pool: list[Any], model: str | None = None, **more: Any) -> str:
    """A tournament of this pool; its run's folder. The model bets."""
    engine = None if model is None else Mock(model=model, text=f"ACTION: {'BET' if model == 'x' else 'PASS'}")
    written = data(pool=pool, games_per_pairing=6) | more
    harness.evaluate(written, engine, output_path=folder, project=builtin())
    return str(folder)


def test_pools_of_several_runs_are_one_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever met nobody of the others is rated through those who met both."""
    first = play(tmp_path / "first", [BOLD, RANDOM])
    second = play(tmp_path / "second", [MEEK, RANDOM])
    code, out, _ = invoke(capsys, "report", first, second)
    rows = {line.split()[0]: line for line in out.partition("Rating:")[0].splitlines() if "[" in line}
    assert code == 0 and rows.keys() == {"bold", "meek", "random"}
    alone = [play(tmp_path / "whole", [BOLD, MEEK, RANDOM])]
    assert invoke(capsys, "report", *alone)[0] == 0
    games = {name: int(row.partition("]")[2].split()[1]) for name, row in rows.items()}
    assert games == {"bold": 12, "meek": 12, "random": 24}


def test_the_models_under_test_of_two_people_are_two_contestants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [play(tmp_path / name, [{"model": "model"}, RANDOM], name) for name in ("x", "y")]
    code, out, _ = invoke(capsys, "report", *runs)
    rated = out.partition("Rating:")[0]
    assert code == 0 and all(f"\n{name} " in rated for name in ("x", "y", "random")), out
    assert "\nmodel " not in rated


@pytest.mark.parametrize(
    ("pool", "more", "problem"),
    [
        ([{**MEEK, "label": "bold"}, RANDOM], {}, "bold is another contestant in each"),
        ([MEEK, RANDOM], {"seed": 7}, "; seed 0 → 7)"),
    ],
)
def test_what_is_another_game_or_another_contestant_is_refused(
    pool: list[Any], more: dict[str, Any], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = play(tmp_path / "first", [BOLD, RANDOM])
    second = play(tmp_path / "second", pool, **more)
    code, _, err = invoke(capsys, "report", first, second)
    assert code == 2 and problem in err
