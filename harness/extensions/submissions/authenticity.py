"""Whether replies are as likely as what a model says: recorded replies against fresh ones to the same prompts.

The statistics of `harness verify --ask` above temperature 0, for `ask_again.py`, which asks.

Each token has a tail: the probability of all tokens that are at most as likely in its place, with a mean of 1/2 or more
whatever the place is. Texts of another origin have tokens far out in it. What the likelihoods do not show of the
sampling (cuts, also those that a server makes unasked; penalties; rounding) is in fresh replies too: how many of their
tokens have a tail so small, beside how many should, is the factor that turns a tail into a probability.

The evidence of a reply is a product over its tokens of κ·F^(κ−1), where F is this probability, divided by the mean that
the likelihoods let one expect. Such a product has a mean of 1 at most for the model's own replies, however long they
are (e-values: Vovk and Wang, *E-values: Calibration, combination and applications*, Annals of Statistics 49, 2021), so
it is rarely large. It is the mean over several κ, since it is not known how surprising other texts are. The evidence of
a run is the likelihood ratio of a mixture, in which a share of the replies is of another origin, the mean over several
shares.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Final, NamedTuple

Rows = Sequence[Sequence[float]]
"""For each token of a reply its log-probability, then those of the likeliest tokens there, falling."""

ENOUGH: Final = 100.0
"""Evidence from which on a run is rejected: at most one honest run in so many."""
LEAST_REPLIES: Final = 20
"""Recorded and fresh replies, of each so many, without which nothing is said."""
SHORT: Final = 8
"""Tokens below which a reply of another origin is seldom found."""
POWERS: Final = (0.3, 0.5, 0.7, 0.85)
"""κ: from a few very surprising tokens to many that are a little so."""
_SHARES: Final = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_VOCABULARY: Final = 200_000
"""Tokens of a vocabulary, about; it matters at temperatures that are not 1."""
_LEAST: Final = 1e-5
"""Probability of all tokens that are not listed, at least: less is within rounding."""
_LOWEST: Final = -100.0
"""Log-probability below which a listed token counts as not listed: servers write -9999 or -inf for 0."""
_COLDEST: Final = 1e-6
"""The least temperature: at less, too, the likeliest token has all the weight."""
_SAME: Final = 1e-6
"""Log-probabilities that differ by less are equal."""


GRID: Final = [10 ** (-j / 8) for j in range(48, -1, -1)]
"""Tails at which fresh replies are counted."""


def step_of(tail: float) -> int:
    """The first of the grid that is not below a tail."""
    return min(bisect_left(GRID, tail * (1 - _SAME)), len(GRID) - 1)


class TokenPlace(NamedTuple):
    """A token in its place.

    Attributes:
        tail: of the token, from 0 to 1; of one that is not listed an estimate.
        jumps: (step of `GRID`, probability of the tokens whose tails end there), rising; the first has what is not
            listed.
        expected: the logarithm of the mean of κ·tail^(κ−1) at most, for each κ.
    """

    tail: float
    jumps: tuple[tuple[int, float], ...]
    expected: tuple[float, ...]


def is_complete(row: Sequence[float]) -> bool:
    """Whether a row has the token's own value, and that of a token that could stand there."""
    return any(value > _LOWEST for value in row[1:]) and not math.isnan(row[0])


def place(row: Sequence[float], temperature: float) -> TokenPlace:
    """Where a token stands among those that the model at this temperature could have given; of a row that
    `is_complete`."""
    own, best = row[0], [min(value, 0.0) for value in row[1:] if value > _LOWEST]
    rest = max(1 - math.fsum(map(math.exp, best)), _LEAST)
    # Of the tokens that are not listed only the sum is known: they lie between all alike and all like the last listed.
    power = 1 / max(temperature, _COLDEST)
    alike, like_last = (1 - power) * math.log(_VOCABULARY) + power * math.log(rest), best[-1] * (power - 1)
    logs = [max(alike, math.log(rest) + like_last), *(value * power for value in reversed(best))]
    top = max(logs)  # weights relative to the largest: none overflows, and they do not all vanish
    weights = [math.exp(one - top) for one in logs]
    total = math.fsum(weights)
    unlisted, *weights = (one / total for one in weights)
    weights, tails = weights[::-1], [*accumulate(weights, initial=unlisted)][:0:-1]
    if own >= best[-1] - _SAME:
        tail = tails[sum(value > own + _SAME for value in best)]
    else:
        # As if probabilities fell as a power of the rank: p ~ rank^-(1 + c) leaves rest = p_last * len(best) / c.
        c = len(best) * math.exp(best[-1]) / rest
        tail = unlisted * math.exp((own - best[-1]) * c / (1 + c))
    expected = tuple(
        math.log(
            math.fsum(one * power * tail ** (power - 1) for one, tail in zip(weights, tails, strict=True) if one)
            + unlisted**power
        )
        for power in POWERS
    )
    rising = tails[::-1]
    jumps: dict[int, float] = {}
    for before, one in zip((0.0, *rising), rising, strict=False):
        jumps[step_of(one)] = jumps.get(step_of(one), 0.0) + one - before
    return TokenPlace(tail, tuple(jumps.items()), expected)


@dataclass(frozen=True)
class ScoredReply:
    """A reply's tokens in their places."""

    places: tuple[TokenPlace, ...]

    @classmethod
    def of(cls, rows: Rows, temperature: float) -> ScoredReply:
        """The reply of which an engine gives these rows; without places of which a row says nothing."""
        return cls(tuple(place(row, temperature) for row in rows if is_complete(row)))


class Fresh:
    """How far out in their tails the tokens of fresh replies are, beside what the model's likelihoods have.

    Attributes:
        sums: for each tail of `GRID` how many tokens have one that is not larger, and how many should.
        ratios: the factor for each of them.
    """

    def __init__(self, replies: Iterable[ScoredReply]) -> None:
        found, jumps, below = [0.0] * len(GRID), [0.0] * len(GRID), [0] * len(GRID)
        for one in chain.from_iterable(reply.places for reply in replies):
            found[step_of(one.tail)] += 1
            below[one.jumps[0][0]] += 1
            for step, jump in one.jumps:
                jumps[step] += jump
        found, expected = list(accumulate(found)), list(accumulate(jumps))
        smaller = sum(below)
        for j, bound in enumerate(GRID):
            smaller -= below[j]
            expected[j] += smaller * bound  # places whose unlisted tokens have more than this: as if at any tail
        self.sums = found, expected
        self.ratios = [(1 + a) / (1 + b) for a, b in zip(found, expected, strict=True)]

    def share(self, tail: float) -> float:
        """The probability of so small a tail, above 0."""
        return min(max(tail, GRID[0]) * self.ratios[step_of(tail)], 1.0)

    def evidence(self, reply: ScoredReply) -> float:
        """The logarithm of a reply's evidence."""
        sums = [0.0] * len(POWERS)
        for one in reply.places:
            share = math.log(self.share(one.tail))
            for i, power in enumerate(POWERS):
                sums[i] += math.log(power) + (power - 1) * share - one.expected[i]
        return _log_mean(sums)


@dataclass(frozen=True)
class Result:
    """What a test has found.

    Attributes:
        evidence: logarithm of that against the recorded replies.
        control: the same of fresh replies, each half tested against the other: small unless the test does not fit.
        replies: the logarithm of the evidence of each recorded reply, in order.
    """

    evidence: float
    control: float
    replies: list[float]

    @property
    def fits(self) -> bool:
        """Whether the model's own fresh replies pass the test."""
        return self.control < math.log(ENOUGH)

    @property
    def rejects(self) -> bool:
        """Whether the recorded replies are not the model's."""
        return self.fits and self.evidence - max(self.control, 0.0) >= math.log(ENOUGH)


def compare(recorded: Sequence[ScoredReply], fresh: Sequence[ScoredReply]) -> Result:
    """Test recorded replies against fresh ones to the same prompts."""
    halves = fresh[::2], fresh[1::2]
    control = [Fresh(halves[1 - i]).evidence(reply) for i in (0, 1) for reply in halves[i]]
    # Where the model's own replies have more evidence against them than theory has it, all have as much less.
    excess = max(_log_mean(control), 0.0)
    null = Fresh(fresh)
    found = [null.evidence(reply) - excess for reply in recorded]
    return Result(of_run(found), of_run([one - excess for one in control]), found)


def of_run(replies: Sequence[float]) -> float:
    """The logarithm of the evidence of all replies together."""
    return _log_mean([math.fsum(_mixed(share, one) for one in replies) for share in _SHARES])


def _mixed(share: float, evidence: float) -> float:
    """log(1 − share + share·exp(evidence))"""
    if evidence > 0:
        return evidence + math.log(share + (1 - share) * math.exp(-evidence))
    return math.log1p(share * math.expm1(evidence)) if share < 1 else evidence


def _log_mean(logarithms: Sequence[float]) -> float:
    """The logarithm of the mean of numbers whose logarithms these are; of none 0."""
    if not logarithms:
        return 0.0
    top = max(logarithms)
    return top + math.log(math.fsum(math.exp(one - top) for one in logarithms) / len(logarithms))
