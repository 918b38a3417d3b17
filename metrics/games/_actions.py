"""What metrics of games share: the actions that were played, whose they were, and names that stand for several."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.api import Episode


def actions_of(episode: Episode, group: str | None) -> list[Any]:
    """The readable actions of a group's players, without messages beside them; of all players if it is None."""
    acts = (
        move.action["act"] if isinstance(move.action, dict) and "act" in move.action else move.action
        for move in episode.moves()
        if move.turn == "act" and (group is None or episode.roles.get(move.agent, "default") == group)
    )
    return [action for action in acts if action is not None]


def matches(action: Any, names: Iterable[str]) -> bool:
    """Whether it is one of these actions; a name that ends in * stands for all that begin like it."""
    text = str(action)
    return any(text.startswith(name[:-1]) if name.endswith("*") else text == name for name in names)


def turns_of(episode: Episode) -> dict[str, dict[str, int]]:
    """Agent → `turns` in which it was to act, and how many of them were `substituted`, `illegal` and `failed`.

    A turn is substituted where the player has no action to give to the game, illegal where it replied without a legal
    action, and failed where it did not reply (its request failed, or a limit of the spec allowed none). An environment
    that says itself how many actions were `invalid` knows of more illegal ones than the parser. The agent whose invalid
    action has ended the game has also `forfeited: 1`.
    """
    named = [move for move in episode.moves() if move.turn == "act"]
    counts: dict[str, dict[str, int]] = {}
    for move in named or episode.moves():
        own = counts.setdefault(move.agent, {"turns": 0, "substituted": 0, "illegal": 0, "failed": 0})
        unread, failed = move.error_kind == "parse", move.error_kind not in (None, "parse")
        own["turns"] += 1
        own["substituted"] += unread or failed
        own["illegal"] += unread
        own["failed"] += failed
    invalid = episode.outcome.facts.get("invalid") if episode.outcome else None
    for agent, number in invalid.items() if isinstance(invalid, Mapping) else ():
        if agent in counts and isinstance(number, int):
            own = counts[agent]
            own["illegal"] = min(max(own["illegal"], number - own["failed"]), own["turns"] - own["failed"])
    forfeited = episode.outcome.facts.get("forfeited") if episode.outcome else None
    if isinstance(forfeited, str) and forfeited in counts:
        counts[forfeited]["forfeited"] = 1
    return counts
