"""Social choice: from ballots to scores. Exact arithmetic; no rule breaks a tie.

A ballot names candidates by their places, from 0 to `count` - 1. Every function takes any number of ballots, none
included, and returns a score for each candidate: the more the better. Names and definitions as in Brandt, Conitzer,
Endriss, Lang and Procaccia (eds.), Handbook of Computational Social Choice, 2016, chapters 2 and 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

Scores = list[Fraction]


def plurality(ballots: Sequence[int], count: int) -> Scores:
    """One vote each: how many voters chose a candidate."""
    return approval([[ballot] for ballot in ballots], count)


def approval(ballots: Sequence[Collection[int]], count: int) -> Scores:
    """How many voters approve of a candidate; each approves of as many as it likes."""
    scores = [Fraction(0)] * count
    for ballot in ballots:
        for candidate in set(ballot):
            scores[candidate] += 1
    return scores


def borda(rankings: Sequence[Sequence[int]], count: int) -> Scores:
    """The Borda count: `count` - 1 points for the first place, one less for each place below.

    The candidates that a ranking leaves out share the points that it leaves, in equal parts.

    >>> [float(score) for score in borda([[2]], 3)]
    [0.5, 0.5, 2.0]
    """
    scores = [Fraction(0)] * count
    for ranking in rankings:
        missing = count - len(ranking)
        for place, candidate in enumerate(ranking):
            scores[candidate] += count - 1 - place
        for candidate in set(range(count)).difference(ranking):
            scores[candidate] += Fraction(missing - 1, 2)
    return scores


def instant_runoff(rankings: Sequence[Sequence[int]], count: int) -> Scores:
    """The round in which a candidate is eliminated; the winner, or all that are tied at the end, have the last one.

    Each ballot counts for the first of its candidates that is still there; one whose candidates are all gone counts
    for none. In a round the candidates with the fewest ballots are eliminated, all of them if several have as few,
    until the remaining ones have equally many. So no order of candidates decides anything.
    """
    alive, scores = set(range(count)), [Fraction(0)] * count
    for number in range(count):
        tally = dict.fromkeys(alive, 0)
        for ranking in rankings:
            first = next((candidate for candidate in ranking if candidate in alive), None)
            if first is not None:
                tally[first] += 1
        for candidate in alive:
            scores[candidate] = Fraction(number)
        fewest = min(tally.values(), default=0)
        left = {candidate for candidate in alive if tally[candidate] > fewest}
        if not left:
            break
        alive = left
    return scores


def cumulative(ballots: Sequence[Mapping[int, int]], count: int) -> Scores:
    """The points that voters give to a candidate, in all."""
    scores = [Fraction(0)] * count
    for ballot in ballots:
        for candidate, points in ballot.items():
            scores[candidate] += points
    return scores


def winners(scores: Sequence[Fraction]) -> list[int]:
    """The candidates with the highest score, in order; all if nobody voted."""
    highest = max(scores, default=Fraction(0))
    return [candidate for candidate, score in enumerate(scores) if score == highest]
