"""`harness replay` of runs whose agents' programs called a model of the run."""

from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SpecError
from harness.config import building
from harness.engines.mock import Mock
from harness.extensions.replay import replayed
from harness.plugins import approvals
from tests.helpers.inner_agents import Place

ASKS = 'ask("say b"); say(text=ask("say a"))'
EPISODE = "agents=2/c0/0"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


@pytest.fixture
def parent(place: Place) -> harness.Run:
    return place.play({"command": place.program(ASKS), "label": "asks"}, rounds=2)


def test_kept_turns_keep_what_they_asked(place: Place, parent: harness.Run) -> None:
    asked = len(place.asked)
    swapped = replayed(parent, swap={"S0": "coin"}, project=place.project)
    assert len(place.asked) == asked
    assert [score.usage for score in parent.scores] == [
        {"parrot": {"input": 16, "output": 8, "replies": 4, "inner_calls": 8}}
    ]
    assert [score.usage for score in swapped.scores] == [
        {"parrot": {"input": 8, "output": 4, "replies": 2, "inner_calls": 4}}
    ]


def test_a_turn_with_another_reply_asked_nothing(place: Place, parent: harness.Run) -> None:
    """Two turns later come the changed reply, and that of another model."""
    done = replayed(parent, EPISODE, change={0: "b"}, model=Mock(model="other", text="a"), project=place.project)
    [usage] = [score.usage for score in done.scores]
    assert usage["parrot"] == {"input": 4, "output": 2, "replies": 1, "inner_calls": 2}
    assert set(usage) == {"parrot", "asks + other"}


def test_an_agent_with_a_model_of_the_run_is_not_asked_again(place: Place, parent: harness.Run) -> None:
    fields = {"use": "agent", "command": place.program(ASKS), "inner": place.parrot}
    agent = building.engine(fields, place.project)
    with pytest.raises(SpecError, match=r"cannot go on with a recorded conversation(.|\n)*--swap"):
        replayed(parent, EPISODE, change={0: "b"}, model=agent, project=place.project)


@pytest.mark.parametrize("inner", ["small", "own", "model"])
def test_agents_of_the_spec_keep_what_they_asked(place: Place, inner: str) -> None:
    agent = {"use": "agent", "command": place.program(ASKS), "inner": place.parrot if inner == "own" else inner}
    models = {"me": agent} | ({"small": place.parrot} if inner == "small" else {})
    played = {"task": {"use": "pick", "agents": 2, "cases_made": 1}, "protocol": {"use": "rounds", "rounds": 1}}
    spec: dict[str, Any] = {"extends": "toy", "matrix": None, "tables": [], **played}
    spec |= {"models": models, "agents": {"default": "me"}}
    given: dict[str, Any] = {"model": "parrot", "model_args": {"log": str(place.log)}} if inner == "model" else {}
    run = harness.evaluate(
        spec, project=place.project, output_path=place.folder / "run", allow_code_execution=True, **given
    )
    with approvals.allowing(True):
        done = replayed(run, swap={"S0": "coin"}, project=place.project)
    [[before], [after]] = ([*score.usage.values()] for one in (run, done) for score in one.scores)
    assert before["inner_calls"] == 2 * after["inner_calls"] > 0
