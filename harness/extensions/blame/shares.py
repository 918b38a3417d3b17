"""Each agent's share of a difference: leave-one-out, and the Shapley value.

The players are agents; the worth of a coalition is the episode's number where the reference plays all of its agents and
the others play as they did. Shapley (1953), "A value for n-person games"; sampling of permutations: Castro, Gómez and
Tejada (2009), "Polynomial calculation of the Shapley value based on sampling".

An agent all of whose moves in a course are those that the reference would have made changes nothing by being replaced
in it: so one course settles many coalitions, and where few agents deviate the values are exact after few courses.

Where they are sampled, agents that nothing tells apart have the same value: those that change the same alone and where
all others are replaced, if every coalition that was played is worth what its numbers of such agents say.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from harness.tables.stats import t_quantile

Coalition = frozenset[str]
Worth = Callable[[Coalition], Awaitable[tuple[Fraction, Coalition]]]
"""A coalition → (its worth, the agents outside of it that could join it and change nothing)."""

Interval = tuple[float | None, float | None]

MAX_EXACT_AGENTS = 6
"""Agents that deviate, up to which all their coalitions are played: 64 courses."""


@dataclass(frozen=True)
class Share:
    """An agent's share of the difference between all agents replaced and none.

    Attributes:
        value: its Shapley value; of all agents they sum to the difference exactly.
        low, high: 95 % interval where it was sampled; None if it is exact, or by symmetry.
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
        self._worths: dict[Coalition, Fraction] = {}
        self.deviating: set[str] = set()

    async def worth(self, coalition: Coalition) -> Fraction:
        """Its worth. Raises what a course raises."""
        if coalition in self._worths:
            return self._worths[coalition]
        known = next((value for least, most, value in self._known if least <= coalition <= most), None)
        if known is None:
            known, followers = await self._worth(coalition)
            self._known.append((coalition, coalition | followers, known))
            self.deviating |= {*self.agents} - coalition - followers
        self._worths[coalition] = known
        return known

    async def shares(self, permutations: int, seed: int) -> dict[str, Share]:
        """Agent → its share: exact where few agents deviate, else by so many permutations, drawn from the seed."""
        everyone = frozenset(self.agents)
        nothing, whole = await self.worth(frozenset()), await self.worth(everyone)
        marginals: dict[str, list[Fraction]] | None = None
        played: set[str] | None = None
        while played != self.deviating and len(self.deviating) <= MAX_EXACT_AGENTS:
            played = set(self.deviating)
            for coalition in _subsets(sorted(played)):
                await self.worth(frozenset(coalition))
        if len(self.deviating) <= MAX_EXACT_AGENTS:
            values = await self._exact(sorted(self.deviating))
        else:
            marginals = await self._sampled(permutations, seed)
            values = {agent: sum(own, Fraction(0)) / len(own) for agent, own in marginals.items()}
        assert sum(values.values()) == whole - nothing
        alone = {agent: await self.worth(frozenset([agent])) - nothing for agent in self.agents}
        last = {agent: whole - await self.worth(everyone - {agent}) for agent in self.agents}
        intervals: dict[str, Interval] = {}
        if marginals is not None:
            reach = self._reach(marginals)
            for members in self._symmetric([(one in self.deviating, alone[one], last[one]) for one in self.agents]):
                columns = zip(*(marginals[agent] for agent in members), strict=True)
                drawn = [sum(column, Fraction(0)) / len(members) for column in columns]
                values |= dict.fromkeys(members, sum(drawn, Fraction(0)) / len(drawn))
                is_drawn = self.deviating.issuperset(members) and len(members) < len(self.deviating)
                intervals |= dict.fromkeys(members, _interval(drawn, reach) if is_drawn else (None, None))
        shares = {}
        for agent in self.agents:
            low, high = intervals.get(agent, (None, None))
            shares[agent] = Share(values.get(agent, Fraction(0)), low, high, alone[agent], last[agent])
        return shares

    def _symmetric(self, kinds: Sequence[Hashable]) -> list[list[str]]:
        """The agents of each kind together, if by all that was played only their numbers matter; else each by itself.

        `kinds`: of each agent.
        """
        classes: dict[Hashable, list[str]] = {}
        for agent, kind in zip(self.agents, kinds, strict=True):
            classes.setdefault(kind, []).append(agent)
        places = {agent: i for i, members in enumerate(classes.values()) for agent in members}
        worths: dict[tuple[int, ...], Fraction] = {}
        for coalition, worth in self._worths.items():
            numbers = [0] * len(classes)
            for agent in coalition:
                numbers[places[agent]] += 1
            if worths.setdefault(tuple(numbers), worth) != worth:
                return [[agent] for agent in self.agents]
        return [*classes.values()]

    def _reach(self, marginals: Mapping[str, Sequence[Fraction]]) -> tuple[float, float]:
        """What an agent can add, by all that was played: downwards only where some agent did."""
        span = float(max(self._worths.values()) - min(self._worths.values()))
        signs = {added > 0 for own in marginals.values() for added in own if added}
        return (-span if False in signs else 0.0), (span if True in signs else 0.0)

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


def _interval(values: Sequence[Fraction], reach: tuple[float, float]) -> Interval:
    """95 % interval of a mean over pairs of permutations, each with its reverse.

    Two values at each end of what can be added are added to those that were drawn, as Agresti and Coull (1998) do for
    shares: an agent that mattered in none of few permutations may matter in others. `benchmarks/blame_shares.py`
    measures its coverage.
    """
    pairs = [float(values[i] + values[i + 1]) / 2 for i in range(0, len(values), 2)]
    if len(pairs) < 2:
        return None, None
    mean, more = statistics.fmean(pairs), [*pairs, *reach, *reach]
    center, half = statistics.fmean(more), t_quantile(len(more) - 1) * statistics.stdev(more) / math.sqrt(len(more))
    return max(reach[0], min(mean, center - half)), min(reach[1], max(mean, center + half))
