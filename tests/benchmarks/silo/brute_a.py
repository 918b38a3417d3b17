"""Independent solutions of SILO-Bench's I-02 to I-10 and II-12 to II-16: definitions, without a thought for speed."""

import re
import statistics
from fractions import Fraction
from typing import Any

from tests.benchmarks.silo.brute_base import Brute, flat


def vote(shards: list[list[str]], known: dict[str, Any]) -> Any:
    votes = flat(shards)
    return next(name for name in votes if 2 * votes.count(name) > len(votes))


def xor(shards: list[list[int]], known: dict[str, Any]) -> int:
    bits = [f"{byte:08b}" for byte in flat(shards)]
    return sum((sum(int(row[i]) for row in bits) % 2) << (7 - i) for i in range(8))


def mean(shards: list[list[float]], known: dict[str, Any]) -> float:
    return float(sum((Fraction(str(x)) for x in flat(shards)), Fraction(0)) / len(flat(shards)))


def largest(shards: list[list[int]], known: dict[str, Any]) -> list[int]:
    left, count = flat(shards), list[int]()
    while left and len(count) < 10:
        count.append(left.pop(left.index(max(left))))
    return count


def windows(shards: list[list[int]], known: dict[str, Any]) -> list[float]:
    numbers = flat(shards)
    return [float(Fraction(sum(numbers[j - 1 : j + 2]), 3)) for j in range(1, len(numbers) - 1)]


def palindrome(shards: list[str], known: dict[str, Any]) -> int:
    """Every length in turn: a palindrome holds another that is two letters shorter, so two misses are the end."""
    text, longest, length = "".join(shards), 0, 1
    while length <= longest + 2:
        pieces = (text[i : i + length] for i in range(len(text) - length + 1))
        longest = length if any(piece == piece[::-1] for piece in pieces) else longest
        length += 1
    return longest


def life(shards: list[list[int]], known: dict[str, Any]) -> list[list[int]]:
    """By the set of living cells."""
    size, alive = len(flat(shards)), {i for i, cell in enumerate(flat(shards)) if cell}
    for _ in range(5):
        alive = {i for i in range(size) if len(alive & {i - 1, i, i + 1}) == 1}
    starts = [sum(map(len, shards[:i])) for i in range(len(shards))]
    return [[int(a + j in alive) for j in range(len(s))] for a, s in zip(starts, shards, strict=True)]


def rain(shards: list[list[int]], known: dict[str, Any]) -> int:
    """Layer by layer: water is what lies lower between the first and the last column of a height."""
    heights, water = flat(shards), 0
    for level in range(1, max(heights) + 1):
        walls = [i for i, height in enumerate(heights) if height >= level]
        water += walls[-1] - walls[0] + 1 - len(walls)
    return water


SOLUTIONS: dict[str, Brute] = {
    "word_frequency": lambda shards, known: len([w for w in flat(shards) if w == known["word"]]),
    "distributed_vote": vote,
    "any_match": lambda shards, known: "ERROR" in "\n".join(flat(shards)),
    "range_count": lambda shards, known: len([x for x in flat(shards) if x in range(100, 501)]),
    "checksum_xor": xor,
    "average_value": mean,
    "set_union_size": lambda shards, known: len(dict.fromkeys(flat(shards))),
    "top_k_selection": largest,
    "standard_deviation": lambda shards, known: statistics.pstdev(flat(shards)),
    "moving_average": windows,
    "longest_palindrome": palindrome,
    "life_game_1d": life,
    "pattern_search": lambda shards, known: len(re.findall("A.*?B.*?C", "".join(shards))),
    "trapping_rain": rain,
}
