"""What metrics of games share: the actions that were played, and names that stand for several."""

from __future__ import annotations

from collections.abc import Iterable
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
