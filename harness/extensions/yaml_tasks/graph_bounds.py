"""How large a network a spec may ask for, and how long drawing it may take."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any, Final

MAX_AGENTS: Final = 100_000
MAX_EDGES: Final = 1_000_000
SECONDS: Final = 5.0
"""Of CPU time, for all draws of one network until it is connected."""
_CLOCK_DRAWS = 1024


class TooMuchError(Exception):
    """A network would be too large, or take too long to draw."""


class Draws(random.Random):
    """The numbers of `random.Random(seed)` until a time is over: generators of graphs may draw without end.

    Args:
        seed: the seed.
        deadline: the CPU time of the thread after which drawing raises `TooMuchError`.
    """

    def __init__(self, seed: int, deadline: float) -> None:
        self._deadline, self._count = deadline, 0
        super().__init__(seed)

    def random(self) -> float:
        self._tick()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        self._tick()
        return super().getrandbits(k)

    def _tick(self) -> None:
        self._count += 1
        if self._count % _CLOCK_DRAWS == 0 and time.thread_time() > self._deadline:
            raise TooMuchError(f"it takes more than {SECONDS:g} s")


def deadline() -> float:
    """The CPU time of this thread by which a drawing that starts now must end."""
    return time.thread_time() + SECONDS


def check(family: str, arguments: Mapping[str, Any]) -> None:
    """Raise `TooMuchError` for too many agents, or too many edges that are there before the first draw.

    Arguments of other kinds than numbers are left to the generator, which refuses them.
    """
    try:
        agents, edges = _size(family, arguments)
    except (KeyError, TypeError):
        return
    if agents > MAX_AGENTS:
        raise TooMuchError(f"a network of more than {MAX_AGENTS:,} agents")
    if edges > MAX_EDGES:
        raise TooMuchError(f"a network of more than {MAX_EDGES:,} edges")


def _size(family: str, arguments: Mapping[str, Any]) -> tuple[float, float]:
    """The agents, and the edges that do not wait for a draw each."""
    if "sizes" in arguments:
        return sum(arguments["sizes"]), 0
    if "l" in arguments:
        agents = arguments["l"] * arguments["k"]
        return agents, agents * arguments["k"] / 2 if family == "relaxed_caveman_graph" else 0
    n = arguments["n"]
    pairs = n * (n - 1) / 2
    if family == "complete" or "geometric" in family:
        return n, pairs
    if "watts_strogatz" in family:
        return n, min(n * arguments["k"] / 2, pairs)
    if family == "gnm_random_graph":
        return n, min(arguments["m"], pairs)
    return n, 0
