"""Chance in expressions: functions that draw from one generator, for where a spec draws something."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from harness.extensions.yaml_tasks.step_limits import Supply, counted, take

from ._guards import UnfitValueError, entries

RANDOM = ("randint", "uniform", "normal", "chance", "choice", "choices", "sample", "shuffle")
"""Their names, which no value may have."""


def random_functions(rng: random.Random) -> dict[str, Callable[..., Any]]:
    """Return the functions by name, drawing from `rng`. Give them to `names` with the values."""

    def randint(steps: Supply, low: int, high: int) -> int:
        """A whole number from low to high, both included, all alike."""
        return rng.randint(low, high)

    def uniform(steps: Supply, low: float, high: float) -> float:
        """A number between low and high, all alike."""
        return rng.uniform(low, high)

    def normal(steps: Supply, mean: float, deviation: float) -> float:
        """A number of the normal distribution."""
        return rng.gauss(mean, deviation)

    def chance(steps: Supply, share: float) -> bool:
        """True with this probability."""
        return rng.random() < share

    def choice(steps: Supply, values: Any) -> Any:
        """One of the entries, each with the same probability."""
        return rng.choice(_listed(steps, values))

    def choices(steps: Supply, values: Any, k: int, weights: Any = None) -> list[Any]:
        """k entries, each drawn from all; `weights=` makes some more likely."""
        take(steps, max(0, k))
        return rng.choices(_listed(steps, values), weights=weights, k=k)

    def sample(steps: Supply, values: Any, k: int) -> list[Any]:
        """k different entries in random order."""
        return rng.sample(_listed(steps, values), k)

    def shuffle(steps: Supply, values: Any) -> list[Any]:
        """The entries in random order."""
        many = _listed(steps, values)
        return rng.sample(many, len(many))

    functions = (randint, uniform, normal, chance, choice, choices, sample, shuffle)
    return {function.__name__: function for function in functions}


def _listed(steps: Supply, values: Any) -> list[Any]:
    many = list(counted(steps, entries(steps, values)))
    if not many:
        raise UnfitValueError("there is nothing to draw from")
    return many
