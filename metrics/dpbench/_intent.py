"""Finds the action that a message announces, by keywords (DPBench, Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from harness.api import PluginError, near

Keywords = Mapping[str, Sequence[str]]
ListName = Literal["kw-0.1", "kw-0.2"]

ORDER: Final = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
"""Actions are tried in this order. The first one with a phrase in the message is the intent."""

LISTS: Final[Mapping[str, Keywords]] = {
    "kw-0.1": {  # DPBench 0.1.0, which made the paper's figures
        "GRAB_LEFT": ("grab left", "take left", "pick left", "left fork"),
        "GRAB_RIGHT": ("grab right", "take right", "pick right", "right fork"),
        "RELEASE": ("release", "put down", "drop", "let go"),
        "WAIT": ("wait", "pause", "hold"),
    },
    "kw-0.2": {  # DPBench 0.2.1
        "GRAB_LEFT": ("grab left", "take left", "pick up left", "grab my left"),
        "GRAB_RIGHT": ("grab right", "take right", "pick up right", "grab my right"),
        "RELEASE": ("release", "put down", "drop", "let go"),
        "WAIT": ("wait",),
    },
}


def phrases(keywords: ListName | Keywords) -> dict[str, tuple[str, ...]]:
    """Return action → case-folded phrases, in the order in which actions are tried.

    Raises:
        PluginError: for an unknown action, and for an empty phrase.
    """
    lists = LISTS[keywords] if isinstance(keywords, str) else keywords
    for action, listed in lists.items():
        if action not in ORDER:
            raise PluginError(f"keywords for {action!r}, which is not an action", hint=near(action, ORDER))
        if not all(phrase.strip() for phrase in listed):
            raise PluginError(f"the keywords for {action} have an empty phrase, which every message would contain")
    return {action: tuple(phrase.casefold() for phrase in lists[action]) for action in ORDER if action in lists}


def intent(message: str, lists: Mapping[str, Sequence[str]]) -> str | None:
    """Return the first action with a phrase anywhere in the message, in any case; else None.

    This is as crude as the original: "do not wait" announces WAIT, and so does "please wait".
    """
    text = message.casefold()
    return next((action for action, listed in lists.items() if any(phrase in text for phrase in listed)), None)
