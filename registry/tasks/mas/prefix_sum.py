"""MAS-Bench's distributed prefix sum (Appendix G.3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

from harness.api import Facts, plugin

from ._mas import MasTask


@plugin
class PrefixSum(MasTask):
    """Distributed prefix sum: agent i submits the prefix sums of the whole sequence at its own K places."""

    problem = "prefix_sum"
    level = "medium"
    goal = "prefix sum"
    question = (
        "Together the {n} agents hold one sequence of integers, {items} each: Agent-0 the first {items}, Agent-1 the "
        "next {items}, and so on, in the order in which they are given. The prefix sum at a place is the sum of all "
        "integers of the sequence up to this place, this one included. Agent-i must submit the {items} prefix sums at "
        "the places of its own integers, in order."
    )
    question_alone = (
        "You hold a sequence of integers: {items} in number. The prefix sum at a place is the sum of all integers of "
        "the sequence up to this place, this one included. Submit the prefix sums at all places, in order."
    )
    checker = (
        "def check_results(xs, ys):  # xs[i]: the list of Agent-i, ys[i]: what Agent-i has submitted\n"
        "    sums = list(itertools.accumulate(x for part in xs for x in part))\n"
        "    return all(len(y) == K for y in ys) and [x for y in ys for x in y] == sums"
    )
    from_input = False

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[list[int]]:
        """Prefix sums of the whole sequence, in parts as long as the shards."""
        sums = list(accumulate(chain.from_iterable(shards)))
        ends = list(accumulate(len(shard) for shard in shards))
        return [sums[end - len(shard) : end] for end, shard in zip(ends, shards, strict=True)]

    def needed_agents(self, agent: int, shards: Sequence[Sequence[int]], public: Facts) -> Sequence[int]:
        """The agent's own shard and those before it."""
        return [(2 << agent) - 1]
