"""Profiles: one word plays the game that published figures come from, and tables say where a run plays another one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Action, Turn
from harness.config import resolve, spec
from harness.evaluation.evaluate import evaluate
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.extensions.analysis.published import against
from harness.extensions.games.worlds import SteppedTask
from harness.runtime.steps import Drive, drive
from tests.benchmarks.dpbench.dining_kit import BUILTIN, fairness, table, throughput
from tests.helpers import shipped

ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
PUBLISHED = shipped.published()
RANDOM = ("sim5nc", "sim5c", "sim10nc", "seq5nc")
"""The conditions of the published random baseline, in the order in which one stream of random numbers played them."""


def replayed(name: str, *overrides: str) -> dict[str, list[Drive]]:
    """30 episodes of each condition of a spec's game, all choices from one `random.Random(42)`."""
    plan = resolve.plan(spec.load(name, BUILTIN, overrides), BUILTIN, None)
    by_name = {str(condition.labels["condition"]): condition for condition in plan.conditions}
    stream = random.Random(42)

    def answer(turn: Turn) -> Action:
        act = stream.choice(ACTIONS)
        return act if turn.reply.allows(act) else {"act": act, "message": None}

    return {
        code: [
            drive(by_name[code].protocol, by_name[code].task, by_name[code].task.example(), answer, 0)
            for _ in range(30)
        ]
        for code in RANDOM
    }


def deadlocks(played: Sequence[Drive]) -> list[bool]:
    return [episode.outcome.facts["end"] == "deadlock" for episode in played]


@pytest.mark.slow
def test_release_02_gives_the_published_random_baseline_to_the_last_digit() -> None:
    result = replayed("dpbench_release02")
    records = next(table.records for table in PUBLISHED if table.id == "dpbench/random")
    assert len(records) == 12
    for record in records:
        played = result[record.labels["condition"]]
        value = {
            "dpbench/deadlock_rate": fmean(deadlocks(played)),
            "dpbench/throughput": fmean(map(throughput, played)),
            "dpbench/fairness": fmean(map(fairness, played)),
        }[record.metric]
        assert round(value, 3) == record.value, record


@pytest.mark.slow
def test_release_01_reports_the_deadlocks_that_release_02_loses() -> None:
    """By the rules of 0.1 three of the same 30 sequential episodes end in a deadlock."""
    result = replayed("dpbench_release02", "task.rules=dpbench-0.1", "protocol.deadlock=terminal")
    assert [i for i, deadlock in enumerate(deadlocks(result["seq5nc"])) if deadlock] == [0, 16, 20]


SCRIPTS = st.lists(st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=4), max_size=40)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rules", ["paper", "dpbench-0.1"])
@given(SCRIPTS)
def test_but_for_release_02_no_agent_holds_a_fork_that_lies_on_the_table(rules: str, script: list[list[str]]) -> None:
    for world in states(table(4, rules), script):
        assert not world.phantoms
        for i in range(4):
            left, right = world.holds(i)
            assert (left, right) == (world.forks[i] == i, world.forks[(i + 1) % 4] == i)
            assert not world.eating[i] or (left and right)


def states(task: SteppedTask, script: list[list[str]]):  # type: ignore[no-untyped-def]
    """The table after every step in which all act at once."""
    world = task.world(task.example(), random.Random(0))
    for actions in script:
        world = world.step(dict(zip(task.example().agents, actions, strict=True)), random.Random(0))
        yield world


def test_an_eater_that_says_release_leaves_a_phantom_to_the_lower_number() -> None:
    wait = "WAIT"
    eat = [[wait, "GRAB_LEFT", wait, wait], [wait, "GRAB_RIGHT", wait, wait]]  # P1 holds forks 1 and 2, and eats
    grab = ["GRAB_RIGHT", "RELEASE", "GRAB_LEFT", wait]  # P0 and P2 want them while P1 says RELEASE
    *_, last = states(table(4, "dpbench-0.2"), [*eat, grab])
    assert last.forks == (None, None, None, None)
    assert last.phantoms == {(0, 1)} and last.holds(0) == (False, True) and last.holds(2) == (False, False)
    assert last.observation("P0")["holds_right"] and last.observation("P0")["right_available"]
    *_, feast = states(table(4, "dpbench-0.2"), [["GRAB_LEFT", *eat[0][1:]], eat[1], grab])
    assert feast.eating == (True, False, False, False) and feast.meals == (1, 1, 0, 0)
    *_, after = states(table(4, "dpbench-0.2"), [*eat, grab, [wait] * 4])
    assert not after.phantoms
    for rules in ("paper", "dpbench-0.1"):
        *_, plain = states(table(4, rules), [*eat, grab])
        assert plain.holds(0) == plain.holds(2) == (False, False)


def differences(run: Run) -> list[str]:
    notes = [note for item in run.with_published(against(PUBLISHED, run)) for note in item.notes]
    return [note for note in dict.fromkeys(notes) if note.startswith("† This run is not the profile")]


@pytest.mark.slow
def test_tables_say_where_a_run_is_not_the_profile(tmp_path: Path) -> None:
    def played(name: str, *overrides: str, folder: str) -> Run:
        return evaluate(
            name, overrides=["matrix.condition=[seq3c]", *overrides], repeats=1, output_path=tmp_path / folder
        )

    run = played("dpbench", folder="a")
    assert (
        "† published: DPBench, Table 2, profile dpbench_release01; not run here."
        in run.with_published(against(PUBLISHED, run))[0].notes
    )
    assert differences(run)[0] == (
        "† This run is not the profile dpbench_release01: protocol.parse_retries is 1, there 0; protocol.max_chars is "
        "1000, there none; protocol.parsing is tolerant, there reference. `--spec dpbench_release01` plays it."
    )
    same = played("dpbench_release01", folder="b")
    assert not [note for note in differences(same) if "dpbench_release01:" in note]
    changed = played("dpbench_release01", "protocol.ends=action", "protocol.max_timesteps=60", folder="c")
    assert any("ends is action, there turn" in x and "max_timesteps is 60, there 30" in x for x in differences(changed))
    entries = [RunScores(run.meta, run.scores, run.table_specs, run.metrics)]
    board = leaderboard(entries, against(PUBLISHED, run))
    assert any(note == differences(run)[0] for note in board[0].notes)


def test_the_default_plays_the_game_behind_its_published_rows() -> None:
    """All but how replies are read: rules, end, talk and time are those of the profile."""
    ours, theirs = (spec.load(name, BUILTIN).variants() for name in ("dpbench", "dpbench_release01"))
    reading = {"parsing", "parse_retries", "max_chars", "deadlock", "memory"}
    for mine, its in zip(ours, theirs, strict=True):
        assert mine.data["task"] == its.data["task"]
        game = {key: value for key, value in its.data["protocol"].items() if key not in reading}
        assert {key: value for key, value in mine.data["protocol"].items() if key not in reading} == game
