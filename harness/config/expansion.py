"""What `${…}` inserts: values of the matrix, counted, so that a small spec does not become a huge one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.api.errors import Place, SpecError
from harness.config import yamls

MAX_EXPANDED = 10_000_000
"""Characters that `${…}` may insert in all conditions together."""
VARIABLE = re.compile(r"(\$?)\$\{([A-Za-z_]\w*(?:\.\w+)*)\}")
"""`${name}`, or `$${name}`, which stands for the text `${name}`."""


class ExpansionBudget:
    """How much `${…}` may still insert."""

    def __init__(self, place: Place) -> None:
        self.place, self.room = place, MAX_EXPANDED

    def take(self, value: Any) -> Any:
        """`value`, counted with all that is in it, as often as it is there. Raises `SpecError`."""
        waiting: list[tuple[Any, int]] = [(value, 0)]
        while waiting:  # values that nest through one another may be deeper than Python recurses
            item, depth = waiting.pop()
            self.room -= 10 + (len(item) if isinstance(item, str) else 0)
            if self.room < 0:
                message = f"what ${{…}} inserts expands to more than {MAX_EXPANDED:,} characters"
                raise SpecError(message, place=self.place, hint="Values that insert others twice grow quickly.")
            if depth > yamls.MAX_DEPTH:
                message = f"what ${{…}} inserts is nested deeper than {yamls.MAX_DEPTH} levels"
                raise SpecError(message, place=self.place)
            inner = [*item, *item.values()] if isinstance(item, dict) else item if isinstance(item, list) else ()
            waiting += [(one, depth + 1) for one in inner]
        return value


def insert(value: Any, values: Mapping[str, Any], room: ExpansionBudget) -> Any:
    """Return a value of the spec with the matrix's values in place of all `${…}` in it. Raises `SpecError`."""
    if isinstance(value, dict):
        return {k: insert(v, values, room) for k, v in value.items()}
    if isinstance(value, list):
        return [insert(v, values, room) for v in value]
    if not isinstance(value, str):
        return value
    whole = VARIABLE.fullmatch(value)
    if whole and not whole[1]:
        return room.take(_lookup(whole[2], values))

    def inserted(match: re.Match[str]) -> str:
        return match[0][1:] if match[1] else str(room.take(_lookup(match[2], values)))

    return VARIABLE.sub(inserted, value)


def _lookup(variable: str, values: Mapping[str, Any]) -> Any:
    name, *keys = variable.split(".")
    value = values[name]
    if keys:
        return value[keys[0]]
    return value["name"] if isinstance(value, dict) else value
