"""How well others did: a form of reply with a rating for each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies import fields_of, strip_reasoning

LOWEST, HIGHEST = 1, 5
_MAX_CHARS = 4000
"""Characters of a text of numbers alone."""


@dataclass(frozen=True, slots=True)
class PeerRatings(Reply):
    """A rating from 1 to 5 for each message, as one JSON object: {"1": 4, "2": 2}. The action is the object.

    DyLAN rates on this scale (Liu et al., 2024).

    Attributes:
        names: the numbers of the messages.
    """

    names: tuple[str, ...]

    @property
    def noop(self) -> dict[str, int]:
        """The same rating for all."""
        return dict.fromkeys(self.names, 3)

    def allows(self, action: Action) -> bool:
        """A number from 1 to 5 for every name."""
        if not isinstance(action, Mapping) or set(action) != set(self.names):
            return False
        return all(type(value) in (int, float) and LOWEST <= value <= HIGHEST for value in action.values())

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """A rating for each message."""
        rating = {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}
        return tuple(ReplyField(name, f"{name}:", rating) for name in self.names)

    def says(self, action: Action) -> Facts:
        """The ratings."""
        said: Facts = action
        return said

    def written(self, action: Action) -> str:
        """One JSON object."""
        return json.dumps(action)

    @property
    def examples(self) -> tuple[Action, ...]:
        """The same for all, and different ones."""
        return (self.noop, {name: 1 + i % 5 for i, name in enumerate(self.names)})

    def parse(self, text: str) -> Parsed:
        """Parse the ratings; an error says what is missing."""
        said = strip_reasoning(text)
        fields = self._pairs(said) or fields_of(said, self.names)
        ratings = {name: _number(fields.get(name)) for name in self.names}
        if self.allows(ratings):
            return Parsed(ratings)
        return Parsed(error=f"write one JSON object with a number from 1 to 5 for each of: {', '.join(self.names)}")

    def _pairs(self, text: str) -> dict[str, str]:
        """What a text without words says that names each label once, and a number after it; {} for any other.

        Labels are numbers as ratings are: a 1 below the heading 1 is its value, and no heading.
        """
        numbers = [] if re.search(r"[^\W\d_]|\d\.\d|-\d", text[:_MAX_CHARS]) else re.findall(r"\d+", text[:_MAX_CHARS])
        found = dict(zip(numbers[::2], numbers[1::2], strict=False))
        return found if len(numbers) == 2 * len(self.names) and found.keys() == {*self.names} else {}

    def constraint(self) -> Mapping[str, Any]:
        """One whole number for each name."""
        return {"json": self.json_schema}


def _number(value: Any) -> Any:
    """A number that a model may have written as text."""
    return int(value) if isinstance(value, str) and value in ("1", "2", "3", "4", "5") else value
