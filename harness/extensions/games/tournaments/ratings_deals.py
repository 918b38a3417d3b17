"""Luck of the deal: what a hand of cards is worth to each seat, as a normal effect that is integrated out.

Games of one deal share its effect. Without it a strength is that in the mean over deals: the more luck, the smaller all
differences (Zeger, Liang and Albert, 1988, "Models for longitudinal data: a generalized estimating equation approach").
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from .ratings_choices import Choices, shares_of

MIN_DEALS: Final = 5
"""Of fewer deals no spread is estimated."""
_LEAST, _MOST = 0.05, 8.0
"""A standard deviation of the least counts as none; of more than the most the likelihood knows nothing."""
_WIDE: Final = 3.0
"""Of the half-normal prior of the standard deviation."""
_NODES: Final = {1: 11, 2: 5, 3: 4}
"""Dimensions of a deal's effect → nodes of Gauss and Hermite in each of them."""
_ROUNDS: Final = 3
"""How often nodes are laid around the mode of each deal again."""


@dataclass(frozen=True, slots=True)
class Luck:
    """Estimates with a term for deals.

    Attributes:
        estimates: of the parameters of `Choices`.
        luck: the standard deviation of the difference between two seats.
        covariance: of these parameters; None with no more clusters than contestants.
    """

    estimates: Any
    luck: float
    covariance: Any


def with_deals(choices: Choices, start: Any) -> Luck | None:
    """Maximize the likelihood in which every deal has an effect, by adaptive quadrature of Gauss and Hermite (Pinheiro
    and Bates, 1995, "Approximations to the log-likelihood function in the nonlinear mixed-effects model").

    The covariance is the inverse of the observed information, enlarged by the design effect of clusters of games, if
    that is more than 1.

    Returns:
        None where deals do not repeat, are too few, or have no effect, and for games of more seats than `_NODES` has.
    """
    import numpy
    from scipy.optimize import minimize

    settings = choices.settings or ()
    numbers: dict[Hashable, int] = {}
    deals = numpy.array([numbers.setdefault((one.game, one.deal), len(numbers)) for one in settings])
    seats = max(one.count for one in settings)
    if len(numbers) < MIN_DEALS or len(deals) < 1.5 * len(numbers) or seats - 1 not in _NODES:
        return None
    likelihood = _Likelihood(choices, deals, seats)
    here = numpy.append(start, math.log(1.0))
    least = math.log(_LEAST)
    bounds = [*[(None, None)] * choices.size, (least, math.log(_MOST))]
    for _ in range(_ROUNDS):
        likelihood.lay(here)
        found = minimize(likelihood.negative, here, jac=True, method="L-BFGS-B", bounds=bounds)
        moved = float(abs(found.x - here).max())
        here = found.x
        if here[-1] <= least + 1e-6:
            return None
        if moved < 1e-3:
            break
    likelihood.lay(here)
    return Luck(here[:-1], math.exp(here[-1]), likelihood.covariance(here))


@dataclass(slots=True)
class _Part:
    """A block of choices: per choice its deal, and per possible choice the effect's weights in its log-probability."""

    block: Any
    deals: Any
    loadings: Any
    weights: Any


class _Likelihood:
    """The marginal likelihood of the parameters of `Choices` and of the logarithm of the deals' spread.

    A deal that the same contestants play again in the same seats weighs as one game: that they do the same again is no
    luck of the deal.

    Attributes:
        worth: how much each deal counts, of games that weigh as much as others.
    """

    def __init__(self, choices: Choices, deals: Any, seats: int) -> None:
        import numpy

        self.choices, self.count = choices, int(deals.max()) + 1
        self.width = seats - 1
        self._parts = []
        settings = choices.settings or ()
        same = [
            (deal, *sorted(zip(one.seats, map(itemgetter(0), game), strict=True)))
            for deal, one, game in zip(map(int, deals), settings, choices.games, strict=True)
        ]
        counts = Counter(same)
        repeats = numpy.array([counts[one] for one in same])
        self.worth = numpy.ones(self.count)
        self.worth[deals] = [one.weight for one in settings]
        contrasts = {count: _contrast(count, self.width) for count in {one.count for one in settings}}
        for block in choices.blocks:
            effects = numpy.zeros((len(block.games), block.size, self.width))
            rows: dict[tuple[int, ...], list[int]] = {}
            players = block.columns[block.sets, : block.size]
            for row, game in enumerate(block.games):
                where = choices.sitting(int(game), map(int, players[row]))
                rows.setdefault((settings[game].count, *where), []).append(row)
            for (count, *where), own in rows.items():
                effects[own] = contrasts[count][where]
            members = block.features[:, : block.size]
            loadings = numpy.einsum("ap,rpd->rad", members, effects)
            self._parts.append(_Part(block, deals[block.games], loadings, 1 / repeats[block.games]))
        nodes, weights = numpy.polynomial.hermite.hermgauss(_NODES[self.width])
        self._nodes = numpy.array([*itertools.product(nodes, repeat=self.width)])
        self._log_weights = numpy.array(
            [sum(one) for one in itertools.product(numpy.log(weights) + nodes**2, repeat=self.width)]
        )

    def lay(self, here: Any) -> None:
        """Lay the nodes of each deal around the mode of its effect, at these parameters."""
        import numpy

        spread = math.exp(here[-1])
        modes = numpy.zeros((self.count, self.width))
        for _ in range(12):
            slope, curvature = -modes, numpy.tile(numpy.eye(self.width), (self.count, 1, 1))
            for part in self._parts:
                block = part.block
                plain = (here[:-1][block.columns] @ block.features.T)[block.sets]
                shares, _ = shares_of(plain + spread * (part.loadings @ modes[part.deals][:, :, None])[:, :, 0])
                means = (shares[:, None, :] @ part.loadings)[:, 0]
                chosen = part.loadings[numpy.arange(len(block.chosen)), block.chosen]
                numpy.add.at(slope, part.deals, spread * part.weights[:, None] * (chosen - means))
                squares = numpy.einsum("ra,rad,rae->rde", shares, part.loadings, part.loadings)
                squares -= means[:, :, None] * means[:, None, :]
                numpy.add.at(curvature, part.deals, spread**2 * part.weights[:, None, None] * squares)
            step = numpy.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
            modes = modes + numpy.clip(step, -1, 1)
            if float(abs(step).max()) < 1e-6:
                break
        roots = numpy.linalg.cholesky(numpy.linalg.inv(curvature))
        self._at = modes[:, None, :] + math.sqrt(2) * numpy.einsum("dij,kj->dki", roots, self._nodes)
        self._masses = self._log_weights + numpy.log(numpy.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)[:, None]
        self._masses = self._masses - 0.5 * (self._at**2).sum(axis=2)

    def negative(self, here: Any) -> tuple[float, Any]:
        """The negative log-likelihood, up to a constant, with its gradient."""
        value, slope, _ = self._looked(here)
        return -value, -slope

    def _looked(self, here: Any, each: bool = False) -> tuple[float, Any, Any]:
        """The log-likelihood with its gradient and, for `each`, the gradient of each choice."""
        import numpy

        parameters, spread = here[:-1], math.exp(here[-1])
        logs = self._masses.copy()
        seen = []
        for part in self._parts:
            block = part.block
            plain = (parameters[block.columns] @ block.features.T)[block.sets]
            effects = spread * numpy.einsum("rad,rkd->rka", part.loadings, self._at[part.deals])
            utilities = plain[:, None, :] + effects
            top = utilities.max(axis=2, keepdims=True)
            powers = numpy.exp(utilities - top)
            totals = powers.sum(axis=2, keepdims=True)
            row = numpy.arange(len(block.chosen))
            own = utilities[row, :, block.chosen] - (numpy.log(totals) + top)[:, :, 0]
            numpy.add.at(logs, part.deals, part.weights[:, None] * own)
            seen.append((powers / totals, effects))
        top = logs.max(axis=1, keepdims=True)
        posterior = numpy.exp(logs - top)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        value = float(self.worth @ (numpy.log(total) + top)[:, 0]) - 0.5 * (spread / _WIDE) ** 2
        slope = numpy.zeros(len(here))
        slope[-1] = -((spread / _WIDE) ** 2)
        parts = []
        for part, (shares, effects) in zip(self._parts, seen, strict=True):
            block, weights, own = part.block, posterior[part.deals], part.weights * self.worth[part.deals]
            row = numpy.arange(len(block.chosen))
            mean = numpy.einsum("rk,rka->ra", weights, shares)
            surprise = (block.features[block.chosen] - mean @ block.features) * own[:, None]
            numpy.add.at(slope, block.columns[block.sets], surprise)
            off = effects[row, :, block.chosen] - (shares * effects).sum(axis=2)
            slope[-1] += float((own * (weights * off).sum(axis=1)).sum())
            parts.append(surprise if each else None)
        level = self.choices.level @ parameters  # neither the mean of strengths nor that of seats is known
        value -= 0.5 * float(parameters @ level)
        slope[:-1] -= level
        return value, slope, parts

    def covariance(self, here: Any) -> Any | None:
        """Of the parameters of `Choices`; None with no more clusters than contestants."""
        import numpy

        choices = self.choices
        if choices.clusters <= choices.count:
            return None
        inverse = numpy.linalg.inv(self._information(here))
        if (self.worth != self.worth[0]).any():
            worth, self.worth = self.worth, self.worth**2
            inverse = inverse @ self._information(here) @ inverse
            self.worth = worth
        inverse = inverse[: choices.size, : choices.size]
        _, _, surprises = self._looked(here, each=True)
        together, apart = numpy.zeros((choices.clusters, choices.size)), numpy.zeros((len(choices.games), choices.size))
        for part, surprise in zip(self._parts, surprises, strict=True):
            columns = part.block.columns[part.block.sets]
            numpy.add.at(together, (part.block.clusters[:, None], columns), surprise)
            numpy.add.at(apart, (part.block.games[:, None], columns), surprise)
        grown, plain = (float(numpy.trace(inverse @ one.T @ one @ inverse)) for one in (together, apart))
        return inverse * max(1.0, grown / max(plain, 1e-12))

    def _information(self, here: Any) -> Any:
        """The negative of the second derivatives, by differences of the gradient."""
        import numpy

        information = numpy.zeros((len(here),) * 2)
        for i in range(len(here)):
            step = numpy.zeros(len(here))
            step[i] = 1e-4
            information[i] = (self.negative(here + step)[1] - self.negative(here - step)[1]) / 2e-4
        return (information + information.T) / 2


def _contrast(count: int, width: int) -> Any:
    """Per seat, its weights of independent normal effects. They add up to 0; the difference of two has variance 1."""
    import numpy

    rows = numpy.zeros((count, width))
    for j in range(1, count):
        rows[:j, j - 1], rows[j, j - 1] = 1.0, -j
        rows[:, j - 1] /= math.sqrt(2 * j * (j + 1))
    return rows
