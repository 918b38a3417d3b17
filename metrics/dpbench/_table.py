"""What the metrics of a table of philosophers read from an episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.api import Episode
from harness.errors import PluginError


def meals(episode: Episode) -> list[int] | None:
    """Every philosopher's meals, in the order of the agents; None for an episode that came to no outcome."""
    eaten = _fact(episode, "eaten")
    if eaten is None:
        return None
    if not isinstance(eaten, Mapping) or not all(isinstance(m, int) for m in eaten.values()):
        raise PluginError(f"the world's fact 'eaten' is {eaten!r:.80}, not the meals of every agent")
    return list(eaten.values())


def end(episode: Episode) -> str | None:
    """How the episode ended: "deadlock", "over" or "limit"."""
    value = _fact(episode, "end")
    return None if value is None else str(value)


def deadlocks(episode: Episode) -> list[int] | None:
    """The timesteps, counted from 1, after which there was a deadlock."""
    steps = _fact(episode, "deadlocks")
    return None if steps is None else list(steps)


def decisions(episode: Episode) -> Iterator[tuple[str, str]]:
    """The message and the action of every reply that had both; each decision once, whatever a timestep is."""
    for move in episode.moves():
        if move.turn == "act" and isinstance(move.action, Mapping):
            message, act = move.action.get("message"), move.action.get("act")
            if message and act:
                yield str(message), str(act)


def _fact(episode: Episode, name: str) -> Any:
    return episode.outcome.facts.get(name) if episode.outcome else None
