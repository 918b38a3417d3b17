"""SILO-Bench II-13 (Table 9)."""

from __future__ import annotations

import random
from collections.abc import Sequence

from harness.api import Facts, plugin
from harness.extensions.networks.answers import INTEGER
from harness.extensions.networks.sharded import Items, ShardedTask

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@plugin
class LongestPalindrome(ShardedTask):
    """II-13 Longest Palindrome: the length of the longest palindrome in the whole text.

    A palindrome of 7 letters is somewhere in random text, and nearly always the longest. Hardened: it has 5 to 15
    letters, and in every second instance on average it crosses a boundary between agents.
    """

    items: Items = 15

    problem = "II-13"
    level = "II"
    question = (
        "Find the length of the longest palindromic substring of a text distributed across agents. Agent 0 holds "
        "characters [0, k), Agent 1 holds characters [k, 2k), and so on, with k = {items}. A palindrome reads the "
        "same forwards and backwards; it consists of consecutive characters of the whole text and may cross the "
        "boundaries between agents. The correct answer is the number of characters of the longest one. You must "
        "coordinate with other agents to determine this global length."
    )
    form = INTEGER

    def draw_input(self, rng: random.Random, n: int) -> tuple[list[str], Facts]:
        """Lower-case letters with one planted palindrome, cut to the length of the text."""
        k, hardened = self.items, self.domain == "hardened"
        size = min(rng.randint(5, 15) if hardened else 7, n * k)
        starts = range(n * k - size + 1)
        if hardened and n > 1 and size > 1 and (size > k or rng.random() < 0.5):
            cut = k * rng.randrange(1, n)
            starts = range(max(0, cut - size + 1), min(cut, len(starts)))
        elif hardened:
            first = k * rng.randrange(n)
            starts = range(first, first + k - size + 1)
        half = rng.choices(LETTERS, k=(size + 1) // 2)
        text, start = rng.choices(LETTERS, k=n * k), rng.choice(starts)
        text[start : start + size] = half + half[::-1][size % 2 :]
        return ["".join(text[i * k : (i + 1) * k]) for i in range(n)], {}

    def solve(self, shards: Sequence[str], public: Facts) -> int:
        """The longest expansion around any of the 2L − 1 centers."""
        text, longest = "".join(shards), 0
        for center in range(2 * len(text) - 1):
            left, right = center // 2, (center + 1) // 2
            while left >= 0 and right < len(text) and text[left] == text[right]:
                left, right = left - 1, right + 1
            longest = max(longest, right - left - 1)
        return longest
