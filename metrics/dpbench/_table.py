"""Helpers that DPBench's metrics use to read an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.api import Episode, PluginError


def meals(episode: Episode) -> list[int] | None:
    """Return each philosopher's number of meals, in the order of the agents; None for an episode without an outcome."""
    eaten = _fact(episode, "eaten")
    if eaten is None:
        return None
    if not isinstance(eaten, Mapping) or not all(isinstance(m, int) for m in eaten.values()):
        raise PluginError(f"the world's fact 'eaten' is {eaten!r:.80}, not the meals of every agent")
    return list(eaten.values())


def end(episode: Episode) -> str | None:
    """Return how the episode ended: "deadlock", "over" or "limit"."""
    value = _fact(episode, "end")
    return None if value is None else str(value)


def deadlocks(episode: Episode) -> list[int] | None:
    """Return the timesteps, counted from 1, after which there was a deadlock."""
    steps = _fact(episode, "deadlocks")
    return None if steps is None else list(steps)


def decisions(episode: Episode) -> Iterator[tuple[str, str]]:
    """Yield (message, action) of every reply that has both."""
    for move in episode.moves():
        if move.turn == "act" and isinstance(move.action, Mapping):
            message, act = move.action.get("message"), move.action.get("act")
            if message and act:
                yield str(message), str(act)


def _fact(episode: Episode, name: str) -> Any:
    return episode.outcome.facts.get(name) if episode.outcome else None
