"""Tournaments of several runs: pools that grew, shrank, or were other people's, as one table of ratings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harness
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.tables import EpisodeScore
from tests.extensions.games.test_seat_ratings import made, tournament
from tests.extensions.games.test_tournaments import BOLD, MEEK, RANDOM, data
from tests.helpers.commands import invoke


def play(folder: Path, pool: list[Any], model: str | None = None, games: int = 6, **more: Any) -> str:
    """A tournament of this pool; its run's folder. The model bets."""
    engine = None if model is None else Mock(model=model, text=f"ACTION: {'BET' if model == 'x' else 'PASS'}")
    written = data(pool=pool, games_per_pairing=games) | more
    harness.evaluate(written, engine, output_path=folder, project=builtin())
    return str(folder)


def rated(out: str) -> dict[str, str]:
    """Contestant → its row in the table of ratings."""
    return {line.split()[0]: line for line in out.partition("Rating:")[0].splitlines() if "[" in line}


def test_pools_of_several_runs_are_one_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever met nobody of the others is rated through those who met both."""
    first = play(tmp_path / "first", [BOLD, RANDOM])
    second = play(tmp_path / "second", [MEEK, RANDOM])
    code, out, _ = invoke(capsys, "report", first, second)
    rows = rated(out)
    assert code == 0 and rows.keys() == {"bold", "meek", "random"}
    alone = [play(tmp_path / "whole", [BOLD, MEEK, RANDOM])]
    assert invoke(capsys, "report", *alone)[0] == 0
    games = {name: int(row.partition("]")[2].split()[1]) for name, row in rows.items()}
    assert "count once" not in out
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


def table(runs: Sequence[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Contestant → [rating, low, high], of the ratings of all runs together."""
    code, out, err = invoke(capsys, "report", *runs, "--format", "json")
    assert code == 0, err
    ratings = next(one for one in json.loads(out) if one["title"].endswith("ratings"))
    return {
        row["key"]["contestant"]: [row["cells"][0][key] for key in ("value", "low", "high")]
        + [row["cells"][2]["value"]]
        for row in ratings["rows"]
    }


def test_runs_with_other_numbers_of_cases_are_one_tournament(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What both have counts once; what one has more of counts too."""
    small = play(tmp_path / "small", [BOLD, RANDOM], games=4)
    large = play(tmp_path / "large", [BOLD, MEEK, RANDOM])
    code, out, err = invoke(capsys, "report", small, large)
    assert code == 0, err
    assert "8 episodes are in several runs, and count once." in " ".join(out.split())
    assert table([small, large], capsys) == table([large, small], capsys)
    other = play(tmp_path / "other", [BOLD, RANDOM], games=8)
    _, out, _ = invoke(capsys, "report", other, large)
    assert "12 to 16 of each pairing, all of which count." in " ".join(out.split())
    limited = play(tmp_path / "limited", [BOLD, RANDOM], limit=3)
    assert invoke(capsys, "report", limited, large)[0] == 0
    assert table([limited, large], capsys) == table([large], capsys)


def test_a_case_that_is_another_one_in_each_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [play(tmp_path / name, [BOLD, RANDOM], name="dice") for name in ("first", "second")]
    file = Path(runs[1]) / "run.json"
    meta = json.loads(file.read_text())
    cases = meta["keys"]["tournament"]["cases"]
    cases[next(iter(cases))] = "0" * 16
    meta["cases"]["questions"] = "changed"
    file.write_text(json.dumps(meta))
    code, _, err = invoke(capsys, "report", *runs)
    assert code == 2 and f"case {next(iter(cases))} is another one in each" in err


WHOLE = [BOLD, MEEK, RANDOM, {"policy": "random", "label": "other"}]


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], str]:
    """Runs that are parts of one tournament, some of which overlap; and a run of the whole."""
    folder = tmp_path_factory.mktemp("parts")
    pools = [[one, other] for one, other in itertools.combinations(WHOLE, 2)]
    runs = [play(folder / f"part{i}", pool) for i, pool in enumerate([*pools, WHOLE[:3], WHOLE[1:]])]
    return runs, play(folder / "whole", WHOLE)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(range(8)), st.integers(6, 8))
def test_order_and_number_of_run_folders_never_change_ratings(
    parts: tuple[list[str], str], capsys: pytest.CaptureFixture[str], order: list[int], count: int
) -> None:
    """Whatever runs make up a tournament, in whatever order they are given."""
    runs, whole = parts
    chosen = [*dict.fromkeys([*order[:count], *range(6)])]
    expected, found = table([whole], capsys), table([runs[i] for i in chosen], capsys)
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, abs=1e-3)


SCORES = tournament(5, advantage=1.0, deals=3)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_order_and_number_of_runs_never_change_ratings(drawn: st.DataObject) -> None:
    """Every episode is in some run, and may be in several; runs come in any order."""
    count = drawn.draw(st.integers(2, 4))
    homes = st.sets(st.integers(0, count - 1), min_size=1)
    runs: list[list[EpisodeScore]] = [[] for _ in range(count)]
    for score in SCORES:
        for i in drawn.draw(homes):
            runs[i].append(replace(score, labels={**score.labels, "model": f"policies (run{i})"}))
    mixed = [drawn.draw(st.permutations(run)) if i == 0 else run for i, run in enumerate(runs)]
    found, expected = (
        {row.key["contestant"]: [(cell.value, cell.low, cell.high) for cell in row.cells] for row in made(one).rows}
        for one in ([score for run in drawn.draw(st.permutations(mixed)) for score in run], SCORES)
    )
    assert found.keys() == expected.keys()
    for name, cells in expected.items():
        for here, cell in zip(found[name], cells, strict=True):
            assert here == pytest.approx(cell, abs=1e-3)
