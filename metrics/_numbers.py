"""Helpers that several metrics use to read an episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.api import UNBOUNDED, Bounds, Completion, Episode, Metric, PluginError, Statistic


def calls(episode: Episode) -> Iterable[Completion]:
    """Every model call of the episode, retries included."""
    return (call for move in episode.moves() for call in move.calls)


def total(numbers: Sequence[float]) -> Statistic:
    """Return the sum of several episodes' numbers. A sum has no standard error."""
    return Statistic(sum(numbers) if numbers else None, None, len(numbers))


@dataclass(kw_only=True)
class EpisodeTotal(Metric):
    """A number of an episode that may also be summed over episodes.

    Attributes:
        over: "episode" averages over episodes, "run" sums them.
    """

    over: Literal["episode", "run"] = "episode"

    def aggregate(self, numbers: Sequence[float]) -> Statistic:
        return total(numbers) if self.over == "run" else super().aggregate(numbers)


@dataclass(kw_only=True)
class NamedNumber(Metric):
    """A number that an episode has under a name; subclasses say what that is the name of."""

    of: str
    optional: bool = False
    bounds: Bounds = UNBOUNDED  # type: ignore[misc]

    def __post_init__(self) -> None:
        self.needs = () if self.optional else (self.of,)
        if not self.bounds[0] < self.bounds[1]:
            raise PluginError(f"no number lies between {self.bounds[0]} and {self.bounds[1]}", at=("bounds",))

    def within(self, number: float | None) -> float | None:
        """The same number. Raises `ValueError` where it lies beyond the bounds."""
        low, high = self.bounds
        if number is not None and not low <= number <= high:
            raise ValueError(
                f"{type(self).__name__.lower()} {self.of!r} is {number}, which is not between {low} and {high}"
            )
        return number


def grade(episode: Episode, name: str) -> float | None:
    """Return the task's grade `name`; None if it has no number. Raises `PluginError` for anything but a number."""
    return _number(episode.grade.get(name), f"the task's grade {name!r}")


def fact(episode: Episode, name: str) -> float | None:
    """Return the protocol's fact `name`; None if it is missing. Raises `PluginError` for anything but a number."""
    return _number(episode.outcome.facts.get(name) if episode.outcome else None, f"the protocol's fact {name!r}")


def fact_of_all(episode: Episode, name: str) -> float | None:
    """Return the protocol's fact `name`, summed over both passes if the protocol played the case twice."""
    last = fact(episode, name)
    first = episode.outcome.facts.get("first") if episode.outcome else None
    before = _number(first["facts"].get(name), f"the protocol's fact {name!r}") if first else 0
    return None if last is None or before is None else last + before


def _number(value: Any, what: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float):
        hint = "A metric can only average numbers."
        if isinstance(value, Mapping):
            hint = "A metric has one number for an episode: let it be one of these, their sum or their mean."
        raise PluginError(f"{what} is {value!r:.80}, not a number", hint=hint)
    return float(value)
