"""Faults of message delivery. Every channel asks a courier, which `unreliable.py` can replace."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.api import OpenChannel


@dataclass(frozen=True, slots=True)
class Courier:
    """Loses, delays and duplicates messages. The default courier does none of this.

    Attributes:
        loss, duplication: probabilities, independent for every message (loss also for every receiver).
        delay: a message arrives up to this many rounds late, drawn uniformly.
        rng: the only source of randomness.
    """

    loss: float = 0.0
    duplication: float = 0.0
    delay: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def lost(self, receivers: Iterable[str]) -> frozenset[str]:
        """Return the receivers that a message never reaches."""
        return frozenset(agent for agent in receivers if self.rng.random() < self.loss) if self.loss else frozenset()

    def delays(self) -> list[int]:
        """Return the message's delays in rounds: one, or two if it is duplicated."""
        times = 2 if self.duplication and self.rng.random() < self.duplication else 1
        return sorted(self.rng.randint(0, self.delay) for _ in range(times)) if self.delay else [0] * times


RELIABLE = Courier()


class CarriedChannel(OpenChannel):
    """An open channel whose messages a courier delivers."""

    courier: Courier = RELIABLE
