"""An answer with a confidence, as members of a panel give it."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from harness.api import Action, Facts, Parsed, Reply, as_text
from harness.replies.answers import PLACEHOLDER, without_examples
from harness.replies.characters import marker_pattern, says_nothing
from harness.replies.contract import Contract, Value
from harness.replies.extract import field_of
from harness.replies.fields import Statement
from harness.replies.json_fields import broken_object, fields_by_key, json_fields
from harness.replies.options import KEYS as ANSWERS
from harness.replies.statements import LABEL
from harness.replies.strip_reasoning import strip_reasoning, unfenced
from harness.replies.wrapped_reply import WrappedReply, has_fields

Style = Literal["none", "line", "json"]
"""How a confidence is stated: not at all, in a last line `Confidence: 0.8`, or as a field of one JSON object."""

KEYS = ("answer", "confidence", "malformed")
_NUMBER = re.compile(
    r"[~≈ ]*(\d{1,4}(?:[.,]\d{0,20})?|\.\d{1,20})"
    r"(?:\s*(?:(\\?%|percent)|(?:/|out of|of)\s*([1-9]\d{0,3})))?(?![\w/]|[.,]\d|[ \t]*(?:[-–—]|to\b)[ \t]*\d)",
    re.IGNORECASE,
)
_SURE = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{1,2})?)[ \t]?\\?%[ \t]+(?:confident|sure|certain)\b", re.IGNORECASE)
"""A confidence in a sentence: "I am 83% confident that …"."""
_PAIR = re.compile(
    r"(?:\A\s*|^[ \t>*_`#-]{0,8}(?P<label>answer[ \t]*(?:and|&|,)[ \t]*confidence[^:：\n]{0,30}[:：])[*_ \t]*)"
    r"(?P<answer>[^\n,:：]{1,80}),[ \t]*(?P<number>\d{1,3}(?:\.\d{1,2})?)[ \t]?(?(label)%?|%)[*_. \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
"""Both in one line: "Answer and Confidence (0-100): Lyon, 83%", or a reply that begins with "Lyon, 83%"."""
_LEAD = re.compile(
    "[*_`\"'“‘«()\\[\\]$ \t\r\n\u00a0]*"
    "(?:(?:very |quite |fairly )?(?:high|low|medium|moderate|certain|sure)[ \t]*[(,:–—-][ \t]*)?",
    re.IGNORECASE,
)
_ANYWHERE = marker_pattern("confidence:")


class _Confidence:
    """A number from 0 to 1."""

    name, words = "confidence", "a number from 0 to 1"
    schema: ClassVar[Facts] = {"type": "number", "minimum": 0, "maximum": 1}
    examples = (0.8, 0.35, 1.0)

    def allows(self, value: Any) -> bool:
        """Whether it is such a number."""
        return type(value) in (int, float) and 0 <= value <= 1

    def read(self, text: str) -> float | None:
        """The confidence that a text begins with."""
        return _first_confidence(text)

    def pattern(self) -> str:
        """Up to two decimals."""
        return r"(0\.[0-9]{1,2}|1\.0)"


_CONFIDENCE = _Confidence()


@dataclass(frozen=True, slots=True)
class AnswerWithConfidence(Contract, WrappedReply):
    """An answer in the form `inner`, and a confidence from 0 to 1 (DarkForest, Section 3.2).

    The action is {"answer": `inner`'s action, "confidence": number or None, "malformed": whether the reply was readable
    but not well-formed}. A plain answer is legal too, because policies need not state a confidence.

    "line": "Confidence: 0.85" on a line of its own, or as any other field of a reply, is removed before `inner` reads
    the rest. The last one that is a number counts, and none within a program does. "json": the answer is the text of
    the field `answer`; a reply without such an object is read as plain text, and is malformed. So is one that is not
    exactly one object of valid JSON, alone or in a fence: broken or cut-off JSON is read where its answer is whole, and
    what is cut off before its answer has none. A missing confidence does not make a reply malformed.
    """

    style: Style = "line"

    @property
    def act(self) -> Reply:
        """The form of the answer."""
        return self.inner

    @property
    def beside(self) -> tuple[_Confidence, ...]:
        """The confidence, if one is asked for."""
        return () if self.style == "none" else (_CONFIDENCE,)

    @property
    def place(self) -> int:
        """The answer comes first."""
        return 0

    def compose(self, act: Action, said: Facts) -> Action:
        """A well-formed answer."""
        return {"answer": act, "confidence": said.get("confidence"), "malformed": False}

    def split(self, action: Action) -> tuple[Action, Facts]:
        """The answer and the confidence."""
        if not _has_confidence(action):
            return action, {}
        return action["answer"], {} if self.style == "none" else {"confidence": action["confidence"]}

    def lead(self, one: Value) -> str:
        """What announces the confidence."""
        return "Confidence:"

    def allows(self, action: Action) -> bool:
        """A legal answer, alone or with a confidence from 0 to 1 or none."""
        if not _has_confidence(action):
            return self.inner.allows(action)
        number = action["confidence"]
        legal = number is None or _CONFIDENCE.allows(number)
        return legal and isinstance(action["malformed"], bool) and self.inner.allows(action["answer"])

    def written(self, action: Action) -> str:
        """The inner form's reply with the line below it; or one JSON object."""
        answer, number, _ = _parts(action)
        if self.style == "json":
            said = as_text(self.inner.says(answer).get("answer"))
            return json.dumps({"reasoning": "It follows.", "answer": said, "confidence": number}, ensure_ascii=False)
        return self.inner.written(answer) if number is None else Contract.written(self, action)

    def parse(self, text: str) -> Parsed:
        """The answer with its confidence; an error only if the inner form finds no answer."""
        text = strip_reasoning(text)
        if self.style == "none":
            return self._read(text, None, True)
        if self.style == "json" and (parsed := self._object(text)) is not None:
            return parsed
        text = unfenced(text)
        if self.style == "line" and (pair := _PAIR.search(text)) is not None:
            text = f"{text[: pair.start()]}Answer: {pair['answer']}\nConfidence: {pair['number']}%{text[pair.end() :]}"
        _, number, text = self.take(_CONFIDENCE, text)
        return self._read(text.rstrip(), number, self.style == "line")

    def stated(self, one: Value, text: str) -> Statement | None:
        """The last confidence that is a number, outside of programs; it ends where the answer follows on its line, if
        none is above: what is said of answers there is a reason, as in "85% (my earlier answer: 4 was wrong)"."""
        field = _confident(text)
        if field is None or not field.inline or (label := LABEL.search(field.value)) is None:
            return field
        follows = _announces(label) and not any(map(_announces, LABEL.finditer(text, 0, field.label)))
        begins = label.start() if follows else len(field.value)
        return replace(field, value=field.value[:begins], end=field.start + begins)

    def statement(self, text: str) -> str:
        """The part of a reply that the inner form reads: in JSON the text of the field `answer`."""
        text = strip_reasoning(text)
        members = json_fields(text, ("answer",)) if self.style == "json" else {}
        return members["answer"] if isinstance(members.get("answer"), str) else text

    def well_formed(self, text: str) -> bool:
        """Whether a readable text is well-formed."""
        parsed = self.parse(text)
        return parsed.error is None and not parsed.action["malformed"]

    def constraint(self) -> Mapping[str, Any] | None:
        """The inner form's, followed by the line if it is a regular expression; or a JSON schema."""
        if self.style == "json":
            options = self.inner.options
            answer = {"enum": [str(option) for option in options]} if options else {"type": "string", "maxLength": 2000}
            fields = {
                "reasoning": {"type": "string", "maxLength": 4000},
                "answer": answer,
                "confidence": _CONFIDENCE.schema,
            }
            return {"json": {"type": "object", "properties": fields, "required": list(fields)}}
        inner = self.inner.constraint()
        if not self.beside or inner is None:
            return inner
        return Contract.constraint(self) or ({"json": self.json_schema} if "json" in inner else None)

    def _object(self, text: str) -> Parsed | None:
        """What the JSON object of a reply says; None if it has none with an answer."""
        text = without_examples(text)
        members = json_fields(text, ("answer", "confidence", "confidence_level"))
        if "answer" not in members:
            cut_off = fields_by_key(text, ("answer",))[1] > 0
            if cut_off or (broken_object(text)[1] and not any(fields_by_key(text, ANSWERS))):
                return Parsed(error="the field 'answer' is cut off")
            return None
        said = members["answer"]
        if (
            said is None
            or (isinstance(said, dict) and "type" in said)
            or says_nothing(str(said))
            or PLACEHOLDER.fullmatch(str(said))
        ):
            return Parsed(error="the field 'answer' is empty")
        answer = members["answer"] if isinstance(members["answer"], str) else json.dumps(members["answer"])
        number = confidence(members.get("confidence", members.get("confidence_level")))
        exact = _is_object(text)
        for statement in (answer, f"Final Answer: {answer}"):
            parsed = self.inner.parse(statement)
            if parsed.error is None:
                return Parsed({"answer": parsed.action, "confidence": number, "malformed": not exact})
        return Parsed(error=f"the field 'answer': {parsed.error}")  # other fields are not an answer

    def _read(self, text: str, number: float | None, keeps_form: bool) -> Parsed:
        """What the inner form reads; a text that does not keep to the style's own form is malformed in any case."""
        parsed = self.inner.parse(text)
        if parsed.error is not None:
            return Parsed(error=parsed.error)
        malformed = not (keeps_form and self.inner.well_formed(text))
        return Parsed({"answer": parsed.action, "confidence": number, "malformed": malformed})


def _is_object(text: str) -> bool:
    """Whether a text is one object of valid JSON and nothing else, but for a fence around it."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```") and len(bare) > 6:
        bare = bare[3:-3].strip().removeprefix("json")
    try:
        return isinstance(json.loads(bare, parse_constant=_refused), dict)
    except (ValueError, RecursionError):
        return False


def _refused(constant: str) -> None:
    """NaN and Infinity are not JSON."""
    raise ValueError(constant)


def split_confidence(action: Action) -> tuple[Action, float | None, bool]:
    """(answer, confidence, malformed) of an action of `AnswerWithConfidence`. A plain answer has no confidence.

    Of an answer with fields beside it the answer alone, and the confidence that a field of that name says.
    """
    answer, number, malformed = _parts(action)
    if has_fields(answer):
        return answer["act"], answer["said"].get("confidence"), malformed
    return answer, number, malformed


def _parts(action: Action) -> tuple[Action, float | None, bool]:
    return (*(action[key] for key in KEYS),) if _has_confidence(action) else (action, None, False)


def _has_confidence(action: Action) -> bool:
    return isinstance(action, Mapping) and set(action) == set(KEYS)


def _confident(text: str) -> Statement | None:
    """The field with the confidence, if it says a number; none of a program."""
    field = field_of(text, "confidence", "confidence level")
    if field is None:
        sure = deque(_SURE.finditer(text), 1)
        return Statement(f"{sure[0][1]}%", *sure[0].span(), instead="sure") if sure else None
    fences = [*_FENCE.finditer(text)]
    if _first_confidence(field.value) is not None and not _in_program(text, fences, field.start):
        return field
    if field.inline:  # in words there, and perhaps as a number further on, or on a line above
        end = len(text)
        for label in reversed([*_ANYWHERE.finditer(text)]):
            line = text.find("\n", label.end(), end)  # no further than the label that stands below or after this one
            end = end if line < 0 else line
            begins = label.start() >= field.start or _begins_line(text, label.start())
            number = _first_confidence(text, label.end(), end) if begins else None
            if number is not None and not _in_program(text, fences, label.start()):
                return Statement(text[label.end() : end], label.end(), end, inline=True, label=label.start())
    return None


def _announces(label: re.Match[str]) -> bool:
    """Whether a label has a colon: "Answer:", and not "the answer is"."""
    return label[0].rstrip(" \t*_`").endswith((":", "："))


def _begins_line(text: str, at: int) -> bool:
    """Whether nothing but a few marks precedes a place on its line."""
    _, newline, lead = (text[at - 12 : at] if at > 12 else f"\n{text[:at]}").rpartition("\n")
    return newline != "" and not lead.strip(" >*_#(-")


_FENCE = re.compile(r"^[ \t]*`{3,}[ \t]*(\w*)", re.MULTILINE)
_WHOLE = re.compile(r"\s*```")
_PLAIN = ("text", "txt", "json", "xml", "yaml", "markdown", "md")


def _in_program(text: str, fences: Sequence[re.Match[str]], place: int) -> bool:
    """Whether a place is in a fence of a programming language, or in an unnamed one beside other text."""
    before = bisect_left(fences, place, key=re.Match.start)
    if before % 2 == 0 or before == len(fences):  # what is below the last fence is meant, even if it is never closed
        return False
    if language := fences[before - 1][1].lower():
        return language not in _PLAIN
    return before > 1 or not (_WHOLE.match(text) and text.rstrip().endswith("```"))


def confidence(value: Any) -> float | None:
    """Return a stated confidence as a number from 0 to 1; None if it is none.

    A number, or text with one. Up to 1 it is taken as it is; from 10 to 100 it is a percentage (85 → 0.85), and with a
    percent sign it always is (1% → 0.01); "8/10" and "8 out of 10" are shares. Numbers between 1 and 10 are ambiguous
    and count as none; so do negative ones, those above 100, nan and truth values.

        >>> [confidence(c) for c in (0.9, "85%", 85, "1%", "8/10", "0,85", 1.2, "nan", -0.1, True)]
        [0.9, 0.85, 0.85, 0.01, 0.8, 0.85, None, None, None, None]
    """
    percent = whole = None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return None
        value, percent, whole = match[1].replace(",", "."), match[2], match[3]
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    if whole:
        number /= float(whole)
    elif percent or 10 <= number <= 100:
        number /= 100
    return number if 0 <= number <= 1 else None


def _first_confidence(text: str, start: int = 0, end: int | None = None) -> float | None:
    """A confidence out of the rest of its line: 0.85, 85%, "85 out of 100", 0.9 (quite sure)."""
    end = len(text) if end is None else end
    lead = _LEAD.match(text, start, end)
    match = _NUMBER.match(text, lead.end() if lead else start, end)
    return confidence(match[0]) if match else None
