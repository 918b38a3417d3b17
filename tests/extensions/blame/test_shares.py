"""Shares of agents: the Shapley value, exact and sampled."""

import asyncio
import itertools
import math
import runpy
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.extensions.blame.shares import MAX_EXACT_AGENTS, AgentGame, Coalition, Share
from tests.helpers.commands import ROOT
from tests.helpers.samples import examples

AGENTS = "ABCD"
BENCHMARK = runpy.run_path(str(ROOT / "benchmarks" / "blame_shares.py"))


def game(worths: dict[Coalition, int], agents: str = AGENTS) -> AgentGame:
    """A game in which nobody is known to follow the reference."""

    async def worth(coalition: Coalition) -> tuple[Fraction, Coalition]:
        return Fraction(worths[coalition], 7), frozenset()

    return AgentGame(agents, worth)


def coalitions(agents: str) -> list[Coalition]:
    return [frozenset(c) for n in range(len(agents) + 1) for c in itertools.combinations(agents, n)]


@given(st.lists(st.integers(-50, 50), min_size=16, max_size=16))
@settings(max_examples=examples(4))
def test_exact_shares_are_means_over_all_orders(numbers: list[int]) -> None:
    worths = dict(zip(coalitions(AGENTS), numbers, strict=True))
    shares = asyncio.run(game(worths).shares(2, 0))
    for agent in AGENTS:
        added = 0
        for order in itertools.permutations(AGENTS):
            before = frozenset(order[: order.index(agent)])
            added += worths[before | {agent}] - worths[before]
        assert shares[agent].value == Fraction(added, 7 * math.factorial(4))
        assert shares[agent].alone == Fraction(worths[frozenset(agent)] - worths[frozenset()], 7)
        assert shares[agent].last == Fraction(worths[frozenset(AGENTS)] - worths[frozenset(AGENTS) - {agent}], 7)
    assert sum(share.value for share in shares.values()) == Fraction(numbers[-1] - numbers[0], 7)


@given(st.integers(0, 2**32), st.integers(2, 20))
@example(1, 5)
@settings(max_examples=examples(2))
def test_sampled_shares_sum_to_the_difference_exactly(seed: int, permutations: int) -> None:
    agents = "ABCDEFGH"
    worths = {one: (seed >> len(one)) % (len(one) + 3) for one in coalitions(agents)}
    shares = asyncio.run(game(worths, agents).shares(permutations, seed))
    whole, nothing = worths[frozenset(agents)], worths[frozenset()]
    assert len(agents) > MAX_EXACT_AGENTS and sum(share.value for share in shares.values()) == Fraction(
        whole - nothing, 7
    )
    assert all(
        share.low is None or share.low - 1e-9 <= share.value <= (share.high or 0) + 1e-9 for share in shares.values()
    )


@given(st.sets(st.sampled_from("ABCDEFGHIJ"), max_size=4), st.integers(0, 3))
@settings(max_examples=examples(4))
def test_agents_that_follow_the_reference_are_not_played(deviating: set[str], needed: int) -> None:
    agents, asked = "ABCDEFGHIJ", list[Coalition]()

    async def worth(coalition: Coalition) -> tuple[Fraction, Coalition]:
        asked.append(coalition)
        return Fraction(len(coalition & deviating) >= needed), frozenset(agents) - deviating - coalition

    shares = asyncio.run(AgentGame(agents, worth).shares(2, 0))
    assert len(asked) <= 2 ** len(deviating) + 1 and all(
        coalition <= deviating or len(coalition) > 8 for coalition in asked[2:]
    )
    assert all(shares[agent].value == 0 for agent in agents if agent not in deviating)


def sampled(agents: str, worth: Callable[[Coalition], Fraction], seed: int, permutations: int = 32) -> dict[str, Share]:
    """Shares of a game in which the agents of capital letters deviate, and all others follow the reference."""
    others = frozenset(one for one in agents if one.islower())

    async def play(coalition: Coalition) -> tuple[Fraction, Coalition]:
        return worth(coalition), others - coalition

    return asyncio.run(AgentGame(agents, play).shares(permutations, seed))


@given(st.integers(7, 20), st.integers(1, 20), st.integers(0, 3), st.integers(0, 99))
@settings(max_examples=examples(2))
def test_symmetric_agents_have_equal_shares_however_they_are_drawn(n: int, needed: int, idle: int, seed: int) -> None:
    """So many agents are needed, whoever they are: without the idle ones, which have nothing."""
    agents, needed = "ABCDEFGHIJKLMNOPQRST"[:n], min(n, needed)
    shares = sampled(agents + "xyz"[:idle], lambda one: Fraction(len(one & {*agents}) >= needed), seed, 4)
    assert {shares[agent].value for agent in agents} == {Fraction(1, n)}
    assert all(share.value == 0 for agent, share in shares.items() if agent in "xyz")
    assert all(share.low is share.high is None for share in shares.values()), "nothing of it is drawn"


@given(st.integers(2, 5), st.integers(0, 99))
@settings(max_examples=examples(2))
def test_kinds_of_agents_have_equal_shares_within_each_kind(needed: int, seed: int) -> None:
    """The boss is needed, and so many of the nine others."""
    shares = sampled("BCDEFGHIJK", lambda one: Fraction("B" in one and len(one) > needed), seed)
    values = {share.value for agent, share in shares.items() if agent != "B"}
    assert len(values) == 1 and shares["B"].value + 9 * values.pop() == 1


@given(st.lists(st.integers(1, 5), min_size=8, max_size=8), st.integers(0, 99))
@settings(max_examples=examples(2))
def test_sampled_intervals_have_a_width_and_hold_the_share(votes: list[int], seed: int) -> None:
    own = dict(zip("ABCDEFGH", votes, strict=True))
    shares = sampled("ABCDEFGH", lambda one: Fraction(2 * sum(own[a] for a in one) > sum(votes)), seed)
    for share in shares.values():
        assert (share.low is None) == (share.high is None)
        assert share.low is None or share.high is None or share.low < share.high
        assert share.low is None or share.high is None or share.low <= share.value <= share.high


@pytest.mark.slow
@pytest.mark.parametrize("size", BENCHMARK["SIZES"])
@pytest.mark.parametrize("kind", BENCHMARK["GAMES"])
def test_intervals_cover_the_shapley_value(kind: str, size: int) -> None:
    found = BENCHMARK["row"](kind, size, 20)
    assert found["covered"] == "exact" or float(str(found["covered"])) >= 0.95
    assert found["zero width"] == 0
