"""Floors, ceilings and saboteurs: classical algorithms keep their invariants, whatever reaches them."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Parsed, Policy, Reply, Turn
from harness.api.errors import PluginError
from harness.extensions.networks.messages import Messages
from harness.replies import Choice
from harness.runtime.steps import Drive
from tests.benchmarks.agentsnet.agentsnet_kit import (
    PROBLEMS,
    case_of,
    grade,
    load,
    local_rounds,
    network,
    networks,
    play,
    task,
)
from tests.helpers.samples import examples

EXAMPLE = task("coloring").example()
LINE = case_of(network({(0, 1), (1, 2), (2, 3), (3, 4)}, 5))  # Emma Alan Bob Evelyn Mary; diameter 4
seeds = st.integers(0, 10**6)


def classical(**parameters: Any) -> Callable[[str], Policy]:
    return lambda agent: load("policies", "agentsnet/classical", **parameters)


def rerun(problem: str, case: Case, rounds: Any, seed: int = 0, **parameters: Any) -> Drive:
    return play(local_rounds(rounds=rounds), task(problem), case, classical(**parameters), seed)


def solved(problem: str, case: Case, played: Drive) -> float | None:
    return grade(task(problem), case, played.outcome.answers)["solved"]


# ---------------------------------------------------------------------------------------- classical


@pytest.mark.sampled(2)
@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(30), deadline=None)
@given(topology=networks(high=8, connected=True), seed=seeds)
def test_with_time_enough_everything_is_solved(problem: str, topology: dict[str, tuple[str, ...]], seed: int) -> None:
    case = case_of(topology)
    assert solved(problem, case, rerun(problem, case, 60, seed)) == 1


@pytest.mark.parametrize("problem", ["consensus", "leader_election"])
@settings(max_examples=examples(60), deadline=None)
@given(topology=networks(high=8, connected=True), seed=seeds)
def test_flooding_never_fails_in_the_papers_budget(problem: str, topology: Any, seed: int) -> None:
    case = case_of(topology)
    assert solved(problem, case, rerun(problem, case, "paper", seed)) == 1


def test_flooding_needs_as_many_rounds_as_the_diameter() -> None:
    ends = ["Alan", "Mary", "Joseph", "Evelyn", "Bob"]  # in this line Alan and Bob both come before their neighbors
    line = case_of({name: tuple(ends[i] for i in (k - 1, k + 1) if 0 <= i < 5) for k, name in enumerate(ends)})

    def leaders(rounds: int) -> list[str]:
        answers = rerun("leader_election", line, rounds).outcome.answers
        return [agent for agent, answer in answers.items() if answer == "Yes"]

    assert [leaders(rounds) for rounds in (0, 1, 3, 4)] == [ends, ["Alan", "Bob"], ["Alan", "Bob"], ["Alan"]]


@settings(max_examples=examples(60), deadline=None)
@given(networks(high=7, connected=True), st.integers(0, 7), st.integers(1, 3), seeds)
def test_no_budget_makes_the_algorithms_contradict_themselves(
    topology: Any, rounds: int, deliveries: int, seed: int
) -> None:
    case = case_of(topology)
    matched = rerun("matching", case, rounds, seed, deliveries_per_phase=deliveries).outcome.answers
    assert all(matched[partner] == agent for agent, partner in matched.items() if partner != "None")
    cover = rerun("vertex_cover", case, rounds, seed, deliveries_per_phase=deliveries).outcome.answers
    assert all("Yes" in (cover[u], cover[v]) for u in topology for v in topology[u])
    results = [
        {agent: text for agent, texts in round_.items() for text in texts if text.startswith("took")}
        for round_ in said(rerun("coloring", case, rounds, seed, deliveries_per_phase=deliveries))
    ]
    for colors in results:
        assert all(colors[u] != colors[v] for u in colors for v in topology[u] if v in colors)


def said(played: Drive) -> list[Mapping[str, set[str]]]:
    """What every agent said in every round of messages."""
    rounds = (batch for batch in played.batches if batch[0][0].name != "answer")
    return [{turn.agent: set(move.action.values()) for turn, move in batch} for batch in rounds]


def test_phases_open_only_if_they_fit() -> None:
    def words(**parameters: Any) -> list[set[str]]:
        rounds = said(rerun("coloring", EXAMPLE, 5, 1, **parameters))
        return [{text.split()[0] for texts in agents.values() for text in texts} for agents in rounds]

    tries = {
        name: [number for number, item in enumerate(words(**parameters), 1) if "try" in item]
        for name, parameters in {
            "default": {}, "one": {"deliveries_per_phase": 1}, "three": {"deliveries_per_phase": 3},
            "once": {"max_phases": 1}, "never": {"max_phases": 0},
        }.items()
    }  # fmt: skip
    assert tries["default"] == [1, 3]  # the fifth round cannot be followed by an announcement
    assert tries["one"][:2] == [1, 2]
    assert (tries["three"], tries["once"], tries["never"]) == ([1], [1], [])
    assert set().union(*words(max_phases=0)) == set()


def test_agents_without_a_color_pick_any() -> None:
    answers = Counter(rerun("coloring", EXAMPLE, 4, seed, max_phases=0).outcome.answers["Emma"] for seed in range(80))
    assert set(answers) == {"Group 1", "Group 2", "Group 3", "Group 4"}


hostile = st.text(max_size=100) | st.builds(
    "{} {}".format,
    st.sampled_from(["try", "took", "pair", "taken", "number", "independent", "value", "leader"]),
    st.text(max_size=90) | st.integers().map(str) | st.sampled_from(["²", "１", "9" * 30, "0", "1"]),
)


@pytest.mark.parametrize("problem", PROBLEMS)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_nothing_that_is_heard_makes_an_agent_break_a_rule(problem: str, data: st.DataObject) -> None:
    agent: Policy = load("policies", "agentsnet/classical")
    chance = random.Random(data.draw(seeds))
    near = ("Alan", "Bob", "Evelyn")
    context = {"problem": problem, "n": 4, "name": "Emma", "neighbors": near, "groups": 4, "rounds": 4}
    for number in range(1, 6):
        inbox = data.draw(st.dictionaries(st.sampled_from(near), hostile | st.none() | st.integers()))
        answer = task(problem).reply(EXAMPLE, "Emma")
        reply: Reply = answer if number == 5 else Messages(near)
        observation = {"inbox": inbox, "round": number, "rounds_left": 5 - number}
        action = agent.choose(Turn("Emma", "talk", observation, reply, context), chance)
        if number == 5:
            assert action in answer.options
        else:
            assert set(action) <= set(near) and all(isinstance(text, str) for text in action.values())


def test_problems_without_an_algorithm() -> None:
    turn = Turn(
        "Emma", "talk", {"inbox": {}, "round": 1, "rounds_left": 1}, Messages(("Bob",)), {"problem": "colouring"}
    )
    with pytest.raises(PluginError, match=r"(?s)no algorithm for the problem 'colouring'.*Did you mean coloring"):
        load("policies", "agentsnet/classical").choose(turn, random.Random(0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("problem", "size", "low", "high"),
    [("coloring", 4, 0.55, 0.8), ("coloring", 8, 0.55, 0.8), ("matching", 8, 0.68, 0.92), ("vertex_cover", 8, 0.97, 1)],
)
def test_success_on_the_papers_networks(problem: str, size: int, low: float, high: float) -> None:
    """A small sample of what `benchmarks/agentsnet_baselines.py` measures: 90 plays with fixed seeds."""
    results = [
        solved(problem, case, rerun(problem, case, "paper", seed))
        for graphs in ("small_world", "scale_free", "delaunay")
        for case in task(problem, graphs=graphs, size=size).cases(None, 0)
        for seed in range(10)
    ]
    assert low <= sum(map(bool, results)) / len(results) <= high


# ----------------------------------------------------------------------------------------- saboteurs


def mixed(agent: str) -> Policy:
    sits: Policy = load("policies", "agentsnet/saboteur" if agent == "Evelyn" else "agentsnet/classical")
    return sits


@pytest.mark.sampled(1)
@pytest.mark.parametrize("problem", ["leader_election", "matching", "vertex_cover"])
def test_a_saboteur_keeps_honest_agents_from_solving(problem: str) -> None:
    """In coloring and consensus it does little harm: colors are checked with every neighbor, and 0 spreads."""
    case = case_of(LINE.topology or {}, frozenset({"Evelyn"}))

    def wins(policies: Callable[[str], Policy]) -> float:
        games = [play(local_rounds(rounds=6), task(problem), case, policies, seed) for seed in range(60)]
        return sum(solved(problem, case, game) or 0 for game in games)

    assert wins(mixed) < 0.7 * wins(classical())


def test_a_saboteur_contradicts_itself() -> None:
    played = play(local_rounds(rounds=8), task("consensus"), LINE, mixed)
    lines = [move.action for batch in played.batches for turn, move in batch if turn.agent == "Evelyn"][:-1]
    assert all(set(action) == {"Bob", "Mary"} for action in lines)
    assert any(action["Bob"] != action["Mary"] for action in lines)


def test_a_saboteurs_answer_is_against_its_neighbors() -> None:
    saboteur: Policy = load("policies", "agentsnet/saboteur")

    def answer(problem: str, inbox: dict[str, str]) -> Any:
        observation = {"inbox": inbox, "round": 5}
        turn = Turn(
            "Emma", "answer", observation, task(problem).reply(EXAMPLE, "Emma"), task(problem).context(EXAMPLE, "Emma")
        )
        return saboteur.choose(turn, random.Random(0))

    assert answer("coloring", {"Alan": "took 3"}) == "Group 3"
    assert answer("coloring", {"Alan": "took 99"}) in task("coloring").reply(EXAMPLE, "Emma").options
    assert answer("leader_election", {}) == "Yes"
    assert answer("consensus", {"Alan": "value 1", "Bob": "value 1", "Evelyn": "value 0"}) == "0"


class Essay(Reply):
    """A reply form with no end of legal actions."""

    @property
    def noop(self) -> str:
        return "(silence)"

    def parse(self, text: str) -> Parsed:
        return Parsed(text)


@pytest.mark.parametrize("name", ["random", "all_agree", "agentsnet/saboteur"])
def test_policies_play_any_agent(name: str) -> None:
    policy: Policy = load("policies", name)
    assert policy.choose(Turn("A", "say", {}, Essay()), random.Random(0)) == "(silence)"
    assert policy.choose(Turn("A", "say", {}, Choice(("a", "b"))), random.Random(0)) in ("a", "b")
    assert set(policy.choose(Turn("A", "say", {}, Messages(("B",))), random.Random(0))) <= {"B"}


# -------------------------------------------------------------------------------------------- floors


def test_the_random_policy_is_uniform() -> None:
    policy: Policy = load("policies", "random")
    turn = Turn("A", "answer", {}, Choice(("a", "b", "c", "d")))
    counts = Counter(policy.choose(turn, random.Random(seed)) for seed in range(4000))
    assert set(counts) == {"a", "b", "c", "d"} and all(900 < count < 1100 for count in counts.values())


def test_all_agree_is_the_best_consensus_and_the_worst_coloring() -> None:
    def agree(agent: str) -> Policy:
        sits: Policy = load("policies", "all_agree")
        return sits

    for problem, score in (("consensus", 1), ("coloring", 0), ("leader_election", 0), ("vertex_cover", 0)):
        played = play(local_rounds(), task(problem), EXAMPLE, agree)
        assert grade(task(problem), EXAMPLE, played.outcome.answers) == {"solved": score, "score": score}
        assert played.outcome.facts["messages"] == 0
