"""What random play and a strong player get against random players: the scale of the grade `skill`."""

from __future__ import annotations

import functools
import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("skill.json")
_ERRORS = 2.0
"""Standard errors by which a ceiling lies above a floor, or there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a game's scale, each of every seat, in the game's own unit, against random players.

    Attributes:
        floor: the mean return of random play.
        ceiling: the mean return of a strong player.
        floor_error, ceiling_error: their standard errors; 0 where they were computed.
        how: "exact", "search", "beliefs" or "rollouts": `results/skill.py`, which writes the file.
    """

    floor: tuple[float, ...]
    ceiling: tuple[float, ...]
    floor_error: tuple[float, ...]
    ceiling_error: tuple[float, ...]
    how: str

    def skill(self, returns: Mapping[int, float]) -> float | None:
        """The mean skill of some seats, from their returns: 0 as random play, 1 as the strong player.

        It is below 0 for play that is worse than random, and above 1 for play that is better than the strong player.
        None without seats, and where the strong player does not get more than random play does.
        """
        if not returns or any(seat >= len(self.floor) or not self._apart(seat) for seat in returns):
            return None
        return statistics.fmean(
            (value - self.floor[seat]) / (self.ceiling[seat] - self.floor[seat]) for seat, value in returns.items()
        )

    def _apart(self, seat: int) -> bool:
        error = math.hypot(self.floor_error[seat], self.ceiling_error[seat])
        return self.ceiling[seat] - self.floor[seat] > max(1e-6, _ERRORS * error)

    @property
    def measures(self) -> bool:
        """Whether every seat can do better than random play."""
        return all(self._apart(seat) for seat in range(len(self.floor)))


@functools.lru_cache(maxsize=1)
def scales() -> dict[str, Scale]:
    """Game, as specs write it → its scale."""
    found = json.loads(_FILE.read_text("utf-8"))
    return {
        game: Scale(
            floor=tuple(entry["floor"]),
            ceiling=tuple(entry["ceiling"]),
            floor_error=tuple(entry["floor_error"]),
            ceiling_error=tuple(entry["ceiling_error"]),
            how=entry["how"],
        )
        for game, entry in found.items()
    }
