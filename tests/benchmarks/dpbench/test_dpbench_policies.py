"""Scripted philosophers: who deadlocks, who starves, and who gets on with anybody."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, combinations, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Action, Case, Channel, Facts, Move, OpenChannel, Policy, Turn
from harness.api.errors import PluginError
from harness.extensions.yaml_tasks import conformance
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.runtime.steps import Drive, drive
from tests.benchmarks.dpbench.dining_kit import (
    ORDERS,
    SCRIPTED,
    dine,
    fairness,
    load,
    meals,
    player,
    steps,
    table,
    throughput,
)
from tests.helpers.samples import examples

SIZES = (2, 3, 4, 5, 8)
TALK = (("simultaneous", 1), ("simultaneous", 2), ("simultaneous", 3), ("sequential", 1))
SETTINGS = (("simultaneous", 0), ("sequential", 0), *TALK)
seeds = st.integers(0, 10**6)


def act(move: Move) -> Action:
    return move.action["act"] if isinstance(move.action, dict) else move.action


def acts(played: Drive) -> Iterator[tuple[Turn, Action]]:
    """All turns in which something was done, with what it was."""
    return ((turn, act(move)) for batch in played.batches for turn, move in batch if turn.name == "act")


# --------------------------------------------------------------------------------------- fixed orders


@pytest.mark.parametrize("name", ["dpbench/always_left", "all_agree"])
@pytest.mark.parametrize("talk", [0, 1, 2])
@pytest.mark.parametrize("n", SIZES)
def test_convergent_reasoning_deadlocks_at_once(name: str, talk: int, n: int) -> None:
    facts = dine(steps("simultaneous", talk), table(n), player(name)).outcome.facts
    assert (facts["end"], facts["timesteps"], sum(facts["eaten"].values())) == ("deadlock", 1, 0)


@pytest.mark.parametrize("n", SIZES)
def test_convergent_reasoning_deadlocks_in_the_first_round_of_sequential_order(n: int) -> None:
    facts = dine(steps("sequential"), table(n), player("dpbench/always_left")).outcome.facts
    assert (facts["end"], facts["timesteps"]) == ("deadlock", n)


def test_one_who_begins_on_the_other_side_is_enough_against_deadlock() -> None:
    lefts = lambda agent: load("policies", "dpbench/odd_even" if agent == "P1" else "dpbench/always_left")  # noqa: E731
    assert dine(steps("simultaneous"), table(5), lefts).outcome.facts["end"] == "limit"


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["dpbench/resource_ordering", "dpbench/odd_even"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("rules", ["paper", "dpbench-0.1"])
@pytest.mark.parametrize("n", SIZES)
def test_conventions_never_deadlock(name: str, order: str, rules: str, n: int) -> None:
    played = dine(steps(order, max_timesteps=300), table(n, rules), player(name))
    assert played.outcome.facts["end"] == "limit"
    assert sum(meals(played)) >= (100 if order == "simultaneous" else 300 // (4 * n))


def reachable(name: str, n: int, rules: str) -> set[Any]:
    """Every table that can come about, whoever acts together with whom and when; meals are not told apart."""
    task, players = table(n, rules), load("policies", name)
    case, chance = task.example(), random.Random(0)
    groups = [*chain.from_iterable(combinations(case.agents, size) for size in range(1, n + 1))]
    contexts = {agent: task.context(case, agent) for agent in case.agents}
    result, new = set(), [task.world(case, chance)]
    while new:
        world: Any = new.pop()
        if world in result:
            continue
        result.add(world)
        calls = {s: Turn(s, "act", world.observation(s), world.reply(s), contexts[s]) for s in case.agents}
        does = {agent: players.choose(turn, chance) for agent, turn in calls.items()}
        after = (world.step({agent: does[agent] for agent in group}, chance) for group in groups)
        new += [replace(state, meals=world.meals) for state in after]
    return result


@pytest.mark.parametrize("name", ["resource_ordering", "odd_even", "always_left"])
@pytest.mark.parametrize("rules", ["paper", "dpbench-0.1"])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_only_convergent_reasoning_deadlocks_on_any_schedule(name: str, rules: str, n: int) -> None:
    states = reachable(f"dpbench/{name}", n, rules)
    assert len(states) > 2**n
    assert any(state.deadlock for state in states) == (name == "always_left")


def test_conventions_starve_those_who_lose_contested_forks() -> None:
    for name in ("dpbench/resource_ordering", "dpbench/odd_even"):
        assert 0 in meals(dine(steps("simultaneous", max_timesteps=300), table(5), player(name)))
        assert 0 not in meals(dine(steps("sequential", max_timesteps=300), table(5), player(name)))


def test_a_convention_serves_more_than_chance() -> None:
    ordered = [throughput(dine(steps("simultaneous"), table(n), player("dpbench/resource_ordering"))) for n in (3, 5)]
    by_chance = [
        throughput(dine(steps("simultaneous"), table(n), player("random"), seed)) for n in (3, 5) for seed in (0, 1)
    ]
    assert min(ordered) > max(by_chance)


# --------------------------------------------------------------------------------------------- polite


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(2, 7), st.sampled_from(ORDERS), st.sampled_from([0.0, 0.5, 0.9]), seeds)
def test_polite_ones_never_wait_with_a_fork_in_the_hand(n: int, order: str, hesitation: float, seed: int) -> None:
    for turn, action in acts(dine(steps(order), table(n), player("dpbench/polite", hesitation=hesitation), seed)):
        observation = turn.observation
        if observation["holds_left"] != observation["holds_right"]:
            side = "left" if observation["holds_right"] else "right"
            assert action == (f"GRAB_{side.upper()}" if observation[f"{side}_available"] else "RELEASE")
        elif action != "WAIT":
            assert action in ("GRAB_LEFT", "GRAB_RIGHT") and observation[f"{action[5:].lower()}_available"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_polite_ones_all_eat_in_the_end(order: str, n: int) -> None:
    rules = steps(order, max_timesteps=200 * n, deadlock="non_terminal")
    assert min(meals(dine(rules, table(n), player("dpbench/polite"), 3))) >= 5


def test_hesitation_makes_deadlocks_rarer() -> None:
    def deadlocks(hesitation: float) -> int:
        agents = player("dpbench/polite", hesitation=hesitation)
        return sum(
            dine(steps("simultaneous"), table(3), agents, s).outcome.facts["end"] == "deadlock" for s in range(60)
        )

    rash, slow = deadlocks(0), deadlocks(0.75)
    assert rash > 40 and slow < 20  # 0.89 and 0.10 in the long run
    first = [
        dine(steps("simultaneous", max_timesteps=1), table(3), player("dpbench/polite", hesitation=0), s)
        for s in range(400)
    ]
    assert 60 <= sum(played.outcome.facts["end"] == "deadlock" for played in first) <= 140  # one of four


# ---------------------------------------------------------------------------------------- Chandy–Misra


def all_eat_in_turn(played: Drive) -> None:
    """No deadlock, and neighbors eat alternately, so that their meals never differ by more than one."""
    eaten = meals(played)
    assert played.outcome.facts["end"] == "limit"
    assert min(eaten) > 0
    assert all(abs(a - b) <= 1 for a, b in pairwise([*eaten, eaten[0]]))
    assert max(eaten) - min(eaten) <= 2


@pytest.mark.sampled
@pytest.mark.parametrize("order, talk", TALK)
@pytest.mark.parametrize("rules", ["paper", "dpbench-0.1"])
@pytest.mark.parametrize("n", SIZES)
def test_with_right_of_way_no_agent_starves(order: str, talk: int, rules: str, n: int) -> None:
    played = dine(steps(order, talk, max_timesteps=300), table(n, rules), player("dpbench/chandy_misra"))
    all_eat_in_turn(played)
    assert fairness(played) > 0.95
    if order == "simultaneous":  # with n // 2 at the table at once, each meal takes three timesteps
        assert throughput(played) >= 0.97 * (n // 2) / 3


@pytest.mark.sampled
@pytest.mark.parametrize("order, talk", TALK)
@pytest.mark.parametrize("n", range(2, 8))
def test_no_two_with_right_of_way_want_the_same_fork(order: str, talk: int, n: int) -> None:
    before: dict[str, tuple[Turn, Action]] = {}
    for turn, action in acts(dine(steps(order, talk, max_timesteps=100), table(n), player("dpbench/chandy_misra"))):
        was, did = before.get(turn.agent, (turn, "WAIT"))
        if did.startswith("GRAB"):
            assert was.observation[f"{did[5:].lower()}_available"] and turn.observation[f"holds_{did[5:].lower()}"]
        assert action != "RELEASE"
        before[turn.agent] = turn, action


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(2, 6), st.sampled_from([1, 2]), st.integers(1, 3), seeds)
def test_being_made_to_give_up_disturbs_no_other(n: int, talk: int, threshold: int, seed: int) -> None:
    rules = steps("simultaneous", talk, max_timesteps=150, backoff_threshold=threshold)
    all_eat_in_turn(dine(rules, table(n), player("dpbench/chandy_misra"), seed))


class Lossy(Channel):
    """From the second round on every other message is lost; whoever it was for hears the one before again."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def open(self, case: Case, rng: random.Random) -> OpenChannel:
        inner, chance = load("channels", "neighbors", lifetime="latest").open(case, rng), self.chance

        class Open(OpenChannel):
            begun = False

            def observation(self, agent: str) -> Facts:
                seen: Facts = inner.observation(agent)
                return seen

            def commit(self, moves: Any) -> None:
                inner.commit([move for move in moves if not self.begun or chance.random() < 0.5])
                self.begun = True

        return Open()


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(2, 6), st.sampled_from([1, 2]), seeds)
def test_lost_and_repeated_messages_only_cost_time(n: int, talk: int, seed: int) -> None:
    rules = load("protocols", "steps", order="simultaneous", talk_rounds=talk, channel=Lossy(seed), max_timesteps=300)
    played = dine(rules, table(n), player("dpbench/chandy_misra"), seed)
    assert played.outcome.facts["end"] == "limit"
    assert min(meals(played)) >= 0.7 * max(meals(played)) > 12  # whose request is lost waits a meal longer
    assert sum(act(move) == "RELEASE" for batch in played.batches for _, move in batch) == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("max_chars", [None, 46])
def test_without_messages_of_right_of_way_the_convention_rules(order: str, max_chars: int | None) -> None:
    rules = steps(order) if max_chars is None else steps(order, 1, max_chars=max_chars)
    played = dine(rules, table(5), player("dpbench/chandy_misra"))
    assert played.outcome.facts["messages"] == 0
    ordered = dine(steps(order), table(5), player("dpbench/resource_ordering"))
    assert [action for _, action in acts(played)] == [action for _, action in acts(ordered)]


def test_every_agent_always_speaks_and_in_short() -> None:
    played = dine(steps("simultaneous", 2, max_chars=47), table(3), player("dpbench/chandy_misra"))
    texts = [m.action["message"] if t.name == "act" else m.action for batch in played.batches for t, m in batch]
    assert all(text and len(text) <= 47 for text in texts)
    assert texts[:2] == ["left: mine 0; right: mine 0", "left: please 0; right: please 0"]
    assert texts[2] == "left: mine 0; right: please 0"  # of P2 and P0, both even, the lower one begins
    all_eat_in_turn(played)


class Talker(Policy):
    """A neighbor that says whatever it is told to, and never takes a fork."""

    def __init__(self, texts: list[str | None]) -> None:
        self.texts = texts

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        text = rng.choice(self.texts)
        if isinstance(turn.reply, MessageLine):
            return text
        return {"act": "WAIT", "message": text} if isinstance(turn.reply, ActionWithMessage) else "WAIT"


words = st.sampled_from(["mine", "yours", "please", "MINE", "grab"])
counts = st.one_of(st.integers(0, 5).map(str), st.sampled_from(["-1", "٣", "9" * 10, "9" * 50, "²", ""]))
imitations = st.builds("left: {} {}; right: {} {}".format, words, counts, words, counts)


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(st.one_of(st.none(), st.text(max_size=60), imitations), min_size=1, max_size=4), seeds)
@pytest.mark.parametrize("order, talk", TALK)
def test_whatever_is_heard_nothing_raises(order: str, talk: int, texts: list[str | None], seed: int) -> None:
    def agents(agent: str) -> Policy:
        return Talker(texts) if agent in ("P1", "P3") else load("policies", "dpbench/chandy_misra")

    dine(steps(order, talk), table(4), agents, seed)


@pytest.mark.sampled
@pytest.mark.parametrize("order, talk", TALK)
@pytest.mark.parametrize("text", [None, "Shall I take my left fork?", "left: mine", "left: mine 0; right: mine 0 "])
@pytest.mark.parametrize("agent", ["P0", "P1", "P2"])
def test_beside_strangers_it_helps_itself(order: str, talk: int, text: str | None, agent: str) -> None:
    def agents(name: str) -> Policy:
        return load("policies", "dpbench/chandy_misra") if name == agent else Talker([text])

    played = dine(steps(order, talk, max_timesteps=300), table(3), agents)
    turns = 300 if order == "simultaneous" else 100
    assert played.outcome.facts["eaten"][agent] >= turns // 3 - 1


def test_a_neighbor_that_falls_silent_is_a_stranger_in_time() -> None:
    class Fickle(Policy):
        """Says that both forks are its own, twice; then nothing any more."""

        def choose(self, turn: Turn, rng: random.Random) -> Action:
            early = turn.observation["timestep"] <= 2
            return {"act": "WAIT", "message": "left: mine 0; right: mine 0" if early else None}

    def agents(name: str) -> Policy:
        return load("policies", "dpbench/chandy_misra") if name == "P1" else Fickle()

    first = [a for t, a in acts(dine(steps("simultaneous", 1), table(3), agents)) if t.agent == "P1"].index("GRAB_LEFT")
    assert 5 <= first <= 10


# ------------------------------------------------------------------------------------------ all of them


@pytest.mark.sampled
@pytest.mark.parametrize("order, talk", [s for s in SETTINGS if s[1] <= 2])
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("name", [*(f"dpbench/{name}" for name in SCRIPTED), "random", "all_agree"])
def test_policies_keep_their_contract(name: str, n: int, order: str, talk: int) -> None:
    assert conformance.check_policy(lambda: load("policies", name), steps(order, talk), table(n)) == []


@pytest.mark.parametrize("name", SCRIPTED)
@settings(max_examples=examples(30), deadline=None)
@given(st.integers(2, 6), st.sampled_from(SETTINGS), st.sets(st.integers(0, 5)), seeds)
def test_policies_sit_beside_random_ones(
    name: str, n: int, how: tuple[str, int], scripted: set[int], seed: int
) -> None:
    def agents(agent: str) -> Policy:
        return load("policies", f"dpbench/{name}" if int(agent[1:]) in scripted else "random")

    rules = steps(*how, deadlock="non_terminal", backoff_threshold=3, memory=2)
    assert dine(rules, table(n), agents, seed).outcome.facts["timesteps"] >= 30


@pytest.mark.parametrize("name", SCRIPTED)
def test_elsewhere_they_say_where_they_belong(name: str) -> None:
    task = load("tasks", "agentsnet/consensus")
    rules = load("protocols", "local_rounds", channel=load("channels", "neighbors"))
    player_: Callable[[Turn], Action] = lambda turn: load("policies", f"dpbench/{name}").choose(turn, random.Random(0))  # noqa: E731
    with pytest.raises(PluginError, match=r"the dining philosophers.*\n.*dpbench/dining_table"):
        drive(rules, task, task.example(), player_)


def test_a_name_without_number_is_refused() -> None:
    task = table(3)
    case = task.example()
    turn = Turn("P0", "act", task.world(case, random.Random(0)).observation("P0"), task.reply(case, "P0"))
    nameless = replace(turn, context={**task.context(case, "P0"), "name": "Plato"})
    with pytest.raises(PluginError, match="'Plato' does not"):
        load("policies", "dpbench/odd_even").choose(nameless, random.Random(0))
