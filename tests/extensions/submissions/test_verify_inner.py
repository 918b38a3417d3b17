"""`harness verify` of runs whose agents' programs called a model of the run, and of runs whose models are all in the
spec."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.config import resolve
from harness.config.project import find
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.extensions.agents.agent import Agent
from harness.extensions.submissions.archive import pack, unpack
from harness.extensions.submissions.check import CLAIMED, CONSISTENT, Verification, verify
from harness.plugins import approvals
from harness.runtime.sources import code
from tests.extensions.submissions.test_verify import SPEC, Forged
from tests.helpers.inner_agents import MODULE, Place

ASKS = 'ask("say b"); say(text=ask("say a"))'
FAILS = """
if question["agent"] == "S0" and question["id"].split("/")[-2] == "0":
    sys.exit(3)
call("too long" if question["agent"] == "S1" else "say a")
answers = [call(f"say {i}") for i in range(4)]
if answers[-1][0] != 200 and question["agent"] == "S1": sys.exit(1)
say(text="what?" if question["id"].endswith("/0") else "a")
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def check(run: harness.Run, place: Place) -> Verification:
    asked = len(place.asked)
    with approvals.allowing(True):
        verdict = verify(run.folder, place.project)
    assert len(place.asked) == asked, "no model is asked, and no program runs"
    return verdict


def evaluated(place: Place, models: dict[str, Any], *given: Any, agents: Any = None, **more: Any) -> harness.Run:
    task = {"use": "pick", "agents": 2, "cases_made": 2}
    spec: dict[str, Any] = {"extends": "toy", "name": "x", "matrix": None, "tables": [], "task": task, "models": models,
            "agents": agents or {"default": "me"}, "protocol": {"use": "rounds", "rounds": 2}}  # fmt: skip
    return harness.evaluate(
        spec, *given, project=place.project, output_path=place.folder / "run", allow_code_execution=True, **more
    )


def own_engine(place: Place) -> harness.Run:
    return place.play({"command": place.program(ASKS)}, rounds=2)


def limits_and_failures(place: Place) -> harness.Run:
    limits = {"turn": {"calls": 3}, "seat": {"calls": 7}}
    run = place.play({"command": place.program(FAILS), "inner_limits": limits}, rounds=4, max_error_rate=1.0)
    kinds = {move.get("error_kind") for move in place.lines("move")}
    assert {"limit", "request"} <= kinds and any(move["inner"].get("failed") for move in place.lines("move"))
    return run


def entry_of_the_spec(place: Place) -> harness.Run:
    fields = {"command": place.program(ASKS), "inner": "small"}
    agents = {"default": "model", "plain": {"model": "small", "count": 1}}
    return evaluated(place, {"small": place.parrot}, "agent", model_args=fields, agents=agents)


def entry_that_plays_no_seat(place: Place) -> harness.Run:
    fields = {"command": place.program(ASKS), "inner": "small"}
    return evaluated(place, {"small": place.parrot}, "agent", model_args=fields, agents={"default": "model"})


def agent_of_the_spec(place: Place) -> harness.Run:
    agent = {"use": "agent", "command": place.program(ASKS)}
    return evaluated(place, {"me": {**agent, "inner": "small"}, "small": place.parrot})


def agent_with_its_own_engine(place: Place) -> harness.Run:
    return evaluated(place, {"me": {"use": "agent", "command": place.program(ASKS), "inner": place.parrot}})


def given_model_behind_an_agent(place: Place) -> harness.Run:
    agent = {"use": "agent", "command": place.program(ASKS), "inner": "model"}
    return evaluated(place, {"me": agent}, "parrot", model_args={"log": str(place.log)})


@pytest.mark.parametrize(
    "played",
    [
        own_engine, limits_and_failures, entry_of_the_spec, entry_that_plays_no_seat, agent_of_the_spec,
        agent_with_its_own_engine, given_model_behind_an_agent,
    ],
)  # fmt: skip
def test_a_run_with_inner_calls_is_consistent(place: Place, played: Callable[[Place], harness.Run]) -> None:
    verdict = check(played(place), place)
    assert (verdict.level, verdict.differences) == (CONSISTENT, [])


def test_a_function_with_a_model(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "verified_thinkers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(place.folder))
    run = place.play({"call": "verified_thinkers:function", "args": {"word": "a"}}, rounds=2)
    verdict = check(run, place)
    assert (verdict.level, verdict.differences) == (CONSISTENT, [])


def test_an_archive_and_scores_written_again_stay_consistent(place: Place, tmp_path: Path) -> None:
    run = own_engine(place)
    before = {name: (run.folder / name).read_bytes() for name in ("scores.jsonl", "results.json", "tables.json")}
    rescored(run.folder, place.project)
    assert before == {name: (run.folder / name).read_bytes() for name in before}
    pack(run.folder, tmp_path / "run.zip", {})
    (tmp_path / "unpacked").mkdir()
    unpack(tmp_path / "run.zip", tmp_path / "unpacked")
    assert verify(tmp_path / "unpacked", place.project).level == CONSISTENT


@pytest.mark.parametrize("forgery", ["usage", "no inner engine"])
def test_forged_inner_calls_are_found(place: Place, forgery: str) -> None:
    run = own_engine(place)
    forged = Forged(run.folder)
    if forgery == "usage":
        for move in forged.moves():
            move["inner"]["calls"] = 1
        forged.write()
    else:
        forged.meta(lambda meta: meta.pop("inner"))
    assert check(run, place).level == CLAIMED


def test_a_run_whose_models_are_all_in_the_spec_is_consistent(place: Place) -> None:
    verdict = check(evaluated(place, {"me": place.parrot}), place)
    assert (verdict.level, verdict.differences) == (CONSISTENT, [])


def test_the_code_of_other_runs_leaves_inner_calls_out() -> None:
    """Such a run is verified as before, whatever becomes of what only inner calls need."""
    models = Agent(command="true", inner="mock"), Mock()
    plans = [resolve.plan(parse(SPEC, find()), find(), model) for model in models]
    files = [code(plan)["metrics"].keys() & {"metrics/_inner.py", "metrics/_numbers.py"} for plan in plans]
    assert files == [{"metrics/_inner.py", "metrics/_numbers.py"}, {"metrics/_numbers.py"}]
