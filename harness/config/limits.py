"""What bounds an episode: what a key of specs gives a condition, and what the core asks while the episode is played.

Limits are part of what a run is. What a run as a whole may spend is a budget (`harness.engines.budget`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from harness.api import Completion, Move, Turn


class TurnQuota(ABC):
    """What one turn may take."""

    @abstractmethod
    def reached(self, calls: Sequence[Completion]) -> str | None:
        """The limit that forbids another call after those of the turn; None if none does.

        Raises `EngineFatalError` if an engine does not report what is limited.
        """


class Meter(ABC):
    """What one episode has taken of its limits; it gets every batch of moves, recorded or new."""

    @abstractmethod
    def allocate(self, turns: Sequence[Turn]) -> Mapping[str, TurnQuota]:
        """Agent → what its turn of a batch may take. The order in which replies arrive must not count."""

    @abstractmethod
    def take(self, moves: Sequence[Move]) -> None:
        """Count a batch's moves. Raises as `TurnQuota.reached`."""


class EpisodeLimits(ABC):
    """What an episode of a condition is allowed. Equal limits are equal objects, with the same hash."""

    @abstractmethod
    def meter(self) -> Meter:
        """A meter for one episode."""

    @abstractmethod
    def within(self, turns: Sequence[Turn], demands: Sequence[int]) -> tuple[list[Turn], int]:
        """The turns that the limits leave where no agent is asked again, and the most calls that they allow.

        `demands`: how many calls each turn takes at most.
        """
