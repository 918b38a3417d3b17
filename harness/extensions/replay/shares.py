"""Each agent's share of a difference: leave-one-out, and the Shapley value.

The players are agents; the worth of a coalition is the episode's number where the reference plays all of its agents and
the others play as they did. Shapley (1953), "A value for n-person games"; sampling of permutations: Castro, Gómez and
Tejada (2009), "Polynomial calculation of the Shapley value based on sampling".

An agent all of whose moves in a course are those that the reference would have made changes nothing by being replaced
in it: so one course settles many coalitions, and where few agents deviate the values are exact after few courses.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from harness.tables.stats import t_quantile

Coalition = frozenset[str]
Worth = Callable[[Coalition], Awaitable[tuple[Fraction, Coalition]]]
"""A coalition → (its worth, the agents outside of it that could join it and change nothing)."""

MOST_EXACT = 6
"""Agents that deviate, up to which all their coalitions are played: 64 courses."""


@dataclass(frozen=True)
class Share:
    """An agent's share of the difference between all agents replaced and none.

    Attributes:
        value: its Shapley value; of all agents they sum to the difference exactly.
        low, high: 95 % interval where it was sampled; None if it is exact.
        alone: what replacing it alone changes.
        last: what replacing it changes where all others are replaced.
    """

    value: Fraction
    low: float | None
    high: float | None
    alone: Fraction
    last: Fraction


class AgentGame:
    """The worth of each coalition, played once."""

    def __init__(self, agents: Sequence[str], worth: Worth) -> None:
        self.agents, self._worth = tuple(agents), worth
        self._known: list[tuple[Coalition, Coalition, Fraction]] = []
        self.deviating: set[str] = set()

    async def worth(self, coalition: Coalition) -> Fraction:
        """Its worth. Raises what a course raises."""
        for least, most, value in self._known:
            if least <= coalition <= most:
                return value
        value, followers = await self._worth(coalition)
        self._known.append((coalition, coalition | followers, value))
        self.deviating |= {*self.agents} - coalition - followers
        return value

    async def shares(self, permutations: int, seed: int) -> dict[str, Share]:
        """Agent → its share: exact where few agents deviate, else by so many permutations, drawn from the seed."""
        everyone = frozenset(self.agents)
        nothing, whole = await self.worth(frozenset()), await self.worth(everyone)
        marginals: dict[str, list[Fraction]] | None = None
        played: set[str] | None = None
        while played != self.deviating and len(self.deviating) <= MOST_EXACT:
            played = set(self.deviating)
            for coalition in _subsets(sorted(played)):
                await self.worth(frozenset(coalition))
        if len(self.deviating) <= MOST_EXACT:
            values = await self._exact(sorted(self.deviating))
        else:
            marginals = await self._sampled(permutations, seed)
            values = {agent: sum(own, Fraction(0)) / len(own) for agent, own in marginals.items()}
        assert sum(values.values()) == whole - nothing
        shares = {}
        for agent in self.agents:
            value = values.get(agent, Fraction(0))
            low, high = _interval(marginals[agent]) if marginals is not None else (None, None)
            alone = await self.worth(frozenset([agent])) - nothing
            last = whole - await self.worth(everyone - {agent})
            shares[agent] = Share(value, low, high, alone, last)
        return shares

    async def _exact(self, agents: Sequence[str]) -> dict[str, Fraction]:
        """Shapley values of those that deviate; all others' are 0."""
        n, values = len(agents), dict.fromkeys(agents, Fraction(0))
        for agent in agents:
            others = [other for other in agents if other != agent]
            for coalition in _subsets(others):
                size = len(coalition)
                orders = math.factorial(size) * math.factorial(n - size - 1)
                gain = await self.worth(frozenset([*coalition, agent])) - await self.worth(frozenset(coalition))
                values[agent] += gain * Fraction(orders, math.factorial(n))
        return values

    async def _sampled(self, permutations: int, seed: int) -> dict[str, list[Fraction]]:
        """Agent → what it adds in each permutation; every second one is the reverse of the one before, the last too."""
        rng, added = random.Random(seed), {agent: list[Fraction]() for agent in self.agents}
        order = list(self.agents)
        for i in range(permutations + permutations % 2):
            if i % 2:
                order.reverse()
            else:
                rng.shuffle(order)
            before, members = await self.worth(frozenset()), set[str]()
            for agent in order:
                members.add(agent)
                after = await self.worth(frozenset(members))
                added[agent].append(after - before)
                before = after
        return added


def _subsets(agents: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(agents, size) for size in range(len(agents) + 1))


def _interval(values: Sequence[Fraction]) -> tuple[float | None, float | None]:
    """95 % interval of a mean over pairs of permutations, each with its reverse."""
    pairs = [float(values[i] + values[i + 1]) / 2 for i in range(0, len(values), 2)]
    if len(pairs) < 2:
        return None, None
    mean = statistics.fmean(pairs)
    half = t_quantile(len(pairs) - 1) * statistics.stdev(pairs) / math.sqrt(len(pairs))
    return mean - half, mean + half
