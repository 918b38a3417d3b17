"""Shares of agents: the Shapley value, exact and sampled."""

import asyncio
import itertools
import math
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.extensions.replay.shares import MOST_EXACT, AgentGame, Coalition
from tests.helpers.samples import examples

AGENTS = "ABCD"


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
    assert len(agents) > MOST_EXACT and sum(share.value for share in shares.values()) == Fraction(whole - nothing, 7)
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
