"""MAS-Bench's distributed sorting (Section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from harness.api import Facts, plugin

from ._mas import MasTask


@plugin
class Sorting(MasTask):
    """Distributed sorting: agent i submits the i-th slice of K numbers of all numbers in ascending order."""

    problem = "sorting"
    level = "tight"
    goal = "sorting"
    question = (
        "Together the {n} agents hold {n} lists of {items} integers, all of them different. Imagine all the integers "
        "in one list, sorted in ascending order, and cut into {n} pieces of {items}: Agent-i must submit piece i "
        "(Agent-0 the first {items}, the smallest ones, Agent-1 the next {items}, and so on), in ascending order."
    )
    question_alone = (
        "You hold a list of integers, all of them different: {items} in number. Submit all of them in ascending order."
    )
    checker = (
        "def check_results(xs, ys):  # xs[i]: the list of Agent-i, ys[i]: what Agent-i has submitted\n"
        "    everything = sorted(x for part in xs for x in part)\n"
        "    return all(len(y) == K for y in ys) and [x for y in ys for x in y] == everything"
    )

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[list[int]]:
        """The sorted union in slices of K."""
        ordered = sorted(chain.from_iterable(shards))
        k = len(ordered) // len(shards)
        return [ordered[i * k : (i + 1) * k] for i in range(len(shards))]

    def check(self, shards: Sequence[Sequence[int]], answers: Sequence[list[int] | None]) -> bool:
        """CHECK: submissions have the lengths of the lists, and joined they are the sorted union."""
        lists = [answer or [] for answer in answers]
        right_lengths = [len(answer) for answer in lists] == [len(shard) for shard in shards]
        return right_lengths and list(chain(*lists)) == sorted(chain(*shards))
