"""MAS-Bench's distributed maximum (Appendix G.3)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.api import Facts, plugin

from ._mas import MasTask


@plugin
class Maximum(MasTask):
    """Distributed maximum: every agent submits the largest of all numbers."""

    problem = "maximum"
    level = "loose"
    goal = "maximum"
    question = (
        "Together the {n} agents hold {n} lists of {items} integers, all of them different. Every agent must submit "
        "the largest of all the integers, as a list with this one number."
    )
    question_alone = (
        "You hold a list of integers, all of them different: {items} in number. Submit the largest of them, as a list "
        "with this one number."
    )
    checker = (
        "def check_results(xs, ys):  # xs[i]: the list of Agent-i, ys[i]: what Agent-i has submitted\n"
        "    largest = max(x for part in xs for x in part)\n"
        "    return all(y == [largest] for y in ys)"
    )
    sliced = False

    def solve(self, shards: Sequence[Sequence[int]], public: Facts) -> list[list[int]]:
        """The maximum, for every agent."""
        return [[max(map(max, shards))]] * len(shards)
