"""An action with parameters, announced by a label: `ACTION: HARVEST amount=3`."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from harness.api import Action, Facts, Parsed, Reply, ReplyField
from harness.replies.answers import is_settled
from harness.replies.characters import (
    BLANK,
    WRAPPING,
    end_of,
    is_placeholder,
    last_line,
    literal,
    markers,
    unquoted,
    valid,
)
from harness.replies.extract import field_of
from harness.replies.json_fields import json_fields
from harness.replies.literals import masked
from harness.replies.options import MARKS, THEN, another_follows, options_of, read_option
from harness.replies.patterns import pattern
from harness.replies.strip_reasoning import strip_reasoning

MAX_OPTIONS = 10_000
_CONSTRAINED = 500
"""Options that constrained decoding gets as a list."""
_WINDOW = 2_000
"""Characters around an action in which its parameters may stand."""
_TAIL = 50_000
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,_]{0,20}(?:\.\d{1,20})?(?![\w])")
_RANGE = re.compile(r"[ \t]*(?:\bor\b|\bto\b|\band\b|[-–/])[ \t]*\d", re.IGNORECASE)
_PERCENT = re.compile(r"[ \t]?(?:%|per ?cent\b)", re.IGNORECASE)
_ARGUMENTS = ("parameters", "arguments", "args")


@dataclass(frozen=True, slots=True)
class ActionParameter:
    """What an action takes.

    Attributes:
        name: its name.
        kind: "integer" or "number" from `low` to `high`, "one_of" the `values`, or a "text" of at most `chars`
            characters, which is one line.
        means: what it is, for the prompt.
    """

    name: str
    kind: Literal["integer", "number", "one_of", "text"]
    low: float = 0
    high: float = 0
    values: tuple[Any, ...] = ()
    chars: int = 200
    means: str = ""

    @property
    def options(self) -> tuple[Any, ...] | range | None:
        """All its values; None if they are not finitely many."""
        if self.kind == "integer":
            return range(math.ceil(self.low), math.floor(self.high) + 1)
        return self.values if self.kind == "one_of" else None

    @property
    def words(self) -> str:
        """What it can be, in words."""
        if self.kind == "one_of":
            return f"one of: {', '.join(map(str, self.values))}"
        if self.kind == "text":
            return f"a text of at most {self.chars} characters"
        low, high = (f"{end:g}" if isinstance(end, float) else str(end) for end in (self.low, self.high))
        return f"a {'whole ' if self.kind == 'integer' else ''}number from {low} to {high}"

    def allows(self, value: Any) -> bool:
        """Whether it can be this value."""
        if self.kind == "one_of":
            return any(value == one and type(value) is type(one) for one in self.values)
        if self.kind == "text":
            # one line: what a policy or an agent of one's own writes is shown to others beside the harness's words
            return isinstance(value, str) and len(value) <= self.chars and len(f"{value}.".splitlines()) == 1
        if isinstance(value, bool) or not isinstance(value, int if self.kind == "integer" else (int, float)):
            return False
        return self.low <= value <= self.high

    @property
    def example(self) -> Any:
        """One of its values."""
        if self.kind == "text":
            return "I wait for you"[: self.chars]
        if self.kind == "one_of":
            return self.values[-1]
        return math.floor(self.high) if self.kind == "integer" else (self.low + self.high) / 2

    @property
    def examples(self) -> tuple[Any, ...]:
        """Some of its values."""
        if self.kind == "text":
            return self.example, "Both of us agree - so far"[: self.chars]
        return tuple(dict.fromkeys((self.example, *self.values[:2], *((self.low,) if self.kind != "one_of" else ()))))

    @property
    def schema(self) -> Mapping[str, Any]:
        """Its values as JSON Schema."""
        if self.kind == "one_of":
            return {"enum": list(self.values)}
        if self.kind == "text":
            return {"type": "string", "maxLength": self.chars}
        return {"type": self.kind, "minimum": self.low, "maximum": self.high}

    def drawn(self, rng: random.Random) -> Any:
        """One of its values by chance; its example if it is a text."""
        if self.kind == "number":
            return self.low + (self.high - self.low) * rng.random()
        return self.example if self.options is None else rng.choice(self.options)

    def read(self, text: str) -> Any:
        """The value that a text states; None if it states none. It may lie beyond the bounds."""
        if self.kind == "text":
            bare = text.strip()
            if is_placeholder(bare) or bare.strip(" :=.") == f"<{self.name}>":  # as the prompt writes it
                return None
            bare = bare[1:-1] if bare[:1] + bare[-1:] == "()" else bare.lstrip(" :=,–—")
            bare = bare[:-1] if bare.endswith("]") and "[" not in bare else bare
            bare = valid(unquoted(bare))
            line = bare if bare.isprintable() else "".join(c if c.isprintable() else " " for c in bare)
            line = " ".join(line.split()).strip("|").strip().removeprefix("> ")
            return line[: self.chars] or None
        if self.kind == "one_of":
            finder = options_of(tuple(dict.fromkeys(map(str, self.values))))
            name = finder.exactly(text) or finder.after(text, 0)
            return next((one for one in self.values if str(one) == name), None)
        many = list(itertools.islice(_NUMBER.finditer(text), 3))
        if not many or (len(many) > 1 and text[: many[0].start()].strip(WRAPPING + "$€£:=,")):
            return None
        if _RANGE.match(text, many[0].end()):
            return None
        number = float(many[0][0].replace(",", "").replace("_", "").replace("−", "-"))
        if self.kind == "number" and self.high <= 1 < number and _PERCENT.match(text, many[0].end()):
            number /= 100
        if self.kind == "integer" or number.is_integer():
            return int(number) if number.is_integer() else None
        return number

    def of_json(self, value: Any) -> Any:
        """The value that JSON states; None if it states none."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return value if self.allows(value) else self.read(str(value)) if isinstance(value, (str, int, float)) else None

    def pattern(self) -> str:
        """A regular expression for its values."""
        return f"[^\\n]{{1,{self.chars}}}" if self.kind == "text" else pattern(self.schema)


@dataclass(frozen=True, slots=True)
class ActionForm:
    """An action by name, with its parameters in order, and what it `means`."""

    name: str
    parameters: tuple[ActionParameter, ...] = ()
    means: str = ""

    @property
    def usage(self) -> str:
        """How it is written: `HARVEST amount=<amount>`."""
        return " ".join([self.name, *(f"{parameter.name}=<{parameter.name}>" for parameter in self.parameters)])


@dataclass(frozen=True, slots=True)
class Actions(Reply):
    """One of several actions with parameters. The action is a mapping {"action": name, parameter: value, …}.

    The last label counts that an action's name follows (in any case and with marks between, as `Labelled` reads it).
    Its parameters follow it, by name or in order (`HARVEST amount=3`, `HARVEST 3`, `HARVEST(3)`), or by name on
    lines of their own. A JSON object with the action and its parameters, and a last line that begins with an action,
    count where no label does.

    Attributes:
        forms: the actions that are possible now.
        label: what announces the action.
        noop: the action of an agent that does nothing.
    """

    forms: tuple[ActionForm, ...]
    label: str = "ACTION"
    noop: Mapping[str, Any] | None = None

    @property
    def options(self) -> tuple[Action, ...] | None:
        """All actions with all their values, unless they are infinitely many, or more than `MAX_OPTIONS`."""
        total, many = 0, []
        for form in self.forms:
            values = [parameter.options for parameter in form.parameters]
            if None in values:
                return None
            known = [value for value in values if value is not None]
            total += math.prod(map(len, known))
            if total > MAX_OPTIONS:
                return None
            names = [parameter.name for parameter in form.parameters]
            many += [{"action": form.name, **dict(zip(names, one, strict=True))} for one in itertools.product(*known)]
        return tuple(many)

    def allows(self, action: Action) -> bool:
        """Whether it is one of the actions, with all its parameters and nothing else, within their bounds."""
        form = self._form(action.get("action")) if isinstance(action, Mapping) else None
        return (
            form is not None
            and set(action) == {"action", *(parameter.name for parameter in form.parameters)}
            and all(parameter.allows(action[parameter.name]) for parameter in form.parameters)
        )

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The action with its parameters, after the label."""
        listed = ", ".join(form.usage for form in self.forms[:20])
        return (ReplyField(self.label.lower(), f"{self.label}:", words=f"an action: {listed}"),)

    def says(self, action: Action) -> Facts:
        """The action in words."""
        return {self.label.lower(): action_text(action)}

    @property
    def examples(self) -> tuple[Action, ...]:
        """Each action with values of all kinds."""
        return tuple({"action": form.name, **{one.name: one.example for one in form.parameters}} for form in self.forms)

    def parse(self, text: str) -> Parsed:
        """The action that `text` states."""
        text = strip_reasoning(text)[-_TAIL:]
        stated = self._stated(text)
        if stated is None:
            listed = ", ".join(form.usage for form in self.forms[:20])
            return Parsed(error=f"no valid action was found after '{self.label}:'; the actions are: {listed}")
        form, texts = stated
        values: dict[str, Any] = {}
        for parameter in form.parameters:
            raw = texts.get(parameter.name)
            value = None if raw is None else parameter.read(raw) if isinstance(raw, str) else parameter.of_json(raw)
            if value is None or not parameter.allows(value):
                return Parsed(error=self._complaint(form, parameter, raw if value is None else value))
            values[parameter.name] = value
        return Parsed({"action": form.name, **values})

    def constraint(self) -> Mapping[str, Any]:
        """Exactly the label and an action with its parameters."""
        options = self.options
        if options is not None and len(options) <= _CONSTRAINED:
            return {"choice": [f"{self.label}: {action_text(option)}" for option in options]}
        return {"regex": f"{literal(self.label)}: ({'|'.join(map(_pattern, self.forms))})"}

    def _form(self, name: Any) -> ActionForm | None:
        return next((form for form in self.forms if form.name == name), None)

    def _complaint(self, form: ActionForm, parameter: ActionParameter, value: Any) -> str:
        what = "is missing" if value is None else f"is {str(value).strip()[:60]!r}"
        return f"{parameter.name} {what}; it must be {parameter.words}. Write '{self.label}: {form.usage}'"

    def _stated(self, text: str) -> tuple[ActionForm, dict[str, Any]] | None:
        """The action after the last label, else in JSON, else on the last line: (form, parameter → what stands)."""
        finder = options_of(tuple(form.name for form in self.forms))
        last = None
        for label in markers(masked(text) if "{" in text else text, f"{self.label}:"):
            for marks in (MARKS, BLANK):
                match = finder.pattern.match(text, end_of(marks, text, label.end()))
                if match:
                    last = last if another_follows(text, match.end(), finder.pattern) else match
                    break
        if last is not None:
            form = self._named(finder.named(last))
            if not form.parameters and not is_settled(text, f"{self.label}:", finder.read):
                return None
            if not form.parameters and THEN.match(text, last.end()) and len(finder.mentions(_line(text, last))) > 1:
                return None
            return form, _arguments(form, text, last.end())
        if "{" in text:
            keys = [parameter.name for form in self.forms for parameter in form.parameters]
            called = ("action", self.label.lower(), "name")
            fields = json_fields(text, tuple(dict.fromkeys([*called, *_ARGUMENTS, *keys])))
            names = (finder.exactly(fields[key]) for key in called if isinstance(fields.get(key), str))
            if name := next(filter(None, names), None):
                inner = [fields[key] for key in _ARGUMENTS if isinstance(fields.get(key), Mapping)]
                return self._named(name), {**fields, **(inner[0] if inner else {})}
        field = field_of(text, self.label.lower(), "action")
        line = last_line(text) if field is None or field.inline else field.value.strip()
        match = finder.pattern.match(line, end_of(MARKS, line, 0))
        if match and not another_follows(line, match.end(), finder.pattern):
            form = self._named(finder.named(match))
            if form.parameters or not line[match.end() :].strip(WRAPPING):
                return form, _arguments(form, line, match.end())
        if last is not None:
            return None
        option = read_option(text, tuple(form.name for form in self.forms), f"{self.label}:", self.label.lower())
        chosen = None if option is None else self._named(option)
        return None if chosen is None or chosen.parameters else (chosen, {})

    def _named(self, name: str) -> ActionForm:
        return next(form for form in self.forms if form.name == name)


def _line(text: str, match: re.Match[str]) -> str:
    """The line from a match on."""
    return text[match.start() : match.start() + _WINDOW].split("\n", 1)[0]


def action_text(action: Action) -> str:
    """An action with parameters in words: `HARVEST amount=3`."""
    rest = [f"{name}={value}" for name, value in action.items() if name != "action"]
    return " ".join([str(action["action"]), *rest])


def _pattern(form: ActionForm) -> str:
    return " ".join([literal(form.name), *(f"{literal(p.name)}={p.pattern()}" for p in form.parameters)])


@lru_cache(maxsize=512)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    """What finds the name of a parameter and the sign after it; group 1 is the name."""
    any_of = "|".join(re.escape(name).replace("_", "[ _-]?") for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<!\w)({any_of})[\"'”’*_`\]]{{0,4}}[ \t]{{0,4}}[:：=][ \t*_`]{{0,6}}", re.IGNORECASE)


def _arguments(form: ActionForm, text: str, end: int) -> dict[str, str]:
    """What follows an action that ends at `end`: parameter → text."""
    if not form.parameters:
        return {}
    finder = _names(tuple(parameter.name for parameter in form.parameters))
    folded = {_folded(parameter.name): parameter.name for parameter in form.parameters}
    stop = text.find("\n", end)
    line = text[end : min(len(text) if stop < 0 else stop, end + _WINDOW)]
    matches = [match for match in finder.finditer(line) if _folded(match[1]) in folded]  # "ı" matches an "i"
    texts: dict[str, str] = {}
    for match, after in itertools.zip_longest(matches, matches[1:]):
        value = line[match.end() : after.start() if after else len(line)]
        texts.setdefault(folded[_folded(match[1])], value.strip(" \t,;"))
    head = line[: matches[0].start()] if matches else line
    left = [parameter.name for parameter in form.parameters if parameter.name not in texts]
    if len(left) == 1 and head.strip(WRAPPING + ":=,-–—"):
        texts[left[0]] = head
    elif left and (bare := head.strip(WRAPPING + ":=,-–—")):
        parts = bare.split(",", len(left) - 1) if "," in bare else bare.split(None, len(left) - 1)
        texts |= dict(zip(left, parts, strict=False))
    if len(texts) < len(form.parameters):  # on lines of their own, below or above
        begin = max(0, end - _WINDOW)
        around = [m for m in finder.finditer(text[begin : end + _WINDOW]) if _folded(m[1]) in folded]
        for match in sorted(around, key=lambda one: begin + one.start() < end):
            value = match.string[match.end() :].partition("\n")[0]
            texts.setdefault(folded[_folded(match[1])], value)
    return texts


def _folded(name: str) -> str:
    return re.sub(r"[ _-]", "", name).casefold()
