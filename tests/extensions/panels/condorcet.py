"""What panels of declared skill must come to: closed forms, and the brute force that they are checked against.

Members give the right answer or one of `wrong` others, all equally likely. A copying member repeats another's answer
with a probability that makes the correlation of their being right as declared (`registry/policies/_skill.py`).
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import sqrt


def three_equals(p: float, wrong: int) -> float:
    """P(a vote of three independent members with accuracy p is right), ties going to the first member.

    Two or three right answers win (Condorcet); one wins if it is the first member's and the two wrong ones differ.
    """
    return p**3 + 3 * p**2 * (1 - p) + p * (1 - p) ** 2 * (1 - 1 / wrong)


def expert_and_pair(expert: float, p: float, correlation: float, wrong: int) -> float:
    """P(a vote is right) of an expert in the first agent and two members with accuracy p, correlated in being right.

    With equal accuracies the copying probability is the correlation. Whenever exactly one of the pair is right, or both
    are wrong and differ, the expert decides: by a second vote, or as the first of a tie.
    """
    both = p**2 + correlation * p * (1 - p)
    one = 2 * p * (1 - p) * (1 - correlation)
    differ = (1 - correlation) * (1 - p) ** 2 * (1 - 1 / wrong)
    return both + (one + differ) * expert


def outcomes(
    accuracy: Sequence[float], wrong: int, copies: Mapping[int, tuple[int, float]] | None = None
) -> dict[tuple[int, ...], float]:
    """Every tuple of answers (0 right, 1 … `wrong`) with its probability. `copies`: member → (an earlier one, ρ)."""
    mapping: dict[tuple[int, ...], float] = {(): 1.0}
    for i, b in enumerate(accuracy):
        source, share, alone = None, 0.0, b
        if copies and i in copies:
            source, correlation = copies[i]
            a = accuracy[source]
            share = correlation * sqrt(b * (1 - b) / (a * (1 - a)))
            alone = (b - share * a) / (1 - share) if share < 1 else b
        grown: dict[tuple[int, ...], float] = {}
        for answers, probability in mapping.items():
            for answer in range(wrong + 1):
                chance = (1 - share) * (alone if answer == 0 else (1 - alone) / wrong)
                chance += share if source is not None and answers[source] == answer else 0.0
                grown[(*answers, answer)] = probability * chance
        mapping = grown
    return mapping


def plurality(given: Mapping[tuple[int, ...], float], weights: Sequence[float] | None = None) -> float:
    """P(the answer with most weight behind it is right), ties going to the first member of those who lead."""
    right = 0.0
    for answers, probability in given.items():
        behind: dict[int, float] = {}
        for answer, weight in zip(answers, weights or [1.0] * len(answers), strict=True):
            behind[answer] = behind.get(answer, 0.0) + weight
        right += probability * (max(behind, key=lambda answer: behind[answer]) == 0)
    return right


def correlation(given: Mapping[tuple[int, ...], float], one: int, two: int) -> float:
    """Pearson's correlation of two members' being right."""
    a, b, both = (
        sum(p for answers, p in given.items() if all(answers[i] == 0 for i in members))
        for members in ((one,), (two,), (one, two))
    )
    return (both - a * b) / sqrt(a * (1 - a) * b * (1 - b))


def grid(*axes: Sequence[float]) -> list[tuple[float, ...]]:
    """All combinations."""
    return list(product(*axes))
