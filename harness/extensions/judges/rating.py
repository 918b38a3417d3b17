"""What judges reply: a number, or one for each of several criteria; or which of two answers is better."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.characters import last_line
from harness.replies.extract import fields_of, stated
from harness.replies.json_fields import json_fields
from harness.replies.statements import last_labels
from harness.replies.strip_reasoning import strip_reasoning

KEY = "rating"
"""What a reply calls its number where there is one criterion only."""
_TAIL = 100_000
"""Characters at the end of a reply in which a line is looked for."""
_NEAR = 60
"""Characters behind a name within which its number ends."""
_MAX_PLAIN_VALUE = 1e15
_PLAIN = (
    r"[\s*_`\[(\"'“]*(?P<number>[-−–+]?(?:\d{1,12}(?:\.\d{1,12})?|\.\d{1,12}))"
    r"(?:[\s*_`]*(?:/|out of|of)[\s*_`]*(?P<of>\d{1,12}(?:\.\d{1,12})?))?"
)
_VALUE = re.compile(rf"{_PLAIN}(?![\w%]|[.,]\d|\s*(?:-|–|to\b)\s*\d)", re.IGNORECASE)
"""A number that a line goes on with: no percentage, no range such as 1-10."""
_LONE = re.compile(rf"{_PLAIN}[\s*_`\])\"'”]*[.!]?[\s*_`]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rating(Reply):
    """A number from `low` to `high`; with `criteria` one for each of them.

    The action is the number, or criterion → number. These are read, in order, first on the last line and then anywhere:

    1. a JSON object with the key "rating", or with all criteria: `{"rating": 7}`; the last one counts;
    2. lines that name it: `Rating: 7`, `**Rating:** [[7]]`, `Rating: 7/10`; the last one counts;
    3. without criteria: a last line that is nothing but the number.

    So a rating that the judge quotes from the text before it counts for nothing beside its own.

    A number outside of the scale, or out of another one (`4/5` where the scale ends at 10), is refused with the reason,
    and is never cut to fit. So is a reply that lacks a criterion.

    Attributes:
        low, high: the ends of the scale, both included.
        criteria: the names of what is rated; none: one rating.
    """

    low: float
    high: float
    criteria: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a scale goes from a number to a larger one, found [{self.low}, {self.high}]")

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The whole numbers of a short scale; None for several criteria and for other scales."""
        if self.criteria or not (float(self.low).is_integer() and float(self.high).is_integer()):
            return None
        return tuple(range(int(self.low), int(self.high) + 1)) if self.high - self.low <= 100 else None

    def allows(self, action: Action) -> bool:
        """Whether it has every number it needs, each within the scale."""
        if not self.criteria:
            return self._fits(action)
        return isinstance(action, dict) and action.keys() == {*self.criteria} and all(map(self._fits, action.values()))

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The rating, or one for each criterion."""
        number: dict[str, Any] = {"type": "number", "minimum": self.low, "maximum": self.high}
        if whole := Rating(self.low, self.high).options:  # with several criteria too
            number = {"enum": [*whole]}
        return tuple(ReplyField(name, f"{name.capitalize()}:", number) for name in self.criteria or (KEY,))

    def says(self, action: Action) -> Facts:
        """The number, or one for each criterion."""
        return action if self.criteria else {KEY: action}

    def written(self, action: Action) -> str:
        """One JSON object."""
        return json.dumps(self.says(action))

    @property
    def examples(self) -> tuple[Action, ...]:
        """Ends of the scale, and what lies between."""
        return tuple(
            dict.fromkeys(self.criteria, one) if self.criteria else one
            for one in (self.low, self.high, (self.low + self.high) / 2)
        )

    def parse(self, text: str) -> Parsed:
        """The ratings that `text` states."""
        text = strip_reasoning(text)
        last = last_line(text)
        action, problems = self._read(last)
        if problems and last != text:
            action, others = self._read(text)
            problems = others and [other or problem for other, problem in zip(others, problems, strict=True)]
        if not problems:
            return Parsed(action)
        names = self.criteria or (KEY,)
        wrong = [
            f"{name}: {what or 'no number was found'}" for name, what in zip(names, problems, strict=True) if what != ""
        ]
        return Parsed(error=f"{'; '.join(wrong)}; end with {self.words()}")

    def words(self) -> str:
        """The form in words, with placeholders."""
        pairs = ", ".join(f'"{name}": <number>' for name in self.criteria or (KEY,))
        return f"a line such as {{{pairs}}}, each number from {self.low:g} to {self.high:g}"

    def well_formed(self, text: str) -> bool:
        """Whether a JSON object gives all of it."""
        names = self.criteria or (KEY,)
        return json_fields(strip_reasoning(text), names).keys() == {*names}

    def constraint(self) -> Mapping[str, Any]:
        """A JSON object with nothing but the numbers."""
        return {"json": self.json_schema}

    def _fits(self, value: Any) -> bool:
        return type(value) in (int, float) and self.low <= value <= self.high

    def _read(self, text: str) -> tuple[Action, list[str | None]]:
        """(action, []), or (None, what is wrong with each number: None if there is none, "" if it is right)."""
        names = self.criteria or (KEY,)
        fields = fields_of(text, names, lines=False)
        values, problems = dict[str, float](), list[str | None]()
        for name in names:
            value, problem = self._of_field(fields[name]) if name in fields else self._of_line(text, name)
            if value is None and problem is None and not self.criteria:
                value, problem = self._of_last_line(text)
            problems.append(problem if value is None else "")
            if value is not None:
                values[name] = value
        if any(problem != "" for problem in problems):
            return None, problems
        return values if self.criteria else values[KEY], []

    def _of_field(self, value: Any) -> tuple[float | None, str | None]:
        if isinstance(value, str):
            match = _LONE.fullmatch(value[:_NEAR])
            return self._checked(match) if match else (None, f"{value[:40]!r} is no number")
        if type(value) not in (int, float):
            return None, f"{str(value)[:40]!r} is no number"
        return self._within(value)

    def _of_line(self, text: str, name: str) -> tuple[float | None, str | None]:
        """From the last line that names it and goes on with a number."""
        text = text[-_TAIL:]
        label, words = _named(name)
        for match in last_labels(text, label, words):
            value = _VALUE.match(text[match.end() : match.end() + _NEAR])
            if value:
                return self._checked(value)
        return None, None

    def _of_last_line(self, text: str) -> tuple[float | None, str | None]:
        match = _LONE.fullmatch(last_line(text)[:_NEAR])
        return self._checked(match) if match else (None, None)

    def _checked(self, match: re.Match[str]) -> tuple[float | None, str | None]:
        if match["of"] is not None and float(match["of"]) != self.high:
            return None, f"the scale ends at {self.high:g}, not at {match['of']}"
        return self._within(float(match["number"].replace("−", "-").replace("–", "-")))

    def _within(self, value: float) -> tuple[float | None, str | None]:
        if not self.low <= value <= self.high:  # also NaN
            shown = (
                f"{value:g}" if abs(value) < _MAX_PLAIN_VALUE else "this number"
            )  # what has 400 digits is not a float
            return None, f"{shown} is not from {self.low:g} to {self.high:g}"
        return int(value) if float(value).is_integer() else value, None


@lru_cache(maxsize=256)
def _named(name: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """What finds the name of a criterion before its number, and the word that it begins with."""
    parts = re.split(r"[\s_-]+", name)
    words = r"[\s_-]+".join(map(re.escape, parts))
    label = rf"(?<![^\W_])(?<![^\W_]_){words}(?![^\W_])[\s*_`\"']{{0,6}}(?:[:：=]|\bis\b)"
    return re.compile(label, re.IGNORECASE), (parts[0].lower(),)


BETTER = "better"
"""What a reply calls its choice between two answers."""
_CHOICE = re.compile(
    r"[\s*_`\[(\"'“]*(?:(?:answer|response|option)\s+)?(A|B|tie|both|neither|draw|equal)(?!\w)", re.IGNORECASE
)
_ONLY = re.compile(rf"{_CHOICE.pattern}[\s*_`\])\"'”]*[.!]?[\s*_`]*", re.IGNORECASE)
_BETTER = re.compile(
    r"(?<![^\W_])(?:better(?:\s+answer)?|winner|verdict)(?![^\W_])[\s*_`\"']{0,6}(?:[:：=]|\bis\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Preference(Reply):
    """Which of two answers is better. The action is "A", "B" or "tie".

    Read on the last line, then anywhere: a JSON object `{"better": "A"}`; a line `Better: A`, `Winner: **B**`,
    `Verdict: tie`; a last line that is nothing but the choice. The last statement counts, and a letter somewhere in the
    reasoning never does.
    """

    @property
    def options(self) -> tuple[Action, ...]:
        """The three choices."""
        return ("A", "B", "tie")

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The choice."""
        return (ReplyField(BETTER, "Better:", {"enum": list(self.options)}),)

    def written(self, action: Action) -> str:
        """One JSON object."""
        return json.dumps(self.says(action))

    def parse(self, text: str) -> Parsed:
        """The choice that `text` states."""
        text = strip_reasoning(text)
        for part in dict.fromkeys((last_line(text), text)):
            field = json_fields(part, (BETTER,)).get(BETTER)
            if isinstance(field, str) and (match := _ONLY.fullmatch(field[:_NEAR])):
                return Parsed(_choice(match[1]))
            for label in last_labels(part[-_TAIL:], _BETTER, ("better", "winner", "verdict")):
                if match := _CHOICE.match(part[-_TAIL:][label.end() : label.end() + _NEAR]):
                    return Parsed(_choice(match[1]))
            if match := _ONLY.fullmatch(part[:_NEAR] if len(part) <= _NEAR else ""):
                return Parsed(_choice(match[1]))
        choice = stated(
            text, ("better", "better answer", "winner", "verdict"), lambda said: _ONLY.fullmatch(said[:_NEAR])
        )
        if choice is not None:
            return Parsed(_choice(choice[1]))
        return Parsed(error='no choice was found; end with a line such as {"better": …}, with "A", "B" or "tie"')

    def well_formed(self, text: str) -> bool:
        """Whether a JSON object gives it."""
        return json_fields(strip_reasoning(text), (BETTER,)).get(BETTER) in self.options

    def constraint(self) -> Mapping[str, Any]:
        """A JSON object with the choice."""
        return {"json": self.json_schema}


def _choice(word: str) -> str:
    return word.upper() if word.upper() in ("A", "B") else "tie"
