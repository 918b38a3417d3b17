"""Which action a message announces: keyword lists, since a message is free text (DPBench, Section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from harness.errors import PluginError, near

Keywords = Mapping[str, Sequence[str]]
ListName = Literal["kw-0.1", "kw-0.2"]

ORDER: Final = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
"""The first action of which a phrase occurs is the intent."""

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
    """Action → phrases in small letters, in the order in which actions are tried.

    Raises:
        PluginError: for phrases of something that is no action, and for phrases without a letter.
    """
    lists = LISTS[keywords] if isinstance(keywords, str) else keywords
    for action, listed in lists.items():
        if action not in ORDER:
            raise PluginError(f"keywords for {action!r}, which is no action", hint=near(action, ORDER))
        if not all(phrase.strip() for phrase in listed):
            raise PluginError(f"the keywords for {action} have an empty phrase, which every message would contain")
    return {action: tuple(phrase.casefold() for phrase in lists[action]) for action in ORDER if action in lists}


def intent(message: str, lists: Mapping[str, Sequence[str]]) -> str | None:
    """The announced action: the first whose phrase stands anywhere in the message, in any case; else None.

    As crude as the original: "do not wait" announces WAIT, and so does "please wait".
    """
    text = message.casefold()
    return next((action for action, listed in lists.items() if any(phrase in text for phrase in listed)), None)
