"""Worlds in YAML: the dining table step by step as in Python, what states do, and what is refused."""

import json
import pickle
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Action, Case, Outcome, Request, Task, Turn
from harness.api.errors import PluginError, UserError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.extensions.games.worlds import SteppedTask, World
from harness.extensions.yaml_tasks.conformance import check_task, check_world
from harness.extensions.yaml_tasks.expressions import ExpressionError
from harness.extensions.yaml_tasks.proof import prove
from harness.runtime.steps import drive
from tests.helpers import shipped

BUILTIN = builtin()
WORLDS = [name for name in shipped.specs() if name.startswith("worlds/")]
PLAYED: dict[str, Any] = {
    "protocol": "steps",
    "prompts": "world/standard",
    "metrics": ["timesteps"],
    "baseline": "random",
}


def world(name: str = "worlds/dining_table", **changes: Any) -> SteppedTask:
    """The task of a spec, some of whose keys have other values."""
    plan = resolve.plan(spec.parse({"extends": name, "name": "x", "task": changes}, BUILTIN), BUILTIN)
    task = plan.conditions[0].task
    assert isinstance(task, SteppedTask)
    return task


def declared(**keys: Any) -> SteppedTask:
    """A world with these keys."""
    plan = resolve.plan(spec.parse({"name": "x", "task": {"use": "world", **keys}, **PLAYED}, BUILTIN), BUILTIN)
    task = plan.conditions[0].task
    assert isinstance(task, SteppedTask)
    return task


def first(task: Task) -> Case:
    return next(iter(task.cases(1, 0)))


def started(task: SteppedTask, seed: int = 0) -> World:
    return task.world(first(task), random.Random(seed))


def state(world: World) -> Any:
    return world.facts()["state"]


# ------------------------------------------------------------------------------------- dining table

PROTOCOLS: list[dict[str, Any]] = [
    {},
    {"order": "sequential"},
    {"order": "sequential", "ends": "turn", "memory": 2},
    {"talk_rounds": 1, "channel": "neighbors"},
    {"talk_rounds": 3, "channel": "neighbors", "memory": 3},
    {"deadlock": "non_terminal", "backoff_threshold": 2},
    {"deadlock": "unreported", "order": "sequential", "backoff_threshold": 1},
]


def episode(task: SteppedTask, protocol: dict[str, Any], seed: int) -> Any:
    """All that random agents see and may do, what they do, and the facts of the episode."""
    source = {"name": "x", "task": "dpbench/dining_table", **PLAYED, "protocol": {"use": "steps", **protocol}}
    played = resolve.plan(spec.parse(source, BUILTIN), BUILTIN).conditions[0].protocol
    rng, case = random.Random(seed), first(task)
    keys = ("state", "meals", "holds_left", "holds_right", "left_available", "right_available")
    common = (*keys, "inbox", "silent", "timestep", "talk_round")

    def choose(turn: Turn) -> Action:
        if turn.name == "talk":
            return rng.choice((None, "left", "right"))
        if rng.random() < 0.05:  # a failed turn
            return None
        action = rng.choice(turn.reply.options or ())
        return {**action, "message": rng.choice((None, "me"))} if isinstance(action, dict) else action

    result = drive(played, task, case, choose, seed)
    turns = [
        (turn.agent, turn.name, turn.reply, [turn.observation[key] for key in common],
         [[then[key] for key in (*keys, "action", "timestep")] for then in turn.observation["memory"]], move.action)
        for batch in result.batches
        for turn, move in batch
    ]  # fmt: skip
    return turns, {name: fact for name, fact in result.outcome.facts.items() if name != "state"}, case.topology


@pytest.mark.sampled(1)
@pytest.mark.parametrize("episodes", [30, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("philosophers", [2, 3, 5])
def test_the_dining_table_in_yaml_is_the_one_in_python(philosophers: int, episodes: int) -> None:
    python = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=philosophers)
    yaml = world(agents=[f"P{i}" for i in range(philosophers)])
    for seed in range(episodes):
        protocol = PROTOCOLS[seed % len(PROTOCOLS)]
        assert episode(yaml, protocol, seed) == episode(python, protocol, seed), (seed, protocol)


def test_the_dining_table_is_graded_and_prompted_as_in_python(tmp_path: Path) -> None:
    common = {"repeats": 4, "seed": 3, "matrix": None, "metrics": ["dpbench/meals", "dpbench/fairness"], "tables": None}
    common |= {"protocol": {"order": "simultaneous", "talk_rounds": 1}, "headline": None}
    yaml = {"extends": "worlds/dining_table", "name": "x", **common}
    python = {**yaml, "task": {"use": "dpbench/dining_table", "philosophers": 5, "rules": "paper"}}
    prompts: list[set[str]] = []

    def say(request: Request) -> str:
        prompts[-1].add(json.dumps(list(request.thread.messages)))
        word = len(prompts[-1]) % 7
        return f"MESSAGE: {word}\nACTION: {('GRAB_LEFT', 'GRAB_RIGHT', 'RELEASE', 'WAIT')[word % 4]}"

    grades = []
    for i, content in enumerate((yaml, python)):
        prompts.append(set())
        run = harness.evaluate(content, Mock(function=say), output_path=tmp_path / str(i), max_concurrency=1)
        grades.append([score.numbers for score in run.scores])
    assert grades[0] == grades[1] and prompts[0] == prompts[1] and len(prompts[0]) > 20


# ------------------------------------------------------------------------------------ shipped worlds


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", WORLDS)
def test_shipped_worlds_keep_the_contract_of_worlds(name: str) -> None:
    task = world(name)
    assert check_task(task) == []
    for seed in range(3):
        assert check_world(task, seed) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name in WORLDS if name != "worlds/dining_table"])
def test_ceilings_are_above_floors(name: str, tmp_path: Path) -> None:
    loaded = spec.load(name, BUILTIN)
    headline = loaded.get("headline")
    values: dict[tuple[str, str], list[float]] = {}
    for role in ("floor", "ceiling"):
        changes = [f"baseline={json.dumps(headline[role])}"]
        run = harness.evaluate(name, overrides=changes, limit=2, repeats=2, output_path=tmp_path / role)
        assert not any(score.error for score in run.scores)
        for score in run.scores:
            values.setdefault((score.condition, role), []).append(float(str(score.numbers[headline["metric"]])))
    conditions = {condition for condition, _ in values}
    means = {key: sum(numbers) / len(numbers) for key, numbers in values.items()}
    assert all(means[c, "ceiling"] >= means[c, "floor"] for c in conditions)
    assert any(means[c, "ceiling"] > means[c, "floor"] for c in conditions)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("worlds/commons", "I take a little. ACTION: FISH 3"),
        ("worlds/public_goods", 'MESSAGE: all in\n```json\n{"action": "PAY", "coins": 12}\n```'),
        ("worlds/telephone", "ACTION: PASS text=one two three"),
        ("worlds/search_party", "MESSAGE: None\n**ACTION:** MOVE(direction=south)"),
        ("worlds/trading", "MESSAGE: hi\nACTION: WAIT"),
        ("worlds/four_way_stop", "MESSAGE: you first\nACTION: WAIT"),
    ],
)
def test_models_play(name: str, reply: str, tmp_path: Path) -> None:
    talkative = [] if "protocol.talk_rounds" not in name else ["matrix.talk=[1]"]
    run = harness.evaluate(
        name, Mock(text=reply), overrides=talkative, limit=1, repeats=1, output_path=tmp_path / "run"
    )
    assert run.scores and not any(score.error for score in run.scores)
    if name != "worlds/search_party":  # in the last row there is no south
        talks = [score for score in run.scores if "talk=2" not in score.condition]
        assert {score.numbers["parse_failures"] for score in talks} == {0.0}


# --------------------------------------------------------------------------------- what states do

POT = {
    "agents": ["Ann", "Bob", "Cid"],
    "state": {"pot": 10},
    "own": {"got": 0},
    "sees": {
        "pot": "pot",
        "got": "mine.got",
        "others": "{a: got[a] for a in agents if a != me}",
        "last": "[actions, parameters]",
    },
    "actions": {
        "TAKE": {
            "parameters": {"coins": {"integer": [1, "pot"]}},
            "when": "pot > 0",
            "effects": {"pot": "pot - coins", "mine.got": "mine.got + coins"},
        },
        "WAIT": None,
    },
    "noop": "WAIT",
    "scores": {"left": "pot", "most": "max(values(got))", "share": "most / 10"},
}


def take(coins: int) -> dict[str, Any]:
    return {"action": "TAKE", "coins": coins}


def test_who_comes_too_late_gets_nothing() -> None:
    before = started(declared(**POT))
    after = before.step({"Ann": take(4), "Bob": take(7), "Cid": take(6)}, random.Random(0))
    assert state(after) == {"pot": 0, "got": {"Ann": 4, "Bob": 0, "Cid": 6}}
    assert state(before) == {"pot": 10, "got": {"Ann": 0, "Bob": 0, "Cid": 0}}
    assert dict(after.observation("Bob"))["others"] == {"Ann": 4, "Cid": 6}
    assert after.observation("Bob")["last"] == [
        {"Ann": "TAKE", "Bob": "TAKE", "Cid": "TAKE"},
        {"Ann": {"coins": 4}, "Bob": {"coins": 7}, "Cid": {"coins": 6}},
    ]
    reply = after.reply("Ann")
    assert reply is not None and reply.options == ({"action": "WAIT"},) and reply.noop == {"action": "WAIT"}


def test_actions_are_names_in_every_world() -> None:
    asked = "sum(parameters[a].coins for a in actions if actions[a] == 'TAKE')"
    task = declared(**{**POT, "state": {"pot": 10, "asked": 0}, "before": {"asked": asked}})
    after = started(task).step({"Ann": take(4), "Bob": {"action": "WAIT"}, "Cid": take(9)}, random.Random(0))
    assert state(after)["asked"] == 13
    waiting = {"WAIT": {"means": "wait"}}
    task = declared(agents=2, actions=waiting, own={"did": "None"}, after={"mine.did": "[actions[me], parameters[me]]"})
    world = started(task).step({"Agent-0": "WAIT", "Agent-1": "WAIT"}, random.Random(0))
    assert state(world)["did"] == {"Agent-0": ["WAIT", {}], "Agent-1": ["WAIT", {}]}


def test_bounds_follow_the_state() -> None:
    task = declared(**{**POT, "state": {"pot": 2.5}})
    reply = started(task).reply("Ann")
    assert reply is not None and reply.options == (take(1), take(2), {"action": "WAIT"})
    reply = started(declared(**{**POT, "state": {"pot": 0.5}})).reply("Ann")
    assert reply is not None and reply.options == ({"action": "WAIT"},)
    (available,) = [one for one in started(task).observation("Ann")["available"] if one["name"] == "TAKE"]
    assert available["parameters"] == [{"name": "coins", "words": "a whole number from 1 to 2"}]


def test_a_random_order_is_drawn_from_the_rng_of_the_step() -> None:
    before = started(declared(**POT, conflict="random"))
    moves = {agent: take(10) for agent in ("Ann", "Bob", "Cid")}
    winners = {
        max(got, key=got.get) for seed in range(20) for got in [state(before.step(moves, random.Random(seed)))["got"]]
    }
    assert winners == {"Ann", "Bob", "Cid"}
    assert before.step(moves, random.Random(1)) == before.step(moves, random.Random(1))


def test_lines_see_what_the_lines_before_have_changed() -> None:
    task = declared(
        agents=2,
        state={"a": 1, "b": "a + 1"},
        own={"x": "number", "y": "x[me] * 10"},
        actions={"GO": {"effects": {"a": "a + 1", "mine.x": "mine.x + a", "x": "{p: x[p] + 100 for p in agents}"}}},
        before={"b": "b * 10"},
        after={"mine.y": "sum(values(y)) + mine.x", "mine.x": "mine.y"},
        each_round={"b": "-b"},
    )
    world = started(task)
    assert state(world) == {"a": 1, "b": 2, "x": {"Agent-0": 0, "Agent-1": 1}, "y": {"Agent-0": 0, "Agent-1": 10}}
    world = world.step({"Agent-1": "GO"}, random.Random(0))
    # x: 1 + 2, then 100 more for both; y of both from the same values; then x takes the new y
    assert state(world) == {
        "a": 2, "b": 20, "x": {"Agent-0": 110, "Agent-1": 113}, "y": {"Agent-0": 110, "Agent-1": 113},
    }  # fmt: skip
    assert state(world.step({"Agent-0": None}, random.Random(0)))["b"] == -200  # now all have acted: the round is over


def test_both_orders_have_the_same_rounds(tmp_path: Path) -> None:
    policy = "baseline={use: expression, act: \"{'action': 'PAY', 'coins': 10}\"}"
    run = harness.evaluate("worlds/public_goods", overrides=[policy], repeats=1, output_path=tmp_path / "run")
    assert [score.numbers["coins"] for score in run.scores] == [10 * (10 + 1.6 * 10)] * 4


def test_a_score_may_be_a_number_for_each_agent() -> None:
    keys = {**POT, "scores": {"left": "pot", "returns": "got"}}
    plan = resolve.plan(spec.parse({"name": "x", "task": {"use": "world", **keys}, **PLAYED}, BUILTIN), BUILTIN)
    proof = prove(plan, plan.conditions[0])
    assert not proof.problems and "left" in proof.line() and "returns" not in proof.line()
    state = {"pot": 3, "got": {"Ann": 4, "Bob": 3, "Cid": 0}}
    outcome = Outcome(facts={"state": state, "end": "limit", "timesteps": 2})
    task = declared(**keys)
    assert task.grade(first(task), outcome)["returns"] == {"Ann": 4.0, "Bob": 3.0, "Cid": 0.0}
    short = declared(**{**POT, "scores": {"x": "{a: 1 for a in agents[1:]}"}})
    with pytest.raises(ExpressionError, match="must be a number, or one for each agent"):
        short.grade(first(short), outcome)


def test_scores_are_none_where_no_world_was_played_and_numbers_elsewhere() -> None:
    task = declared(**POT)
    case = first(task)
    assert task.grade(case, harness.api.Outcome()) == {"left": None, "most": None, "share": None}
    assert task.grades == ("left", "most", "share") and task.facts == ("state",)
    facts = started(task).step({"Bob": take(3)}, random.Random(0)).facts()
    assert task.grade(case, harness.api.Outcome(facts=facts)) == {"left": 7.0, "most": 3.0, "share": 0.3}
    honest = declared(**{**POT, "scores": {"mean": "mean(got[a] for a in honest)"}})
    assert honest.grade(replace(case, unscored=frozenset({"Ann"})), harness.api.Outcome(facts=facts)) == {"mean": 1.5}
    assert pickle.loads(pickle.dumps(task)).grade(case, harness.api.Outcome(facts=facts))["left"] == 7.0


def test_draws_depend_on_seed_and_sample_and_stay_hidden() -> None:
    task = declared(
        agents=3, instances=4, draw={"secret": "randint(1, 10**9)", "own": "{a: randint(1, 10**9) for a in agents}"},
        knows={"mine_alone": "own[me]"}, rules="{{ name }} has {{ mine_alone }}.", actions={"WAIT": None},
        neighbors="[a for a in agents if a != me][:1]", scores={"x": "secret - secret"},
    )  # fmt: skip
    cases = list(task.cases(None, 7))
    assert cases == list(task.cases(None, 7)) and cases[:2] == list(task.cases(2, 7))
    assert len({case.target["secret"] for case in (*cases, *task.cases(None, 8))}) == 8
    assert cases[0].topology == {"Agent-0": ("Agent-1",), "Agent-1": ("Agent-0",), "Agent-2": ("Agent-0",)}
    context = task.context(cases[0], "Agent-1")
    assert context["rules"] == f"Agent-1 has {cases[0].target['own']['Agent-1']}." and context["known"] == {}
    assert str(cases[0].target["secret"]) not in json.dumps([context, cases[0].private, cases[0].public])


# ------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sees": {"pot": "pott"}}, "pott: unknown name. Did you mean pot?"),
        ({"sees": {"got": "mine.gott"}}, "mine.gott: agents have no such variable. Did you mean got?"),
        ({"sees": {"view": "pot"}}, "'view' is a name that agents have something under already"),
        ({"sees": {"pot": "randint(1, 2)"}}, "randint: no such function"),
        ({"state": {"pot": 10, "agents": 3}}, "'agents' is a name that worlds have already"),
        ({"state": {"pot": 10, "parameters": 3}}, "'parameters' is a name that worlds have already"),
        ({"own": {"pot": 0}}, "'pot' is under state: too"),
        ({"after": {"pott": "1"}}, "'pott' is not a variable of the state. Did you mean pot?"),
        ({"after": {"mine.x": "1"}}, "mine.x: agents have no such variable"),
        ({"noop": "WAITS"}, "there is no action 'WAITS'. Did you mean WAIT?"),
        ({"noop": "TAKE"}, "noop: TAKE takes parameters"),
        ({"actions": {}}, "a world needs at least one"),
        ({"actions": {"GO": {"effect": {}}}}, "unknown key 'effect'. Did you mean effects?"),
        ({"actions": {"GO": {"parameters": {"k": {}}}}}, "k needs one of integer, number, one_of, text"),
        ({"actions": {"GO": {"parameters": {"k": {"integer": [1, 2], "text": 9}}}}}, "k has integer and text"),
        ({"actions": {"GO": {"parameters": {"k": {"integer": [2, 1]}}}}}, "k has no values: integer 2, 1"),
        (
            {"actions": {"GO": {"parameters": {"pot": {"integer": [1, 2]}}}}},
            "'pot' cannot name a parameter: it is a variable",
        ),
        ({"actions": {"GO": {"parameters": {"n": {"integer": [1, 2]}}}}}, "parameter: it is the number of agents"),
        ({"actions": {"GO": {"parameters": {"act": {"integer": [1, 2]}}}}}, "it is a key of agents' replies"),
        ({"rules": "{{ dishes }}", "draw": {"dishes": "3"}}, "Name it under `knows: {dishes: dishes}`"),
        ({"rules": "{{ pot }}"}, "agents see it in their turns, by `sees: {pot: pot}`"),
        ({"rules": "{{ got }}"}, "agents see it in their turns, by `sees: {got: mine.got}`"),
        ({"actions": {"GO": {"parameters": {"k": {"integer": [1, 2]}}, "when": "k > 1"}}}, "Bound them: integer"),
        ({"actions": {"GO ON": None}}, "'GO ON' is not a plain word"),
        ({"scores": {"x": "1 +"}}, "no expression"),
        ({"rules": "{{ pot }}"}, "rules uses the fact 'pot'"),
        ({"agents": ["Ann", "Ann"]}, "names must be there, and differ"),
        ({"agents": ["Ann", " "]}, "cannot be an agent's name"),
        ({"agents": ["Ann", "\x1b[31m"]}, "cannot be an agent's name"),
        ({"conflict": "both"}, "'conflict' is 'both'"),
    ],
)
def test_mistakes_are_found_when_the_spec_is_read(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        declared(**{**POT, "noop": None, **changes} if "actions" in changes else {**POT, **changes})
    assert message in f"{caught.value}"


def test_a_mistake_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "lake.yaml"
    file.write_text(
        "name: lake\ntask:\n  use: world\n  agents: 1\n  state: {fish: 3}\n  actions:\n    FISH:\n      effects:\n"
        "        fish: fish - 1\n  after: {fish: fish / (fish - 2)}\n  scores: {fish: fish}\n"
        "protocol: steps\nprompts: world/standard\nbaseline: all_agree\nmetrics: [timesteps]\n"
    )
    run = harness.evaluate(str(file), output_path=tmp_path / "run")
    (score,) = run.scores
    assert score.error is not None
    assert "lake.yaml:10:17: fish / (fish - 2): division by zero" in score.error and "fish = 2" in score.error


def test_a_name_that_is_taken_is_shown_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "lake.yaml"
    file.write_text(
        "name: lake\ntask:\n  use: world\n  actions:\n    FISH:\n      parameters:\n        n:\n"
        "          integer: [1, 2]\nprotocol: steps\nprompts: world/standard\nbaseline: random\nmetrics: [timesteps]\n"
    )
    with pytest.raises(UserError, match=r"lake\.yaml:7:9: 'n' cannot name a parameter: it is the number of agents"):
        harness.evaluate(str(file), output_path=tmp_path / "run")


def test_steps_are_bounded_and_each_observation_has_its_own() -> None:
    task = declared(agents=300, sees={"x": "sum(i for i in range(5_000))"}, actions={"WAIT": None})
    world = started(task)
    assert {world.observation(agent)["x"] for agent in first(task).agents} == {12_497_500}
    with pytest.raises(ExpressionError, match="it takes more than"):
        started(declared(actions={"WAIT": None}, state={"x": "sum(i * j for i in range(10**4) for j in range(10**4))"}))


def test_what_a_world_gives_must_fit() -> None:
    with pytest.raises(ExpressionError, match="it must give a value for each agent"):
        started(declared(**{**POT, "after": {"got": "{}"}})).step({"Ann": take(1)}, random.Random(0))
    with pytest.raises(PluginError, match="a mapping with the key 1"):
        started(declared(**{**POT, "state": {"pot": "{1: 2}"}, "actions": {"WAIT": None}})).facts()
    with pytest.raises(PluginError, match="does not say how"):
        started(declared(**POT, deadlock="pot == 10")).break_deadlock()
    for bound in ("agents", "10 ** 1200 + 0 * pot"):
        many = {"TAKE": {"parameters": {"coins": {"integer": [1, bound]}}}}
        with pytest.raises(ExpressionError, match="a bound must be a number"):
            started(declared(**{**POT, "actions": many, "noop": None})).reply("Ann")
    task = declared(**{**POT, "scores": {"x": "10 ** 1200"}})
    with pytest.raises(ExpressionError, match="x must be a number"):
        task.grade(first(task), harness.api.Outcome(facts=started(task).facts()))
