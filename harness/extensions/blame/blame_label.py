"""An opinion on who made an episode fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlameLabel:
    """Whom a rater blames for an episode: an agent, and the number of a turn, or None where it names no turn."""

    rater: str
    episode: str
    agent: str
    turn: int | None
