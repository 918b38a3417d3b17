"""Reply forms of Graph-of-Agents besides answers: picks of agents, the difficulty, scores of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.extensions.panels.answer_with_confidence import confidence
from harness.replies import Parsing, field_of, fields_of, strip_reasoning, unfenced

LOWEST = 0.9
"""Scores must add up to more than this, and to 1 at most."""
_SLACK = 1e-9  # decimals that add up to 1 on paper
_MARKS = " \t\r*_`\"'“”.,!?()[]{}<>"
_TAIL = 4_000
"""How many of a reply's last characters are read."""
_LABEL = 60
"""Characters of a label before its colon."""
_JOINED = re.compile(r"[,;&\s]|\band\b")
_LABELLED = re.compile(r"label:\s{0,20}([0-9]{1,6})", re.IGNORECASE)
_BARE = re.compile(r"[0-9]{1,6}(?:,[0-9]{1,6}){0,999}")


@dataclass(frozen=True, slots=True)
class Indices(Reply):
    """Exactly `count` numbers of agents, from 0 to `pool` - 1, repetitions allowed. The action is their list.

    Attributes:
        pool: how many agents there are.
        count: how many numbers the list must have.
        parsing: "tolerant" reads the last line, if it is such a list, alone or after a label with a colon.
            "reference" reads a reply that is only the list, without blanks. Of a reply with "label:" it reads only the
            first number after it, as a list of one.
    """

    pool: int
    count: int
    parsing: Parsing = "tolerant"

    @property
    def noop(self) -> list[int]:
        """The first agents, starting again if there are too few."""
        return [i % self.pool for i in range(self.count)]

    def allows(self, action: Action) -> bool:
        """A list of the right length of existing numbers; with reference parsing also of length 1."""
        lengths = {self.count, 1} if self.parsing == "reference" else {self.count}
        right = isinstance(action, list) and len(action) in lengths
        return right and all(type(i) is int and 0 <= i < self.pool for i in action)

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The numbers."""
        lead = "Agents:" if self.parsing == "tolerant" else ""
        return (ReplyField("agents", lead, {"type": "array", "items": {"type": "integer"}}),)

    def says(self, action: Action) -> Facts:
        """The numbers with commas between them."""
        return {"agents": (", " if self.parsing == "tolerant" else ",").join(map(str, action))}

    def constraint(self) -> Mapping[str, Any]:
        """The numbers as `says` writes them, behind what announces them."""
        one = f"({'|'.join(map(str, range(self.pool)))})"
        lead, comma = ("Agents: ", ", ") if self.parsing == "tolerant" else ("", ",")
        return {"regex": f"{lead}{one}({comma}{one}){{{self.count - 1}}}"}

    @property
    def examples(self) -> tuple[Action, ...]:
        """The first agents, and the last."""
        return (self.noop, [self.pool - 1 - i for i in self.noop])

    def parse(self, text: str) -> Parsed:
        """Parse the numbers; an error says how many are needed, and in which range."""
        numbers = _reference(text) if self.parsing == "reference" else _numbers(text, "agents")
        if numbers is not None and self.allows(numbers):
            return Parsed(numbers)
        example = ",".join(["N"] * self.count)
        where = "end with a line of" if self.parsing == "tolerant" else "reply with nothing but"
        message = f"{where} exactly {self.count} numbers from 0 to {self.pool - 1}, written like this: {example}"
        return Parsed(error=message if numbers is None else f"{message}; found {numbers!s:.80}")


@dataclass(frozen=True, slots=True)
class Level(Reply):
    """A number from 1 to `highest`; the action is the number."""

    highest: int = 6

    @property
    def options(self) -> tuple[int, ...]:
        """All levels."""
        return tuple(range(1, self.highest + 1))

    @property
    def noop(self) -> int:
        """The highest level, which leads to the most turns."""
        return self.highest

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The level."""
        return (ReplyField("level", "Level:", {"enum": list(self.options)}),)

    def parse(self, text: str) -> Parsed:
        """Parse the number in the last line, alone or after a label with a colon."""
        numbers = _numbers(text, "level", "difficulty")
        if numbers is not None and len(numbers) == 1 and numbers[0] in self.options:
            return Parsed(numbers[0])
        return Parsed(error=f"end with a line that holds one number from 1 to {self.highest} and nothing else")


@dataclass(frozen=True, slots=True)
class Scores(Reply):
    """The relevance of each answer, as one JSON object: {"1": 0.6, "3": 0.4}. The action is the object.

    The sum must be above 0.9 and at most 1. Percentages are read as shares.

    Attributes:
        names: the names of the answers.
    """

    names: tuple[str, ...]

    @property
    def noop(self) -> dict[str, float]:
        """The same score for all answers."""
        return {name: 1 / len(self.names) for name in self.names}

    def allows(self, action: Action) -> bool:
        """A number from 0 to 1 for every name, with a valid sum."""
        if not isinstance(action, Mapping) or set(action) != set(self.names):
            return False
        numbers = [value for value in action.values() if type(value) in (int, float) and 0 <= value <= 1]
        return len(numbers) == len(self.names) and LOWEST < sum(numbers) <= 1 + _SLACK

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """A score for each answer."""
        number = {"type": "number", "minimum": 0, "maximum": 1}
        return tuple(ReplyField(name, f"{name}:", number) for name in self.names)

    def says(self, action: Action) -> Facts:
        """The scores."""
        said: Facts = action
        return said

    def written(self, action: Action) -> str:
        """One JSON object."""
        return json.dumps(action)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Shares that add up to 1."""
        return ({name: 1.0 if name == self.names[0] else 0.0 for name in self.names},)

    def parse(self, text: str) -> Parsed:
        """Parse the scores of the last such object; an error says what is missing or wrong."""
        fields = fields_of(strip_reasoning(text), self.names)
        scores = {name: confidence(fields.get(name)) for name in self.names}
        missing = [name for name, score in scores.items() if score is None]
        if missing:
            return Parsed(error=f"write one JSON object with a score from 0 to 1 for each of: {', '.join(self.names)}")
        if not self.allows(scores):
            total = sum(score or 0.0 for score in scores.values())
            return Parsed(error=f"the scores must add up to 1; these add up to {total:g}")
        return Parsed(scores)

    def constraint(self) -> Mapping[str, Any]:
        """One number for each name. A schema cannot demand their sum."""
        return {"json": self.json_schema}


def _numbers(text: str, *names: str) -> list[int] | None:
    """The integers of a reply: those of its last line, else of the field that has one of these names."""
    text = unfenced(strip_reasoning(text))
    numbers = numbers_of(text)
    field = field_of(text, *names) if numbers is None else None
    return numbers if field is None else numbers_of(field.value)


def numbers_of(text: str) -> list[int] | None:
    """Return the integers in the last line, alone or after a label with a colon; None if it has anything else.

    >>> numbers_of("I need a coder.\\n**Agents:** [0, 2, 2]")
    [0, 2, 2]
    """
    for line in reversed(text[-_TAIL:].split("\n")):
        bare = line.strip(_MARKS)
        if bare:
            head, _, tail = bare.replace("：", ":").rpartition(":")
            words = _JOINED.sub(" ", tail.strip(_MARKS)).split()
            plain = all(word.isascii() and word.isdecimal() and len(word) <= 6 for word in words)
            return [int(word) for word in words] if words and plain and len(head) <= _LABEL else None
    return None


def _reference(text: str) -> list[int] | None:
    labelled = _LABELLED.search(text[-_TAIL:])
    if labelled:
        return [int(labelled[1])]
    bare = text.strip()
    return [int(number) for number in bare.split(",")] if _BARE.fullmatch(bare) else None
