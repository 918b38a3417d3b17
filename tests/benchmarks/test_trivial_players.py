"""Players that say nothing, repeat what they read or do the same thing always beat the floor of no shipped headline."""

from pathlib import Path
from typing import Any

import pytest

from harness.api import Request
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.analysis.standings import standings
from harness.runtime.options import Options
from tests.helpers import shipped

from .test_shipped_leaderboards import MAKE

QUICK = ("dpbench_quick", "agentsnet_quick", "silo_quick", "negotiation", "repeated_dilemmas", "networks/consensus")
MAS = (
    "matrix.agents=[3, 5]",
    "matrix.items=[5, 10]",
    "matrix.family=[random, near_desc, desc]",
    "protocol.max_rounds=4",
)
SMALL = {
    "agentsnet": ("matrix.size=[4]",),
    "agentsnet_byzantine": ("matrix.size=[{inherits: 4}]",),
    "agentsnet_quick": ("task.instances=3",),
    "agentsnet_scale": ("matrix.size=[20]",),
    "mas_bench": MAS,
    "mas_quick": MAS,
    "silo_bench": ("matrix.agents=[2]", "protocol.max_rounds=4"),
    "silo_quick": ("protocol.max_rounds=4",),
    "dpbench_scale": (
        "matrix.condition=[{inherits: sim5nc}, {inherits: sim7nc}, {inherits: sim7c}, {inherits: seq5nc}]",
    ),
    "discussion_quick": (
        "matrix.style=[{inherits: free}]",
        "matrix.decision=[majority]",
        "matrix.seat=[{inherits: third}]",
    ),
    "teams/dag_scaling": ("matrix.graph=[mesh]", "matrix.seats=[4]", "headline.where={seats: 4}"),
}
"""Spec → conditions that take seconds. These players remember nothing, so that more rounds are more of the same."""
LIMITS = {**MAKE.LIMITS, **dict.fromkeys(("cross/copies", "cross/links", "cross/second_run", "who_broke_it"), 8)}
"""Spec → so many cases of a condition, where all would take long: fewer than six tell no two players apart."""
NONE = {
    **dict.fromkeys(
        ("darkforest", "darkforest_ablations", "darkforest_disclosure", "darkforest_panels", "darkforest_quick"),
        "answers are combined by what was calibrated on the very agents that play: others cannot take their seats",
    ),
    **dict.fromkeys(("humaneval", "teams/software", "teams/two_agents"), "boards run no programs of models"),
    **dict.fromkeys(
        [f"studies/{n}" for n in ("coordinator", "first_or_last_lie", "last_round", "opinions", "who_changes_minds")],
        "a study compares what happens to one group, and no players",
    ),
    "judged": "there is no number before a judge has read the answers",
    "silo_silence": "what can be guessed is the question, and the scripted guesses are its ceiling",
    "tournament": "strategies meet one another, random play and constant ones among them",
}
"""Shipped spec without a floor → why. docs/reference/tables.md says the same."""


def echo(request: Request) -> str:
    return str(request.thread.messages[-1]["content"])


def constant(index: int) -> dict[str, str]:
    return {"use": "expression", "label": f"option {index}", "act": f"options[{index}] if options else noop"}


PLAYERS: dict[str, Any] = {
    "mute": Mock(model="mute", text=""),
    "echo": Mock(model="echo", function=echo),
    "zero": Mock(model="zero", text="The answer is 0.\nFinal answer: 0"),
    "first option": constant(0),
    "last option": constant(-1),
}


def test_a_spec_has_a_floor_or_a_reason() -> None:
    names = shipped.specs()
    assert {name for name in names if not headline(name).get("floor")} == NONE.keys()


def headline(name: str) -> dict[str, Any]:
    return dict(spec.load(name, builtin()).data.get("headline", {}))


def better_than_the_floor(name: str, player: Any, limit: int | None, folder: Path) -> bool:
    """Whether it has a number and is significantly better than the floor on the same episodes."""
    project = builtin()
    others = spec.load(name, project).data.get("models", {})
    mute = [f"models.{other}={{use: mock, text: ''}}" for other in others]  # what plays beside the player
    loaded = spec.load(name, project, [*mute, *SMALL.get(name, ())], limit=limit)
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


HEADLINES = {name: headline(name) for name in MAKE.SPECS}
WITH_FLOOR = [name for name, head in HEADLINES.items() if head.get("floor")]
WITH_BOTH = [name for name in WITH_FLOOR if HEADLINES[name].get("ceiling")]
ALIKE = ("networks/consensus",)
"""Where one constant answer is all there is to do: floor and ceiling are the same."""


@pytest.mark.slow
@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("name", WITH_FLOOR)
def test_none_beats_the_floor_of_any_spec(name: str, player: str, tmp_path: Path) -> None:
    assert not better_than_the_floor(name, PLAYERS[player], LIMITS.get(name), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_BOTH)
def test_so_few_episodes_tell_a_ceiling_from_its_floor(name: str, tmp_path: Path) -> None:
    """Otherwise the test above could not fail."""
    ceiling = HEADLINES[name]["ceiling"]
    assert better_than_the_floor(name, ceiling, LIMITS.get(name), tmp_path) == (name not in ALIKE)
