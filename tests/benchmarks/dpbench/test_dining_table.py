"""The rules of the dining philosophers (DPBench, Section 3.1), without a model and without a protocol."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import SpecError
from harness.config import project, resolve, spec

BUILTIN = project.builtin()
LEFT, RIGHT, RELEASE, WAIT = ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
RNG = random.Random(0)


def laid(n: int, rules: str = "paper") -> Any:
    task = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=n, rules=rules)
    return task.world(task.example(), RNG)


def play(table: Any, *steps: str) -> Any:
    """One word a philosopher and step: "L R . -" is left, right, release, wait; "x" does not act."""
    words = {"L": LEFT, "R": RIGHT, ".": RELEASE, "-": WAIT}
    for step in steps:
        acting = zip(table.agents, step.split(), strict=True)
        table = table.step({agent: words[word] for agent, word in acting if word != "x"}, RNG)
    return table


def shown(table: Any) -> str:
    """Who holds each fork, then who eats: "0 . 2 / 2"."""
    eaters = [str(i) for i, eats in enumerate(table.eating) if eats]
    return " ".join("." if f is None else str(f) for f in table.forks) + (" / " + " ".join(eaters) if eaters else "")


@pytest.mark.parametrize(
    ("n", "steps", "after"),
    [
        (3, ["L L L"], "0 1 2"),
        (3, ["R R R"], "2 0 1"),
        (3, ["L - -", "R - -"], "0 0 . / 0"),
        (3, ["L - -", "R - -", "- - -"], ". . ."),  # a meal takes grab, grab, lost turn
        (3, ["L - -", "R - -", "L L -"], ". . ."),  # an eater's forks are free only after the step
        (3, ["L - -", "R - -", ". L R"], ". . ."),  # also if it says RELEASE
        (3, ["R L -"], ". 0 ."),  # both want fork 1: the lower number gets it
        (3, ["- L R"], "2 1 ."),
        (3, ["L - R"], "0 . ."),  # fork 0 is left of P0 and right of P2: P0 wins
        (3, ["L - -", ". - R"], "2 . ."),  # what is laid down can be taken in the same step, by a higher number
        (3, ["- L -", "R . -"], ". 0 ."),  # and by a lower one
        (3, ["L - -", "L - -"], "0 . ."),  # a fork one holds cannot be taken again
        (3, [". . ."], ". . ."),
        (2, ["L L"], "0 1"),
        (2, ["L R"], "0 ."),
        (2, ["L -", "R -"], "0 0 / 0"),
        (2, ["L x", "x L"], "0 1"),
        (3, ["L x x", "R x x", "x L x", "x - x"], "0 0 . / 0"),  # an eater keeps eating until its own turn
    ],
)
def test_rules(n: int, steps: list[str], after: str) -> None:
    assert shown(play(laid(n), *steps)) == after


def test_the_released_code_lets_only_higher_numbers_take_what_is_laid_down() -> None:
    assert shown(play(laid(3, "dpbench-0.1"), "L - -", ". - R")) == "2 . ."
    assert shown(play(laid(3, "dpbench-0.1"), "- L -", "R . -")) == ". . ."


def test_an_observation_is_local_and_ones_own_fork_is_available() -> None:
    table = play(laid(5), "L - L - -")
    assert table.observation("P0") == {
        "state": "HUNGRY", "meals": 0, "holds_left": True, "holds_right": False,
        "left_available": True, "right_available": True,
    }  # fmt: skip
    assert table.observation("P1")["right_available"] is False, "P2 holds it"
    assert table.observation("P4")["right_available"] is False, "P0 holds it"
    assert table.observation("P3") == laid(5).observation("P3"), "P3 sees only its own two forks"
    ate = play(laid(2), "L -", "R -")
    assert ate.observation("P0")["state"] == "EATING"
    assert ate.observation("P0")["meals"] == 1 and ate.facts() == {"eaten": {"P0": 1, "P1": 0}}
    assert not ate.observation("P1")["left_available"] and not ate.observation("P1")["right_available"]


def test_deadlock_is_every_agent_holding_one_fork() -> None:
    assert play(laid(5), "L L L L L").deadlock
    assert play(laid(2), "R R").deadlock
    assert not play(laid(5), "L L L L -").deadlock
    assert not laid(3).deadlock
    freed = play(laid(3), "L L L").break_deadlock()
    assert shown(freed) == ". . ." and not freed.deadlock


def test_backoff_is_for_the_hungry_who_hold_a_fork() -> None:
    table = play(laid(3), "L - -")
    assert [table.backoff(agent) for agent in table.agents] == [RELEASE, None, None]
    assert play(table, "R - -").backoff("P0") is None, "it eats"


AGENTS = st.integers(2, 7)
WORD = st.sampled_from(ACTIONS)


@given(st.data(), AGENTS, st.sampled_from(["paper", "dpbench-0.1"]))
def test_what_holds_in_every_game(data: st.DataObject, n: int, rules: str) -> None:
    table = laid(n, rules)
    for _ in range(data.draw(st.integers(0, 25))):
        acting = data.draw(st.sets(st.integers(0, n - 1)))
        actions = {f"P{i}": data.draw(st.one_of(WORD, st.none())) for i in sorted(acting)}
        following = table.step(actions, RNG)
        assert_lawful(table, actions, following)
        assert following == table.step(actions, RNG), "the same actions give the same state"
        table = following


def assert_lawful(before: Any, actions: Mapping[str, Any], after: Any) -> None:
    n = len(before.agents)
    assert len(after.forks) == n, "forks are conserved"
    for fork, holder in enumerate(after.forks):
        assert holder is None or holder in (fork, (fork - 1) % n), "a fork is held by one of its two neighbors"
        if holder is not None and holder != before.forks[fork]:
            owner = before.forks[fork]
            laid_down = owner is not None and actions.get(f"P{owner}") == RELEASE and not before.eating[owner]
            assert owner is None or laid_down, "nobody takes a fork that is held"
            assert actions[f"P{holder}"] == (LEFT if fork == holder else RIGHT), "forks are taken by grabbing only"
    for i in range(n):
        contents, held_before = after.holds(i), before.holds(i)
        assert not after.eating[i] or all(contents), "who eats holds both forks"
        assert after.eating[i] or not all(contents), "who holds both forks eats"
        assert sum(contents) <= sum(held_before) + 1, "one fork a step"
        if after.eating[i] and not before.eating[i]:
            assert sum(held_before) == 1, "a meal begins with the second fork"
            assert after.meals[i] == before.meals[i] + 1
        else:
            assert after.meals[i] == before.meals[i], "meals change in no other way"
        if before.eating[i]:
            assert after.eating[i] == (f"P{i}" not in actions), "an eater eats until its next turn"
            assert contents == ((True, True) if after.eating[i] else (False, False))
    # Deadlock: no grab by anybody, alone or together with others, changes anything, and nobody eats.
    stuck = not any(after.eating) and all(
        after.step({agent: word}, RNG).forks == after.forks for agent in after.agents for word in (LEFT, RIGHT)
    )
    assert after.deadlock == stuck


@given(st.lists(st.lists(WORD, min_size=4, max_size=4), max_size=30))
def test_the_table_has_no_favourite_but_by_number(steps: list[list[str]]) -> None:
    """Without conflicts nothing depends on numbers: turning the table turns the game."""
    table, turned = laid(4), laid(4)
    for step in steps:
        wants = [i if word == LEFT else (i + 1) % 4 for i, word in enumerate(step) if word in (LEFT, RIGHT)]
        if len(set(wants)) < len(wants):
            continue
        table = table.step(dict(zip(table.agents, step, strict=True)), RNG)
        turned = turned.step(dict(zip(table.agents, step[-1:] + step[:-1], strict=True)), RNG)
        assert turned.meals == table.meals[-1:] + table.meals[:-1]


def test_fewer_than_two_philosophers_are_refused_with_the_bound() -> None:
    body = {"name": "x", "task": {"use": "dpbench/dining_table", "philosophers": 1}, "protocol": "steps"}
    loaded = spec.parse({**body, "prompts": "dpbench/standard", "metrics": ["rounds"]}, BUILTIN)
    with pytest.raises(SpecError, match="'philosophers' must be ≥ 2, found 1"):
        resolve.plan(loaded, BUILTIN)


def test_the_task_is_total_and_its_cases_are_one_table() -> None:
    from harness.api import Outcome

    task = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=2)
    [case] = task.cases(None, 7)
    assert case.agents == ("P0", "P1") and case.topology == {"P0": ("P1",), "P1": ("P0",)}
    assert task.context(case, "P0") == {"name": "P0", "number": 0, "philosophers": 2, "left": "P1", "right": "P1"}
    assert task.grade(case, Outcome()) == {"meals": None, "deadlock": None}
    facts = {"eaten": {"P0": 2, "P1": 1}, "end": "limit"}
    assert task.grade(case, Outcome(facts=facts)) == {"meals": 3.0, "deadlock": 0.0}
