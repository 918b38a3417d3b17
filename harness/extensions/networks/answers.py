"""Answers that are values: numbers, lists, tables. Text becomes a JSON value in the same way for every comparison."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField
from harness.replies.answers import answer_at, places_of, plain
from harness.replies.characters import QUOTES, is_placeholder, markers, valid
from harness.replies.extract import ANSWER, field_of
from harness.replies.literals import MAX_DEPTH, NOTHING, read
from harness.replies.mentions import Stated
from harness.replies.numbers import Numbers
from harness.replies.options import options_of, read_option
from harness.replies.patterns import NO_NUMBER
from harness.replies.statements import declines, endings
from harness.replies.strip_reasoning import strip_reasoning, unfenced

from .prose import lists_of, only_words, words_of

_UNWRAPS = 5
"""How often text within text is read: quoted lists in strings in lists. Bounds the time, with no right answer lost."""
_TAG = re.compile(r"[\w+.#-]*+\s*+")  # what may follow the opening fence: a language


def normalize(value: Any) -> Any:
    r"""Return `value` in the normal form in which answers are compared. Total: any value has one.

    Text loses surrounding blanks, a code fence and matching quotes; it is read as JSON, otherwise as a Python literal,
    otherwise it stays text. Tuples become lists, keys text, "true" and "false" in any case truth values, whole floats
    integers. Values that are not finite become text, which equals no number. All of this holds inside lists and
    mappings too. Values that JSON cannot hold, and values nested too deeply, become None.

    >>> normalize("```json\n{0: 2.0, 1: 'True'}\n```")
    {'0': 2, '1': True}
    """
    return _normal(value, _UNWRAPS, MAX_DEPTH)


def same(answer: Any, truth: Any, digits: int | None = None, tolerance: float | None = None) -> bool:
    """Whether two values in normal form are the same answer.

    Numbers are compared exactly or, if the task asks for `digits` decimals, within half a unit of the last one, so that
    any rounding is right; `tolerance` sets another distance. A truth value is never a number.
    """
    if isinstance(truth, bool) or isinstance(answer, bool):
        return answer is truth
    if isinstance(truth, (int, float)):
        if not isinstance(answer, (int, float)):
            return False
        if digits is None and tolerance is None:
            return answer == truth
        return abs(answer - truth) <= (0.5 * 10 ** -(digits or 0) if tolerance is None else tolerance) + 1e-9
    if isinstance(truth, list):
        return (
            isinstance(answer, list)
            and len(answer) == len(truth)
            and all(same(a, b, digits, tolerance) for a, b in zip(answer, truth, strict=True))
        )
    if isinstance(truth, dict):
        return (
            isinstance(answer, dict)
            and answer.keys() == truth.keys()
            and all(same(answer[key], truth[key], digits, tolerance) for key in truth)
        )
    return bool(answer == truth)


def _normal(value: Any, unwraps: int, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _of_text(value, unwraps, depth)
    if isinstance(value, int):
        return value if value.bit_length() < 1000 else "inf"  # comparable with floats, and Python can write it
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else str(value)
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if depth and isinstance(value, (list, tuple)):
        return [_normal(item, unwraps, depth - 1) for item in value]
    if depth and isinstance(value, Mapping):
        return {_key(key): _normal(item, unwraps, depth - 1) for key, item in value.items()}
    return None


def _of_text(text: str, unwraps: int, depth: int) -> Any:
    bare = text.strip()
    value = _within(bare)
    if isinstance(value, str) and value == bare:
        return valid(bare)
    return _normal(value, unwraps - 1, depth) if unwraps else None


def _within(bare: str) -> Any:
    """The value that a text is, or the text within its fence or quotes, or else itself."""
    if bare[:6].lower() in ("true", "false"):
        return bare.lower() == "true"
    unfenced = _unfenced(bare)
    if unfenced != bare:
        return unfenced
    value = read(bare)
    if value is not NOTHING:
        return value
    return bare[1:-1] if len(bare) > 1 and QUOTES.get(bare[0]) == bare[-1] else bare


def _unfenced(text: str) -> str:
    if len(text) < 6 or not (text.startswith("```") and text.endswith("```")):
        return text
    tag, line_break, rest = text[3:-3].partition("\n")
    tagged = line_break and rest.strip() and _TAG.fullmatch(tag)
    return (rest if tagged else text[3:-3]).strip()


def _key(key: Any) -> str:
    if isinstance(key, str):
        return valid(key.strip())
    plain = _normal(key, 0, 0) if isinstance(key, (int, float)) else key
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer.

    Attributes:
        words: the form in words, for the agent.
        schema: the form as JSON Schema, of which `type`, `items`, `additionalProperties` and `enum` are used.
    """

    words: str
    schema: Mapping[str, Any]

    def fits(self, value: Any) -> bool:
        """Whether a value in normal form has this form."""
        return _fits(value, self.schema)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    kind = schema["type"]
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool) != (kind == "boolean"):
        return False
    inner = schema.get("items") or schema.get("additionalProperties")
    each = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return inner is None or all(_fits(item, inner) for item in each)


def one_of(names: Sequence[str]) -> AnswerForm:
    """The form of an answer that is one of several names."""
    return AnswerForm("one word", {"type": "string", "enum": list(names)})


_NUMBERS = {"type": "array", "items": {"type": "number"}}
INTEGER = AnswerForm("one integer", {"type": "integer"})
NUMBER = AnswerForm("one number", {"type": "number"})
TEXT = AnswerForm("one word", {"type": "string"})
TRUTH = AnswerForm("true or false", {"type": "boolean"})
INTEGERS = AnswerForm("a JSON list of integers", {"type": "array", "items": {"type": "integer"}})
NUMBERS = AnswerForm("a JSON list of numbers", _NUMBERS)
ROWS = AnswerForm("a JSON list of lists of numbers", {"type": "array", "items": _NUMBERS})
TABLE = AnswerForm("a JSON object of numbers", {"type": "object", "additionalProperties": {"type": "number"}})


_EXAMPLES: Mapping[str, tuple[Any, ...]] = {
    json.dumps(form.schema): values
    for form, values in (
        (INTEGER, (12, -3, 0)),
        (NUMBER, (2.5, 12, -0.75)),
        (TEXT, ("amber", "n17")),
        (TRUTH, (True, False)),
        (INTEGERS, ([3, 1, 2], [7], [])),
        (NUMBERS, ([0.5, 2, -1.25],)),
        (ROWS, ([[1, 2], [3, 4.5]],)),
        (TABLE, ({"0": 1, "7": 2.5},)),
    )
}
"""Form → values that have it."""


MARKER = "Final answer:"
"""What announces an answer in a reply that may reason first."""


@dataclass(frozen=True, slots=True)
class Answer(Reply):
    """A final answer given as text. The action is its normal form.

    An answer of another form than the task asks for (`1,202` for a number, a sentence for a name) is refused with the
    reason, so that the agent can correct it.

    Attributes:
        form: the form that the task asks for.
        marker: what announces the answer in a longer reply, in any case; the last one counts. A reply without it is the
            answer itself, on a single line if it is text.
    """

    form: AnswerForm
    marker: str | None = None

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The value, after the marker."""
        is_word = self.form.schema.get("type") == "string" and "enum" not in self.form.schema
        schema = {**self.form.schema, "pattern": NO_NUMBER} if is_word else self.form.schema
        return (ReplyField("answer", self.marker or "", schema, words=self.form.words),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Values of the form."""
        return tuple(_EXAMPLES.get(json.dumps(self.form.schema), ())) or tuple(self.form.schema.get("enum", ()))

    def parse(self, text: str) -> Parsed:
        """The value of `text`. An error only if there is none."""
        bare = unfenced(strip_reasoning(text))
        if (read := self._reader()) is not None:
            shown = plain(bare)
            places = places_of(shown, read, self.marker)
            is_value = not places and isinstance(normalize(bare), (bool, list, dict))
            is_worded = self.form.schema != TEXT.schema
            said = self.marker and next(markers(bare, self.marker), None) is not None
            if not is_worded and not places and (said or declines(bare)):
                return Parsed(error=self._complaint(None))
            if places or (self.marker and is_worded and not is_value):
                names = tuple(self.form.schema.get("enum", ()))
                found = read_option(bare, names, self.marker) if names else answer_at(shown, places, read)
                is_spelled = places or not isinstance(found, str) or found in bare
                return Parsed(found) if self._is_answer(found) and is_spelled else Parsed(error=self._complaint(found))
        values: dict[str, Any] = {}
        copied = self.marker is not None and is_placeholder(_behind(self.marker, bare) or "")
        for statement in () if copied else self._statements(bare):
            if statement not in values:
                values[statement] = value = normalize(statement)
                if self._is_answer(value) and self._is_clear(statement):
                    return Parsed(value)
        answer = _behind(self.marker, bare) if self.marker else None
        whole = bare if answer is None else answer
        value = values[whole] if whole in values else normalize(whole)
        return Parsed(error=self._complaint(value))

    def _complaint(self, value: Any) -> str:
        """What is wrong with a value."""
        names = self.form.schema.get("enum")
        where = f" behind '{self.marker}'" if self.marker else ""
        if value is None or value == "" or (isinstance(value, str) and "\n" in value):
            return f"the answer cannot be read; it must be {self.form.words} and nothing else{where}"
        excerpt = json.dumps(value, ensure_ascii=False)
        form = f"one of {', '.join(names)}" if names else self.form.words
        return f"the answer must be {form} and nothing else{where}; {excerpt:.80} is not"

    def _reader(self) -> Callable[[str, bool], Stated[Any]] | None:
        """What reads a line that says a number or one of some names; None for other forms."""
        if "enum" in self.form.schema and all(isinstance(one, str) for one in self.form.schema["enum"]):
            return options_of(tuple(self.form.schema["enum"])).read
        if self.form.schema == TEXT.schema:
            return words_of
        return Numbers().read if self.form.schema.get("type") in ("integer", "number") else None

    def _statements(self, text: str) -> Iterator[str]:
        """What may be the answer, the likeliest first. A whole object or list is, whatever its keys are."""
        answer = _behind(self.marker, text) if self.marker else None
        if answer is not None:
            yield answer if self.form.schema.get("type") in ("object", "array") else answer.strip("[]<> ")
            yield answer.partition("\n")[0].strip(" *_`.")
        if self.form.schema.get("type") in ("object", "array"):
            yield text
        if (field := field_of(text, *ANSWER)) is not None:
            yield field.value.strip(" \t\r\n*_")
        if self.form.schema.get("type") == "array":
            yield from lists_of(plain(answer if answer is not None else text))
        *said, last = endings(text)
        yield from said
        if self.form.schema != TEXT.schema or self.marker is None:
            yield text
            if self.form.schema.get("type") != "string" or len(last.split()) == 1:  # a sentence is not a word
                yield last
        elif (words := only_words(text)) is not None:
            yield words

    def _is_answer(self, value: Any) -> bool:
        is_one = value is not None and value != "" and not (isinstance(value, str) and "\n" in value)
        is_one = is_one and not (isinstance(value, str) and is_placeholder(value))
        return is_one and self.form.fits(value)

    def _is_clear(self, statement: str) -> bool:
        """Whether a list has no commas that may be separators of thousands: "[1,200, 3,400]"."""
        return self.form.schema.get("type") != "array" or not (
            ", " in statement[: 4 * _WINDOW] and _GROUPED.search(statement[: 4 * _WINDOW])
        )

    def constraint(self) -> Mapping[str, Any]:
        """The form as JSON Schema."""
        return {"json": self.form.schema}


_GROUPED = re.compile(r"(?<![\d.])\d{1,3},\d{3}(?![\d.])")
_WINDOW = 500


def _behind(marker: str, text: str) -> str | None:
    """What follows the last marker, without what decorates it; None if there is none."""
    last = deque(markers(text, marker), 1)
    return text[last[0].end() :].strip(" \t\r\n*_") if last else None


@dataclass(frozen=True, slots=True)
class Integers(Reply):
    """A list of exactly `length` integers, as JSON or a Python literal (MAS-Bench, Appendix F.4).

    Truth values, text and numbers with a fraction are not integers.
    """

    length: int

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The list."""
        return (ReplyField("answer", "", {**INTEGERS.schema, "minItems": self.length, "maxItems": self.length}),)

    @property
    def examples(self) -> tuple[Action, ...]:
        """Lists of this length."""
        return (list(range(self.length)), [7 - 3 * i for i in range(self.length)])

    def parse(self, text: str) -> Parsed:
        """The list. An error says what is wrong with it."""
        value = read(text.strip())
        form = f"a list of exactly {self.length} integers is needed, written like [<number>, …]"
        if not isinstance(value, list) or not text.lstrip().startswith("["):
            return Parsed(error=f"{form}; this is no list: {text.strip()!r:.80}")
        strange = next((item for item in value if type(item) is not int), None)
        if strange is not None or None in value:
            return Parsed(error=f"{form}; {strange!r:.80} in it is no integer")
        if len(value) != self.length:
            return Parsed(error=f"{form}; this one has {len(value)}")
        return Parsed(value)

    def constraint(self) -> Mapping[str, Any]:
        """The list as JSON Schema."""
        return {"json": {**INTEGERS.schema, "minItems": self.length, "maxItems": self.length}}
