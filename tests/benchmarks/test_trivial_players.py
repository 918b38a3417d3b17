"""Players that say nothing, repeat their prompt or do the same thing always beat the floor of no shipped headline."""

from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engine_api import Request
from harness.engines.mock import Mock
from harness.evaluation import execute
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.analysis.standings import standings
from harness.runtime.options import Options

from .test_shipped_leaderboards import MAKE

QUICK = ("dpbench_quick", "agentsnet_quick", "silo_quick", "negotiation", "repeated_dilemmas", "networks/consensus")


def echo(request: Request) -> str:
    return str(request.thread.messages[-1]["content"])


def constant(index: int) -> dict[str, str]:
    return {"use": "expression", "label": f"option {index}", "act": f"options[{index}] if options else noop"}


PLAYERS: dict[str, Any] = {
    "mute": Mock(model="mute", text=""),
    "echo": Mock(model="echo", function=echo),
    "first option": constant(0),
    "last option": constant(-1),
}


def better_than_the_floor(name: str, player: Any, limit: int | None, folder: Path) -> bool:
    """Whether it has a number and is significantly better than the floor on the same episodes."""
    project = builtin()
    others = spec.load(name, project).data.get("models", {})
    mute = [f"models.{other}={{use: mock, text: ''}}" for other in others]  # what plays beside the player
    loaded = spec.load(name, project, mute, limit=limit)
    floor = loaded.data["headline"]["floor"]
    runs = []
    for role, who in (("floor", floor), ("player", player)):
        if isinstance(who, Mock):
            plan = resolve.plan(loaded, project, who)
        else:
            plan = resolve.plan(resolve.with_baseline(loaded, who), project)
        done = execute(plan, Options(output_path=folder / role))
        runs.append(RunScores({**done.meta, "run": role}, done.scores, (), done.metrics, {}, done.headline))
    ranks = {row.model: row.ranks for row in standings(runs).rows}
    [lowest] = [ranks for model, ranks in ranks.items() if model in runs[0].models or model.endswith("(floor)")]
    return lowest is not None and lowest[0] > 1


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", QUICK)
def test_none_beats_the_floor_of_a_quick_spec(name: str, player: str, tmp_path: Path) -> None:
    assert not better_than_the_floor(name, PLAYERS[player], 2, tmp_path)


WITH_FLOOR = [name for name in MAKE.SPECS if spec.load(name, builtin()).data.get("headline", {}).get("floor")]


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", WITH_FLOOR)
def test_none_beats_the_floor_of_any_spec(name: str, player: str, tmp_path: Path) -> None:
    assert not better_than_the_floor(name, PLAYERS[player], MAKE.LIMITS.get(name), tmp_path)
