"""Answers as a spec declares them: the form of reply, its words for prompts, and the value that expressions read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, product
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from harness.api import Action, Parsed, PluginError, Range, Reply, ReplyField
from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.pattern import Pattern
from harness.extensions.networks.answers import Answer, AnswerForm, normalize
from harness.extensions.yaml_tasks.expressions import CompiledExpression, Expression, ExpressionError, Names, compiled
from harness.replies import ANSWER, Choice, FreeText, field_of, strip_reasoning
from harness.replies.answers import answer_of
from harness.replies.numbers import Numbers
from harness.replies.statements import endings
from harness.replies.wrapped_reply import WrappedReply

FINAL_ANSWER = "### Final Answer ###"
MAX_OPTIONS = 1_000
"""Whole numbers that are listed as options, so that random policies can draw one."""
MAX_CHARS = 2_000
"""Of an answer in free text or JSON: expressions go through it."""
_TYPES = ("array", "object", "string", "boolean", "integer", "number")
_FORMS = ("choice", "several", "integer", "number", "text", "pattern", "boxed", "json")


class Bounds(TypedDict):
    """The smallest and the largest number allowed: numbers, or expressions over what the agent knows."""

    min: NotRequired[Expression]
    max: NotRequired[Expression]


class TextAnswer(TypedDict):
    """A text behind the marker."""

    max_chars: NotRequired[Annotated[int, Range(ge=1, le=MAX_CHARS)]]


Options = Annotated[list[str | int | float | bool], "options"] | Expression


class AnswerEntry(TypedDict, total=False):
    """The form of an answer: one of choice, several, integer, number, text, pattern, boxed and json."""

    choice: Annotated[
        Options, "one of these options: a list, or an expression that gives one, such as neighbors[agent] + ['None']"
    ]
    several: Annotated[Options, "any number of these options, or none of them"]
    integer: Annotated[Bounds, "a whole number"]
    number: Annotated[Bounds, "a number"]
    text: Annotated[TextAnswer, "a text"]
    pattern: Annotated[str, "what a regular expression matches last: its first group, or all of it"]
    boxed: Annotated[Literal[True], "a mathematical answer in a box, as its text"]
    json: Annotated[dict[str, Any], "a JSON value: a JSON Schema of type, items, additionalProperties and enum"]
    marker: Annotated[str, "what announces the answer in a reply"]
    words: Annotated[str, "how to write the answer, for prompts"]


@dataclass(frozen=True, slots=True)
class BoundedNumber(Reply):
    """A number behind a marker, or in a reply without it.

    Attributes:
        marker: what announces it, in any case; the last one counts.
        low, high: the bounds, both included; None for none.
        whole: whether it must be a whole number.
    """

    marker: str
    low: float | None
    high: float | None
    whole: bool

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The whole numbers within the bounds, unless they are many."""
        if not self.whole or self.low is None or self.high is None or self.high - self.low >= MAX_OPTIONS:
            return None
        return tuple(range(int(self.low), int(self.high) + 1))

    def allows(self, action: Action) -> bool:
        """Whether it is a number of the right kind within the bounds."""
        if isinstance(action, bool) or not isinstance(action, int if self.whole else (int, float)):
            return False
        return (self.low is None or action >= self.low) and (self.high is None or action <= self.high)

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The number, behind the marker."""
        bounds = {name: end for name, end in (("minimum", self.low), ("maximum", self.high)) if end is not None}
        return (ReplyField("answer", self.marker, {"type": "integer" if self.whole else "number", **bounds}),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Its bounds, or some number."""
        return (self.options or ())[:20] or tuple(one for one in (self.low, self.high) if one is not None) or (7,)

    def parse(self, text: str) -> Parsed:
        """The number that `text` states."""
        value = answer_of(strip_reasoning(text), Numbers().read, marker=self.marker)
        if value is None:
            return Parsed(error=f"no number was found behind {self.marker!r}")
        if not self.allows(value):
            return Parsed(error=f"the answer must be {self.words}; {value} is not")
        return Parsed(value)

    @property
    def words(self) -> str:
        """The form in words."""
        kind = "a whole number" if self.whole else "a number"
        if self.low is not None and self.high is not None:
            return f"{kind} from {self.low} to {self.high}"
        bound = f" of at least {self.low}" if self.low is not None else ""
        return kind + (f" of at most {self.high}" if self.high is not None else bound)

    def constraint(self) -> Mapping[str, Any]:
        """The marker and a number."""
        if self.options is not None:
            return {"choice": [f"{self.marker} {option}" for option in self.options]}
        digits = "-?[0-9]{1,15}" if self.whole else r"-?[0-9]{1,15}(\.[0-9]{1,12})?"
        return {"regex": f"{re.escape(self.marker)} {digits}"}


@dataclass(frozen=True, slots=True)
class Several(Reply):
    """Any number of some options, or none: a JSON list, or texts with commas between them, behind a marker.

    Attributes:
        among: the options.
        marker: what announces the answer, in any case; the last one counts.
    """

    among: tuple[str, ...]
    marker: str

    @property
    def options(self) -> tuple[Action, ...] | None:
        """Every combination, unless they are many."""
        if 2 ** len(self.among) > MAX_OPTIONS:
            return None
        return tuple(list(compress(self.among, bits)) for bits in product((0, 1), repeat=len(self.among)))

    def allows(self, action: Action) -> bool:
        """Whether it is a list of options, each once."""
        if not isinstance(action, (list, tuple)) or not all(isinstance(one, str) for one in action):
            return False
        return len(set(action)) == len(action) and set(self.among).issuperset(action)

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The options, behind the marker."""
        return (ReplyField("answer", self.marker, {"type": "array", "items": {"enum": list(self.among)}}),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """One, all, none."""
        return (list(self.among[:1]), list(self.among), [])

    def parse(self, text: str) -> Parsed:
        """The options that `text` states, in their own order."""
        text = strip_reasoning(text)
        for statement in self._statements(text):
            if (options := self._of(_listed(statement))) is not None:
                return Parsed(options)
        parts = _listed(_behind(self.marker, text))
        what = f"{', '.join(parts)!r:.80} is not" if parts else "nothing stands there"
        return Parsed(error=f"the answer must be {self.words}, behind {self.marker!r}; {what}")

    def _statements(self, text: str) -> Iterator[str]:
        yield _behind(self.marker, text)
        if (field := field_of(text, *ANSWER)) is not None:
            yield field.value
        yield from endings(text)

    def _of(self, parts: Sequence[str]) -> list[str] | None:
        """The options that are listed, in their own order; None where anything else is."""
        names = {option.casefold(): option for option in self.among}
        folded = {part.casefold() for part in parts}
        if folded in ({"none"}, {"[]"}) and "none" not in names:
            return []
        return (
            [option for option in self.among if option.casefold() in folded]
            if folded and folded <= set(names)
            else None
        )

    @property
    def words(self) -> str:
        """The form in words."""
        return f"any of these with commas between them, or None: {', '.join(self.among)}"

    def constraint(self) -> Mapping[str, Any]:
        """A JSON list of options."""
        return {"json": {"type": "array", "items": {"enum": list(self.among)}}}


@dataclass(frozen=True, slots=True)
class ShortReply(WrappedReply):
    """A form whose answers are not long.

    Attributes:
        most: the most characters of an answer, as JSON.
    """

    most: int = MAX_CHARS

    def allows(self, action: Action) -> bool:
        """Whether the form allows it, and it is short."""
        fits = not isinstance(self.inner, Answer) or self.inner.form.fits(action)
        fits = fits and (not isinstance(self.inner, (FreeText, Pattern, Boxed)) or isinstance(action, str))
        return fits and action is not None and len(json.dumps(action)) <= self.most + 2

    def parse(self, text: str) -> Parsed:
        """What the form reads, unless it is long."""
        parsed = self.inner.parse(text)
        if parsed.error is None and not self.allows(parsed.action):
            return Parsed(error=f"the answer is too long; at most {self.most:,} characters are read")
        return parsed


class AnswerRule:
    """What `answer:` declares.

    Args:
        entry: the declaration.
        known: the names that its expressions may use, besides the argument `agent`.

    Raises:
        PluginError, ExpressionError: if it is wrong.
    """

    def __init__(self, entry: AnswerEntry, known: Sequence[str]) -> None:
        forms = [form for form in _FORMS if form in entry]
        if len(forms) != 1:
            what = f"answer has {' and '.join(forms)}; give one" if forms else "answer has no form"
            raise PluginError(what, hint=f"It takes one of {', '.join(_FORMS)}.", at=("answer",))
        self.form = forms[0]
        self.marker = entry.get("marker", FINAL_ANSWER)
        if not self.marker.strip():
            raise PluginError("the marker is empty", at=("answer", "marker"))
        self._words = entry.get("words")
        self._bounds: dict[str, CompiledExpression] = {}
        self._choice: CompiledExpression | None = None
        self._facts: Mapping[str, Any] = {}
        if self.form in ("choice", "several"):
            choice: Any = entry[self.form]  # type: ignore[literal-required]
            if isinstance(choice, list):
                if not choice:
                    raise PluginError("there are no options", at=("answer", self.form))
                self._facts = _options(choice, self.form)
            else:
                self._choice = compiled(choice, known, ("agent",))
        elif self.form in ("integer", "number"):
            bounds: Any = entry[self.form]  # type: ignore[literal-required]
            self._bounds = {key: compiled(text, known, ("agent",)) for key, text in bounds.items()}
        elif self.form == "text":
            self._most = entry["text"].get("max_chars", MAX_CHARS)
        elif self.form == "pattern":
            try:
                self._pattern = Pattern(entry["pattern"], -1)
            except ValueError as error:
                raise PluginError(str(error), at=("answer", "pattern")) from None
            if self._words is None:
                raise PluginError("a pattern needs `words:`, which tell agents what to write", at=("answer",))
        elif self.form == "boxed":
            self._words = self._words or r"a formula or number in \boxed{}"
        else:
            self._json = entry["json"]
            _check_schema(self._json, ("answer", "json"))
            if self._words is None:
                raise PluginError("a JSON answer needs `words:`, which tell agents its form", at=("answer",))

    @property
    def free(self) -> bool:
        """Whether agents may answer what expressions cannot foresee."""
        return self.form in ("text", "pattern", "boxed", "json")

    def on(self, values: Names) -> Callable[[str], Mapping[str, Any]]:
        """Return a function: agent → what decides its form, as facts of the case. It raises `PluginError`."""
        if self._choice is not None:
            function, text, seen = self._choice.on(values), self._choice.text, dict[Any, Mapping[str, Any]]()

            def choice(agent: str) -> Mapping[str, Any]:
                options = function(agent)
                if not isinstance(options, list) or not (options or self.form == "several"):
                    by_agent = isinstance(options, Mapping) and not options.keys().isdisjoint(values["agents"])
                    entry = f"{text}[agent]" if text.isidentifier() else "…[agent]"
                    raise ExpressionError.of(
                        text,
                        f"{self.form}: the options of {agent} must be a list that is not empty, found {options!r:.80}",
                        f"It is a mapping with an entry for each agent: write {entry}." if by_agent else None,
                    )
                key = tuple(map(repr, options))
                if key not in seen:
                    try:
                        seen[key] = _options(options, self.form)
                    except PluginError as error:
                        what = f"{self.form}: the options of {agent}: {error.message}"
                        raise ExpressionError.of(text, what, error.hint) from None
                return seen[key]

            if re.search(r"\bagent\b", text):
                return choice
            same = choice("all agents")
            return lambda agent: same
        bounds = {key: (one.on(values), one.text) for key, one in self._bounds.items()}

        def bounded(agent: str) -> dict[str, Any]:
            facts = {key: _number(bound(agent), text, self.form) for key, (bound, text) in bounds.items()}
            if len(facts) == 2 and facts["min"] > facts["max"]:
                raise ExpressionError.of(bounds["max"][1], f"no number is from {facts['min']} to {facts['max']}")
            return facts

        return bounded

    def reply(self, facts: Mapping[str, Any]) -> Reply:
        """The form of reply for the facts that `on` gave."""
        if self.form == "choice":
            return _choice_of(tuple((facts or self._facts)["options"]), self.marker)
        if self.form == "several":
            return Several(tuple((facts or self._facts)["options"]), self.marker)
        if self.form in ("integer", "number"):
            return BoundedNumber(self.marker, facts.get("min"), facts.get("max"), self.form == "integer")
        if self.form == "text":
            return ShortReply(FreeText(self.marker), self._most)
        if self.form in ("pattern", "boxed"):
            return ShortReply(self._pattern if self.form == "pattern" else Boxed())
        return ShortReply(Answer(AnswerForm(str(self._words), self._json), self.marker))

    def words(self, reply: Reply) -> str:
        """How to write the answer, for prompts."""
        if self._words is not None:
            return self._words
        if isinstance(reply, (BoundedNumber, Several)):
            return reply.words
        return "one of these: " + ", ".join(map(str, reply.options)) if reply.options else "a short text"

    def value(self, facts: Mapping[str, Any], action: Action) -> Any:
        """What expressions read: the option as the spec has it, not as text."""
        facts = facts or self._facts
        if "values" not in facts or action is None:
            return action
        values = _values(tuple(facts["options"]), tuple(facts["values"]))
        return [values[one] for one in action] if self.form == "several" else values[action]


@lru_cache(maxsize=4096)
def _choice_of(options: tuple[str, ...], marker: str) -> Choice:
    return Choice(options, marker)


@lru_cache(maxsize=4096)
def _values(options: tuple[str, ...], values: tuple[Any, ...]) -> Mapping[str, Any]:
    return dict(zip(options, values, strict=True))


def _options(options: Sequence[Any], form: str) -> Mapping[str, Any]:
    """Options as texts, in which agents write them, and their values where these are others."""
    at = ("answer", form)
    for i, option in enumerate(options):
        if isinstance(option, bool):
            word = "Yes" if option else "No"
            hint = f"YAML takes {word} without quotes for a truth value: write '{word}'."
            raise PluginError(f"option {i + 1} is the truth value {str(option).lower()}", hint=hint, at=at)
        if not isinstance(option, (str, int, float)) or not str(option).strip():
            raise PluginError(f"an option is a text or a number, found {option!r:.80}", at=at)
    texts = [str(option) for option in options]
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        hint = "List each once; unique(…) removes repetitions."
        raise PluginError(f"two options look the same: {twice!r:.80}", hint=hint, at=at)
    return {"options": tuple(texts), **({} if texts == [*options] else {"values": tuple(options)})}


def _check_schema(schema: Any, at: tuple[str, ...]) -> None:
    if not isinstance(schema, dict) or ("enum" not in schema and schema.get("type") not in _TYPES):
        raise PluginError(f"a JSON form has `enum:`, or `type:` one of {', '.join(_TYPES)}", at=at)
    for key in schema:
        if key not in ("type", "items", "additionalProperties", "enum"):
            raise PluginError(f"{key!r} is not a key of JSON forms: type, items, additionalProperties, enum", at=at)
    for key in ("items", "additionalProperties"):
        if key in schema:
            _check_schema(schema[key], (*at, key))


def _number(value: Any, text: str, form: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int if form == "integer" else (int, float)):
        kind = "a whole number" if form == "integer" else "a number"
        raise ExpressionError.of(text, f"a bound must be {kind}, found {value!r:.60}")
    return value


def _listed(text: str) -> list[str]:
    """The entries of a JSON list, or of the first line."""
    text = text.strip().strip(" \t*_`\"'“”.:：").removeprefix("[[").strip()
    value = normalize(text[: text.find("]") + 1]) if text.startswith("[") else None
    if isinstance(value, list):
        return [str(one).strip() for one in value] or ["[]"]
    line = text.split("\n", 1)[0][:MAX_CHARS]
    return [
        part for one in re.split(r"[,;]|\band\b", line) if (part := one.strip(" \t*_`'\"“”.[]")) or one.strip() == "]"
    ]


def _behind(marker: str, text: str) -> str:
    text = strip_reasoning(text)
    markers = list(re.finditer(re.escape(marker), text, re.IGNORECASE))
    return text[markers[-1].end() :] if markers else text
