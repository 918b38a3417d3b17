"""The moves that a text game lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_MOVE = r"\[[^\[\]\n]{1,80}\]"
_LIST = re.compile(rf"{_MOVE}(?:[\s,;/|'\"`]{{0,9}}(?:or|and)?[\s'\"`]{{0,9}}{_MOVE})*")


def listed(news: Iterable[Mapping[str, str]]) -> list[str]:
    """The moves in brackets that the game's latest message with any lists: `Valid targets: [0], [3]`.

    Of several lists in a message the longest counts, and the last one of these: the format alone (`[X]`) is shorter.
    Empty if the game has listed nothing.
    """
    for message in reversed([one["text"] for one in news if one["from"] == "GAME"]):
        lists = [re.findall(_MOVE, found) for found in _LIST.findall(message)]
        if lists:
            return max(reversed(lists), key=len)
    return []
