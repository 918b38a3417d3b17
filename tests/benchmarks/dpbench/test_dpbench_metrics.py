"""DPBench's metrics: the paper's formulas on games small enough to count by hand, and what must hold of any game."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Action, Episode, Metric, Move, Outcome, Turn
from harness.api.errors import PluginError
from harness.config import project
from harness.extensions.yaml_tasks.conformance import check_metric
from harness.runtime.steps import drive
from tests.helpers import shipped

BUILTIN = project.builtin()
NAMES = shipped.plugins("metrics", "dpbench/")
LEFT, RIGHT, RELEASE, WAIT = "GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"


def load(name: str, **fields: Any) -> Metric:
    result: Metric = BUILTIN.load("metrics", name if name == "timesteps" else f"dpbench/{name}")(**fields)
    return result


def episode(facts: Mapping[str, Any] | None = None, moves: Sequence[Move] = ()) -> Episode:
    outcome = None if facts is None else Outcome(facts=facts)
    return Episode("c/1/0", "c", "1", 0, {}, {}, [moves], outcome)


def ate(*meals: int) -> Episode:
    return episode({"eaten": {f"P{i}": m for i, m in enumerate(meals)}})


def played(script: Sequence[Mapping[str, Action]], philosophers: int = 3, **rules: Any) -> Episode:
    """An episode of the real game: for each of an agent's turns what it does; whoever is not named waits."""
    table = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=philosophers)
    steps = BUILTIN.load("protocols", "steps")(max_timesteps=30, **rules)
    turns: dict[str, int] = {}

    def answer(turn: Turn) -> Action:
        turns[turn.agent] = at = turns.get(turn.agent, -1) + 1
        return script[at].get(turn.agent, WAIT) if at < len(script) else WAIT

    done = drive(steps, table, table.example(), answer)
    return episode(done.outcome.facts, [move for batch in done.batches for _, move in batch])


def everybody(action: str, philosophers: int = 3) -> dict[str, Action]:
    return {f"P{i}": action for i in range(philosophers)}


# P0 takes both forks and eats in timestep 2, gives them back in 3; in 4 everybody takes the left one.
ONE_MEAL = [{"P0": LEFT}, {"P0": RIGHT}, {}, everybody(LEFT)]


@pytest.mark.parametrize(
    ("name", "one_meal", "all_left_at_once", "all_wait", "one_after_another"),
    [
        ("deadlock_rate", 1, 1, 0, 1),
        ("deadlock_events", 1, 1, 0, 1),
        ("time_to_deadlock", 4, 1, None, 3),
        ("timesteps", 4, 1, 30, 3),
        ("meals", 1, 0, 0, 0),
        ("throughput", 1 / 4, 0, 0, 0),
        ("meals_per_round", 1 / 4, 0, 0, 0),
        ("fairness", 0, 1, 1, 1),
        ("starvation", 2, 3, 3, 3),
    ],
)
def test_games_counted_by_hand(
    name: str, one_meal: float, all_left_at_once: float, all_wait: float | None, one_after_another: float
) -> None:
    metric = load(name)
    assert metric.measure(played(ONE_MEAL)) == one_meal
    assert metric.measure(played([everybody(LEFT)])) == all_left_at_once
    assert metric.measure(played([])) == all_wait
    assert metric.measure(played([everybody(LEFT)], order="sequential")) == one_after_another


def test_in_sequential_order_a_timestep_is_an_action_and_a_round_is_every_agents() -> None:
    # P0: left, right (it eats in its second turn: timestep 4 of 30), then nothing more; ten rounds of three actions.
    game = played([{"P0": LEFT}, {"P0": RIGHT}], order="sequential")
    assert load("timesteps").measure(game) == 30
    assert load("throughput").measure(game) == 1 / 30
    assert load("meals_per_round").measure(game) == 1 / 10


def test_deadlocks_that_are_broken_are_events_and_no_rate() -> None:
    game = played([everybody(LEFT), everybody(RIGHT), {}, everybody(LEFT)], deadlock="non_terminal")
    assert load("deadlock_events").measure(game) == 3
    assert load("deadlock_rate").measure(game) == 0
    assert load("time_to_deadlock").measure(game) is None
    assert load("timesteps").measure(game) == 30


@pytest.mark.parametrize("name", [*NAMES, "timesteps"])
def test_every_metric_keeps_its_contract(name: str) -> None:
    metric = BUILTIN.load("metrics", name)()
    assert check_metric(metric) == []
    assert metric.measure(episode()) is None  # an episode that came to no outcome
    assert len((type(metric).__doc__ or "").splitlines()[0]) <= 110


def test_what_they_need_is_what_the_game_produces() -> None:
    produced = {*BUILTIN.load("protocols", "steps").facts, *BUILTIN.load("tasks", "dpbench/dining_table").facts}
    needs = {name: set(load(name.removeprefix("dpbench/")).needs) for name in NAMES}
    assert all(item <= produced for item in needs.values())
    assert needs["dpbench/throughput"] == {"eaten", "timesteps"}
    assert needs["dpbench/time_to_deadlock"] == {"end", "deadlocks"}


def test_meals_that_are_none_are_named() -> None:
    with pytest.raises(PluginError, match="'eaten' is 3, not the meals of every agent"):
        load("meals").measure(episode({"eaten": 3}))


# ------------------------------------------------------------------------------------------ fairness


@pytest.mark.parametrize(
    ("meals", "fairness"),
    [
        ((2, 2, 2), 1),
        ((0, 0, 7), 0),
        # ascending 1, 2, 3: G = 2·(1 + 4 + 9)/(3·6) − 4/3 = 2/9, normalized by 3/2: 1/3
        ((3, 1, 2), 2 / 3),
        # ascending 0, 0, 1, 1, 2: G = 2·(3 + 4 + 10)/(5·4) − 6/5 = 1/2, normalized by 5/4: 5/8
        ((1, 0, 2, 0, 1), 3 / 8),
        ((0, 1), 0),
        ((1, 3), 1 / 2),
    ],
)
def test_fairness_by_the_formula(meals: tuple[int, ...], fairness: float) -> None:
    assert load("fairness").measure(ate(*meals)) == pytest.approx(fairness)


def test_no_agent_ate_has_two_readings_and_only_then() -> None:
    one, missing = load("fairness"), load("fairness", no_meals="missing")
    assert one.measure(ate(0, 0, 0)) == 1
    assert missing.measure(ate(0, 0, 0)) is None
    assert one.measure(ate(0, 2, 1)) == missing.measure(ate(0, 2, 1)) == pytest.approx(1 / 3)
    assert one.measure(ate(4)) is None  # the normalisation N/(N − 1) is not defined


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=20).filter(any), st.randoms(use_true_random=False))
def test_fairness_is_a_share_of_the_meals_not_of_the_agents(meals: list[int], rng: Any) -> None:
    fairness = load("fairness")
    value = fairness.measure(ate(*meals))
    assert value is not None and 0 <= value <= 1
    shuffled = rng.sample(meals, len(meals))
    assert fairness.measure(ate(*shuffled)) == value
    assert fairness.measure(ate(*(3 * m for m in meals))) == pytest.approx(value)
    assert (value == 1) == (len(set(meals)) == 1)
    assert (value == 0) == (sum(m > 0 for m in meals) == 1)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=12).filter(any))
def test_fairness_is_the_mean_absolute_difference_in_other_words(meals: list[int]) -> None:
    # G = Σ|a − b| / (2 N Σm), the textbook form of the same coefficient
    n = len(meals)
    gini = sum(abs(a - b) for a in meals for b in meals) / (2 * n * sum(meals))
    assert load("fairness").measure(ate(*meals)) == pytest.approx(1 - gini * n / (n - 1))


# --------------------------------------------------------------------------------------- consistency


def said(*replies: tuple[str | None, str]) -> Episode:
    return episode({}, [Move("P0", "act", {"act": act, "message": message}) for message, act in replies])


def test_messages_and_actions_of_the_same_reply_are_compared() -> None:
    game = said(
        ("I will grab left", LEFT),  # does it
        ("I'll GRAB RIGHT now!", LEFT),  # does not
        ("Please wait for me", WAIT),  # to the list, a stated intent to wait
        ("let us be fair", RIGHT),  # no intent
        (None, RIGHT),  # silence
    )
    assert load("consistency").measure(game) == (2, 3)
    assert load("intent_share").measure(game) == (3, 4)


@pytest.mark.parametrize(
    ("message", "first", "second"),
    [
        ("grab left", LEFT, LEFT),
        ("I take right", RIGHT, RIGHT),
        ("I pick left", LEFT, None),
        ("I pick up left", None, LEFT),
        ("I grab my right one", None, RIGHT),
        ("my left fork is in use", LEFT, None),
        ("take right or take left", LEFT, LEFT),  # in the order left, right, release, wait
        ("release, then grab right", RIGHT, RIGHT),
        ("I put down mine and wait", RELEASE, RELEASE),
        ("let go", RELEASE, RELEASE),
        ("I drop it", RELEASE, RELEASE),
        ("I do not wait", WAIT, WAIT),  # negation is not read
        ("on hold", WAIT, None),
        ("a pause", WAIT, None),
        ("hello", None, None),
    ],
)
def test_the_two_lists_of_the_released_code(message: str, first: str | None, second: str | None) -> None:
    for keywords, expected in (("kw-0.1", first), ("kw-0.2", second)):
        game = said(*((message, act) for act in (LEFT, RIGHT, RELEASE, WAIT)))
        assert load("intent_share", keywords=keywords).measure(game) == (4 * (expected is not None), 4)
        assert load("consistency", keywords=keywords).measure(game) == (None if expected is None else (1, 4))
        if expected is not None:
            assert load("consistency", keywords=keywords).measure(said((message, expected))) == (1, 1)


def test_keywords_of_ones_own() -> None:
    own = {WAIT: ["Geduld"], LEFT: ["links"]}
    game = said(("GEDULD, dann links", LEFT), ("ich nehme rechts", RIGHT))
    assert load("consistency", keywords=own).measure(game) == (1, 1)  # left is tried before wait, as in the others
    assert load("intent_share", keywords=own).measure(game) == (1, 2)
    with pytest.raises(PluginError, match=r"keywords for 'GRAB_LEF', which is not an action\n  Did you mean GRAB_LEFT"):
        load("consistency", keywords={"GRAB_LEF": ["x"]})
    with pytest.raises(PluginError, match="WAIT have an empty phrase"):
        load("intent_share", keywords={WAIT: [" "]})


def test_only_words_beside_an_action_count() -> None:
    talk = [
        Move("P0", "talk", "I grab left"),
        Move("P0", "act", error="none", error_kind="parse"),
        Move("P0", "act", LEFT),
    ]
    assert load("consistency").measure(episode({}, talk)) is None
    assert load("intent_share").measure(episode({}, talk)) is None


def test_in_sequential_order_every_decision_is_counted_once() -> None:
    channel = BUILTIN.load("channels", "neighbors")(lifetime="latest")
    grab = {"act": LEFT, "message": "I grab left"}
    stay = {"act": WAIT, "message": "I release"}
    script: list[Mapping[str, Action]] = [{"P0": grab, "P1": stay, "P2": stay}]
    idle = {"act": WAIT, "message": None}
    script += [dict.fromkeys(("P0", "P1", "P2"), idle)] * 9
    game = played(script, order="sequential", talk_rounds=1, channel=channel)
    assert load("timesteps").measure(game) == 30
    assert load("consistency").measure(game) == (1, 3)


@given(st.lists(st.tuples(st.none() | st.text(), st.sampled_from([LEFT, RIGHT, RELEASE, WAIT]))))
def test_whatever_is_said_the_shares_are_shares(replies: list[tuple[str | None, str]]) -> None:
    game = said(*replies)
    for keywords in ("kw-0.1", "kw-0.2"):
        for name in ("consistency", "intent_share"):
            parts = load(name, keywords=keywords).measure(game)
            assert parts is None or 0 <= parts[0] <= parts[1]
