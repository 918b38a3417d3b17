"""What can go wrong with a message on its way: channels ask a courier, which `unreliable.py` can replace."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.api import OpenChannel


@dataclass(frozen=True, slots=True)
class Courier:
    """Loses, delays and doubles messages; the default one does nothing of the kind.

    Attributes:
        loss, duplication: probabilities, independent for every message (loss also for every receiver).
        delay: a message comes up to so many rounds later than it should, drawn evenly.
        rng: the only chance there is.
    """

    loss: float = 0.0
    duplication: float = 0.0
    delay: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def lost(self, receivers: Iterable[str]) -> frozenset[str]:
        """Those of the receivers whom a message never reaches."""
        return frozenset(agent for agent in receivers if self.rng.random() < self.loss) if self.loss else frozenset()

    def delays(self) -> list[int]:
        """How much later the message comes, in rounds: once, or twice if it is doubled."""
        times = 2 if self.duplication and self.rng.random() < self.duplication else 1
        return sorted(self.rng.randint(0, self.delay) for _ in range(times)) if self.delay else [0] * times


RELIABLE = Courier()


class CarriedChannel(OpenChannel):
    """An open channel whose messages a courier carries."""

    courier: Courier = RELIABLE
