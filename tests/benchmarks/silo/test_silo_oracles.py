"""Perfect teams have the messages and rounds that theory gives them; failing ones fail in just the way they should."""

from collections.abc import Callable
from math import ceil, floor, log2
from typing import Any

import pytest

from harness.api import Episode
from tests.benchmarks.silo.silo_kit import BUILTIN, SEGMENTED, TASKS, Played, play

SIZES = (1, 2, 3, 5, 10)
# channel, plan → messages, rounds by latency, D: functions of N (and λ)
Count = Callable[[int], float]
PLANS: dict[tuple[str, str], tuple[Count, Callable[[int, int], int], Count]] = {
    ("mailbox", "star"): (lambda n: 2 * (n - 1), lambda n, d: 1 + 2 * d, lambda n: 2 / n),
    ("mailbox", "tree"): (lambda n: 2 * (n - 1), lambda n, d: 1 + 2 * d * floor(log2(n)), lambda n: 2 / n),
    ("mailbox", "dissemination"): (
        lambda n: n * ceil(log2(n)), lambda n, d: 1 + d * ceil(log2(n)), lambda n: ceil(log2(n)) / (n - 1),
    ),
    ("mailbox", "all"): (lambda n: n * (n - 1), lambda n, d: 1 + d, lambda n: 1),
    ("broadcast", "all"): (lambda n: n, lambda n, d: 1 + d, lambda n: 1),
    ("broadcast", "star"): (lambda n: n, lambda n, d: 1 + 2 * d, lambda n: 1),
    ("store", "all"): (lambda n: n, lambda n, d: 1 + d, lambda n: 1),
    ("store", "star"): (lambda n: n, lambda n, d: 1 + 2 * d, lambda n: 2 / n),
}  # fmt: skip
LATENCIES: dict[str, list[tuple[str | None, int]]] = {
    "mailbox": [("push", 1), ("pull", 2)],
    "broadcast": [("push", 1), ("pull", 2)],
    "store": [(None, 2)],
}
CASES = [(c, plan, inbox, late) for c, plan in PLANS for inbox, late in LATENCIES[c]]


def measured(name: str, played: Played, **parameters: Any) -> float | None:
    metric = BUILTIN.load("metrics", name)(**parameters)
    labels = {**played.case.labels}
    episode = Episode("e", "c", played.case.id, 0, labels, {}, [], played.outcome, played.grade)
    number: float | None = metric.measure(episode)
    return number


def perfect(played: Played) -> None:
    assert (played.grade["success"], played.grade["partial"], played.flags) == (1, 1, set())
    assert played.facts["refused"] == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", TASKS)
def test_every_plan_solves_every_task(task: str) -> None:
    for channel, plan, inbox, _ in CASES:
        for agents in SIZES:
            perfect(play(task, channel, agents, plan=plan, inbox=inbox))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("channel", "plan", "inbox", "late"), CASES)
def test_messages_rounds_and_density(channel: str, plan: str, inbox: str | None, late: int) -> None:
    messages, rounds, density = PLANS[channel, plan]
    for agents in (2, 3, 4, 5, 8, 16, 31, 50):
        for task in ("global_maximum", "prefix_sum"):
            played = play(task, channel, agents, plan=plan, inbox=inbox)
            perfect(played)
            assert played.facts["messages"] == messages(agents), (agents, task)
            assert played.facts["rounds"] == rounds(agents, late), (agents, task)
            assert measured("silo/density", played) == pytest.approx(density(agents))
            sends = messages(agents) / (agents * (agents - 1))
            assert measured("silo/density", played, count="sends") == pytest.approx(sends)
            if channel == "store":
                assert played.reads == (agents * (agents - 1) if plan == "all" else 2 * (agents - 1))


def test_one_agent_submits_at_once_without_a_word() -> None:
    for channel, plan, inbox, _ in CASES:
        played = play("distributed_sort", channel, 1, plan=plan, inbox=inbox)
        perfect(played)
        assert (played.facts["rounds"], played.facts["messages"], measured("silo/density", played)) == (1, 0, 0)


@pytest.mark.parametrize(("inbox", "late"), LATENCIES["mailbox"])
def test_plans_for_some_tasks(inbox: str, late: int) -> None:
    for agents in (2, 3, 10, 20):
        for task in ("prefix_sum", "pipeline_hash"):
            chain = play(task, "mailbox", agents, plan="chain", inbox=inbox)
            perfect(chain)
            assert (chain.facts["messages"], chain.facts["rounds"]) == (agents - 1, 1 + late * (agents - 1))
        halo = play("life_game_1d", "mailbox", agents, plan="halo", inbox=inbox)
        perfect(halo)
        assert (halo.facts["messages"], halo.facts["rounds"]) == (2 * (agents - 1), 1 + late)


@pytest.mark.parametrize(("inbox", "late"), LATENCIES["mailbox"])
def test_a_match_is_announced_to_all_and_silence_proves_nothing(inbox: str, late: int) -> None:
    result = 0
    for seed in range(12):
        played = play("any_match", "mailbox", 5, plan="flag", inbox=inbox, seed=seed, rounds=20)
        if played.case.target[0]:
            perfect(played)
            assert (played.facts["messages"], played.facts["rounds"]) == (4, 1 + late)
            result += 1
        else:
            assert played.flags == {"timeout"} and played.facts["rounds"] == 20
    assert 0 < result < 12


@pytest.mark.slow
def test_a_long_chain_that_pulls_runs_out_of_rounds() -> None:
    late = play("prefix_sum", "mailbox", 100, plan="chain", inbox="pull")
    assert late.flags == {"timeout"} and late.facts["rounds"] == 100
    perfect(play("prefix_sum", "mailbox", 100, plan="chain", inbox="push"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "task",
    ["global_maximum", "distributed_sort", "load_balance", pytest.param("matrix_multiply", marks=pytest.mark.slow)],
)
def test_a_hundred_agents(task: str) -> None:
    for channel in ("mailbox", "broadcast", "store"):
        perfect(play(task, channel, 100, plan="star"))
    perfect(play(task, "mailbox", 100, plan="tree"))


def test_more_replies_a_round_make_reading_files_a_matter_of_one() -> None:
    played = play("global_maximum", "store", 5, plan="all", calls=2)
    assert (played.grade["success"], played.flags, played.facts["rounds"], played.reads) == (1, set(), 2, 20)
    assert played.facts["refused"] == 20, "in the first round nobody sees another's file yet"


def test_who_leads() -> None:
    led = {n: measured("silo/leader", play("prefix_sum", "mailbox", n, plan="star")) for n in (2, 3, 4, 10)}
    assert led == {2: 0, 3: 0, 4: 1, 10: 1}, "with three the hub has exactly 1.5 times the mean"
    tree = {n: measured("silo/leader", play("prefix_sum", "mailbox", n, plan="tree")) for n in (3, 5, 10, 31)}
    assert tree == {3: 0, 5: 1, 10: 1, 31: 1}
    assert measured("silo/leader", play("prefix_sum", "mailbox", 2, plan="chain")) == 1, "a single one-way message"
    for plan in ("all", "dissemination"):
        assert measured("silo/leader", play("prefix_sum", "mailbox", 10, plan=plan)) == 0
    assert measured("silo/leader", play("prefix_sum", "mailbox", 1)) is None


# ---------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("task", ["global_maximum", "top_k_selection", "list_ranking", "k_means_iteration"])
@pytest.mark.parametrize("channel", ["mailbox", "broadcast", "store"])
def test_each_mistake_shows_its_own_failure_modes(task: str, channel: str) -> None:
    early = play(task, channel, 5, plan="star", mistake="early")
    assert early.flags - {"consensus"} == {"premature"} and early.facts["rounds"] == 1
    distinct = len({str(answer) for answer in early.outcome.answers.values()}) > 1
    assert ("consensus" in early.flags) == distinct
    one = play(task, channel, 5, plan="all", mistake="one")
    assert one.flags == {"consensus", "computation"} and one.grade["success"] == 0.8
    agents = play(task, channel, 5, plan="all", mistake="all")
    assert agents.flags == {"computation"} and agents.grade["success"] == 0


@pytest.mark.parametrize("task", sorted(SEGMENTED))
def test_different_answers_are_no_consensus(task: str) -> None:
    for mistake in (None, "early", "one", "all"):
        assert play(task, "mailbox", 5, plan="star", mistake=mistake).grade["consensus"] is None
    assert play(task, "mailbox", 5, plan="all", mistake="one").flags == {"computation"}


def test_followers_of_a_star_know_what_the_hub_knew() -> None:
    """They hear of one agent only, and still of everybody's data: nobody is premature."""
    played = play("global_maximum", "mailbox", 10, plan="star")
    assert {played.facts["met"][f"Agent-{i}"] for i in range(1, 10)} == {"1"}
    assert set(played.facts["knew"].values()) == {f"{2**10 - 1:x}"}


@pytest.mark.slow
def test_what_can_be_guessed_without_a_word() -> None:
    """The claims of the release's generators: majority in every shard, planted palindromes, merged values."""
    vote = [play("distributed_vote", "silence", 10, policy="silo/silent", seed=s).grade["success"] for s in range(20)]
    assert vote == [1] * 20
    planted = [
        play("longest_palindrome", "silence", 5, policy="silo/silent", seed=s, guess="prior").grade["success"] == 1
        for s in range(100)
    ]
    assert sum(planted) >= 85
    for seed in range(20):
        merged = play("merge_neighbors", "silence", 50, policy="silo/silent", seed=seed, guess="prior")
        assert merged.grade["success"] == 1
    top = [
        play("global_maximum", "silence", 100, policy="silo/silent", seed=s, guess="prior").grade["success"] == 1
        for s in range(100)
    ]
    assert 45 <= sum(top) <= 80, "63 % (1 − (2000/2001)^2000)"


def test_harder_domains_are_harder_to_guess() -> None:
    hard = [
        play("distributed_vote", "silence", 10, policy="silo/silent", seed=s, domain="hardened").grade["success"]
        for s in range(10)
    ]
    assert max(x or 0 for x in hard) < 0.5
    assert not any(
        play("global_maximum", "silence", 100, policy="silo/silent", seed=s, domain="hardened", guess="prior").grade[
            "success"
        ]
        for s in range(10)
    )
