"""The task `who_broke_it`: transcripts of failed teams, and readers who name the move that made them fail."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.api import Case, Outcome
from harness.api.errors import PluginError
from harness.config.project import find
from harness.extensions.blame.who_broke_it.teams import BrokenTeams
from harness.extensions.yaml_tasks.conformance import check_reply, check_task
from tests.helpers.samples import examples

TASK = find().load("tasks", "who_broke_it", None)  # type: ignore[arg-type]
SMALL = {"spec": "agentsnet_quick", "set": ["matrix.problem=[consensus]", "matrix.graphs=[small_world]"]}
CASE: Case = TASK().example()
FORM = TASK().reply(CASE, "Agent-0")


@pytest.mark.slow
def test_the_decisive_move_is_the_planted_one_and_stands_in_the_transcript() -> None:
    team = BrokenTeams(SMALL["spec"], SMALL["set"], ["wrong"])  # type: ignore[arg-type]
    found = team.episode(1, 0)
    assert found.verdict.finding == "blamed" and found.verdict.single and found.verdict.agents == (found.agent,)
    assert found.turns[found.culprit].turn.agent == found.agent
    task = TASK(**SMALL, faults=["wrong"], episodes=1)
    [case] = task.cases(None, 1)
    assert case.target == {"agent": found.agent, "turn": found.culprit}
    assert f"Turn {found.culprit} (round {found.turns[found.culprit].round}): {found.agent}" in case.public["question"]
    assert case.labels == {"group_size": 4, "length": "up to 25", "fault": "wrong"}


@pytest.mark.slow
@pytest.mark.parametrize("shows", ["moves", "prompts"])
def test_it_keeps_the_contract_of_tasks(shows: str) -> None:
    task = TASK(spec="worlds/four_way_stop", set=["matrix.talk=[0]"], faults=["wrong"], episodes=3, shows=shows)
    assert check_task(task) == []
    texts = [case.public["question"] for case in task.cases(None, 0)]
    assert len({*texts}) == 3 and all(("saw: " in text) == (shows == "prompts") for text in texts)


def test_any_one_of_several_right_moves_is_right() -> None:
    task, right = TASK(), [{"agent": "Ben", "turn": 1}, {"agent": "Ann", "turn": 2}]
    case = replace(CASE, target=right)

    def grades(agent: str, turn: int) -> tuple[Any, ...]:
        found = task.grade(case, Outcome(group={"agent": agent, "turn": turn}))
        return tuple(found[name] for name in ("score", "agent", "turn", "distance"))

    assert grades("Ben", 1) == grades("Ann", 2) == (1, 1, 1, 0)
    assert grades("Ann", 1) == (0, 1, 1, 0), "the agent of one and the turn of the other"
    assert grades("Ann", 0) == (0, 1, 0, 1)
    none = task.grade(replace(CASE, target=None), Outcome(group={"agent": "Ann", "turn": 0}))
    assert (none["score"], none["answered"]) == (None, 1)


@pytest.mark.parametrize(
    ("text", "agent", "turn"),
    [
        ("AGENT: Ben\nTURN: 1", "Ben", 1),
        ("I think Ann began it.\n\n**Agent:** ben\n**Turn:** 2 (round 0)", "Ben", 2),
        ('{"agent": "Ann", "turn": 0}', "Ann", 0),
        ("AGENT: Ben\nTURN: round 0, turn 1", "Ben", 1),
        ("AGENT: Ben\nTURN: in round 2: **Turn #1**", "Ben", 1),
        ("AGENT: Ben\nTURN: 1 (after turn 0)", "Ben", 1),
        ("AGENT: Ann\nTURN: 1\nNo, wait.\nAGENT: Ben\nTURN: Turn 1.", "Ben", 1),
    ],
)
def test_an_agent_and_a_turn_are_read(text: str, agent: str, turn: int) -> None:
    parsed = FORM.parse(text)
    assert parsed.error is None and parsed.action == {"agent": agent, "turn": turn}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("AGENT: Carl\nTURN: 1", "names one of the agents Ann, Ben"),
        ("It was Ben.", "names one of the agents Ann, Ben"),
        ("AGENT: Ben\nTURN: 3", "the number of a turn, 0 to 2"),
        ("AGENT: Ben\nTURN: -", "the number of a turn, 0 to 2"),
    ],
)
def test_what_is_missing_is_said(text: str, error: str) -> None:
    parsed = FORM.parse(text)
    assert parsed.error is not None and error in parsed.error
    assert parsed.fallback_action in (None, {"agent": "Ben", "turn": None})


def test_the_form_keeps_its_contract() -> None:
    assert check_reply(FORM) == []


@given(st.sampled_from(FORM.options))
@settings(max_examples=examples(3))
def test_what_is_written_is_read(action: dict[str, object]) -> None:
    for text in (FORM.written(action), json.dumps(action)):
        assert FORM.parse(text).action == action and FORM.allows(action)


@pytest.mark.parametrize(
    ("samples", "score", "agent", "distance"),
    [
        ([{"agent": "Ben", "turn": 1}], 1, 1, 0),
        ([{"agent": "Ben", "turn": 2}], 0, 1, 1),
        ([{"agent": "Ann", "turn": 1}, {"agent": "Ben", "turn": 1}], 0.5, 0.5, 0),
        ([{"agent": "Ben", "turn": None}], 0, 1, None),
        ([None], 0, 0, None),
    ],
)
def test_it_is_graded_by_the_truth(samples: list[object], score: float, agent: float, distance: float | None) -> None:
    grade = TASK().grade(CASE, Outcome(facts={"samples": samples}))
    assert (grade["score"], grade["agent"], grade["distance"]) == (score, agent, distance)


@pytest.mark.slow
def test_the_floors_and_the_ceiling_play(tmp_path: Path) -> None:
    only = ("matrix.team=[network of 4, shards of 5]", "task.episodes=4")
    numbers = {}
    for name in ("random", "who_broke_it/last_speaker", "who_broke_it/replay"):
        folder = tmp_path / name.rpartition("/")[2]
        done = harness.evaluate("who_broke_it", overrides=(*only, f"baseline={name}"), output_path=folder)
        assert [score.error for score in done.scores] == [None] * 8
        numbers[name] = sum(score.number("score") or 0 for score in done.scores)
    assert numbers["who_broke_it/replay"] == 8 > max(numbers["random"], numbers["who_broke_it/last_speaker"])


@pytest.mark.slow
def test_a_team_without_a_ceiling_or_without_decisive_faults_is_refused() -> None:
    with pytest.raises(PluginError, match="names no ceiling"):
        BrokenTeams("darkforest_quick", [], ["wrong"])


def test_a_task_without_a_fault_to_plant_is_refused() -> None:
    with pytest.raises(PluginError, match=r"(?s)no fault is planted.*faults: \[plausible\]"):
        next(TASK(**SMALL, faults=[]).cases(1, 0))
