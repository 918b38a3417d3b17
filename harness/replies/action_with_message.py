"""A message, alone or beside an action: `MESSAGE: I take my left fork` and `ACTION: GRAB_LEFT`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField

from .characters import WRAPPING, Parsing, before_separator, is_placeholder, literal, valid
from .contract import Contract, Value
from .extract import field_of
from .fields import Statement, line_end
from .members import text_in
from .strip_reasoning import strip_reasoning, unfenced

_NOTHING = frozenset({"", "none", "n/a", "na", "-", "–", "—", "null", "no message", "nothing"})
_TEMPLATE = re.compile(r"\[[^\]]{0,80}\bor [\"'“‘]none[\"'”’]\]", re.IGNORECASE)
"""The prompt's own placeholder, echoed: [Short message, or "None"]."""
_ELEMENT = re.compile(r"<(\w{1,40})>([^<>]*)</\1>")
_FENCED = re.compile(r"\A\s*+`{3,}\w*+[ \t]*+\n(.*)\n[ \t]*`{3,}\s*\Z", re.DOTALL)
_RULE = re.compile(r"^[ \t]*+(?:-{3,}|={3,}|_{3,}|\*{3,})[ \t]*+$", re.MULTILINE)
_CONSTRAINED = 200
"""Characters of a message that constrained decoding allows where no other limit is set."""


@dataclass(frozen=True, slots=True)
class MessageLine(Reply):
    """One line for the other agents, after its label. The action is the text, or None for silence.

    The tolerant mode takes the last label's line, or the line below if the label stands alone, without quotes and
    brackets around it. Without such a label a message counts that is named in another way: in a JSON object, an
    element, under a heading, after a dash, with words such as "to my neighbors" after the label. A fence below a
    label or heading encloses the message; an object with one text, {"text": "…"}, says that text. Blanks and control
    characters become single blanks, so a message never breaks out of the line in which other agents see it. none, n/a,
    - and the like are silence.

    Attributes:
        label: what announces the message.
        max_chars: longer messages are cut to this many characters; None for no limit.
        parsing: "reference" is DPBench's own code: the first label, in any case and also inside a word; the rest of the
            line (of the next one that is not empty), up to `until:`; quotes stay, so that "None" in quotes is a
            message.
        until: the label of what may follow on the same line.
    """

    label: str = "MESSAGE"
    max_chars: int | None = None
    parsing: Parsing = "tolerant"
    until: str = "ACTION"

    def allows(self, action: Action) -> bool:
        """A text within `max_chars`, or None."""
        if action is None:
            return True
        return isinstance(action, str) and (self.max_chars is None or len(action) <= self.max_chars)

    @property
    def name(self) -> str:
        """The label in small letters."""
        return self.label.lower()

    @property
    def words(self) -> str:
        """What a message is."""
        return "one line of text"

    @property
    def schema(self) -> Facts:
        """A text, of limited length."""
        return {"type": "string", **({"maxLength": self.max_chars} if self.max_chars else {})}

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The message, after its label."""
        return (ReplyField(self.name, f"{self.label}:", self.schema, required=False),)

    def says(self, action: Action) -> Facts:
        """The message; the word None is silence."""
        return {self.name: "None" if action is None else action}

    @property
    def examples(self) -> tuple[Action, ...]:
        """A message each of a few words, with marks, and none."""
        return tuple(text[: self.max_chars] for text in ("I go first.", "Let us wait - you take it: now", "We agree!"))

    def parse(self, text: str) -> Parsed:
        """The message. A reply without the label is an error, the word none is not."""
        stated = self.field(text if self.parsing == "reference" else unfenced(strip_reasoning(text)))
        if stated is None:
            return Parsed(error=f"no line '{self.label}:' was found; write one, or '{self.label}: None'")
        return Parsed(self.read(stated.value))

    def constraint(self) -> Mapping[str, Any]:
        """The label and one line."""
        return {"regex": f"{literal(self.label)}: {self.pattern()}"}

    def pattern(self) -> str:
        """A regular expression for a message."""
        return f"[^\\n]{{1,{self.max_chars or _CONSTRAINED}}}"

    def field(self, text: str) -> Statement | None:
        """The message in `text`, without its thinking; None if there is none."""
        if self.parsing == "reference":
            match = re.search(rf"{re.escape(self.label)}:\s*", text, re.IGNORECASE)
            if match is None:
                return None
            end = line_end(text, match.end())
            until = re.compile(rf"{re.escape(self.until)}\s*:", re.IGNORECASE)
            next_label = until.search(text, min(match.end() + 1, end), end)
            end = next_label.start() if next_label else end
            return Statement(text[match.end() : end], match.end(), end)
        return field_of(text, self.label)

    def read(self, raw: str) -> str | None:
        """The message, from the text between label and end of line."""
        if self.parsing == "reference":
            text = raw.strip()
            return None if text.lower() in ("none", "n/a", "-", "") else valid(text)[: self.max_chars]
        raw = _before_rule(_FENCED.sub(r"\1", raw))
        raw = said if (said := text_in(raw)) is not None else raw
        text = valid(raw)
        text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
        text = _unframed(" ".join(text.split()).strip(" *_`|").removeprefix("> "))
        if _TEMPLATE.fullmatch(text) or is_placeholder(text):
            return None
        if (wrapped := _ELEMENT.fullmatch(text)) is not None:
            text = wrapped[2].strip()
        if len(text) > 1 and text[0] + text[-1] in ('""', "''", "“”", "‘’", "«»", "[]", "()", "<>"):
            text = text[1:-1].strip()
        return None if text.strip(WRAPPING).casefold() in _NOTHING else text[: self.max_chars]


def _before_rule(raw: str) -> str:
    """What stands above a rule; a rule above all of it is left out."""
    parts = _RULE.split(raw)
    return next((part for part in parts if part.strip()), "")


def _unframed(text: str) -> str:
    """A message without bars of a table, braces that belong to what is around it, and what parts it from a label."""
    text = text.strip(" |\\")
    text = before_separator(text)
    last, first = (text.rfind("{"), text.rfind("}")), (text.find("{"), text.find("}"))
    opens, closes = last[0] > last[1], first[1] >= 0 and (first[0] < 0 or first[1] < first[0])
    return text.strip(" {}|") if opens or closes else text


@dataclass(frozen=True, slots=True)
class ActionWithMessage(Contract):
    """An action and, before it, a message: {"act": action, "message": text or None}.

    A reply without a message is silent; reading it with `line` tells it from one that says so.

    Attributes:
        act: the form of the action.
        line: the form of the message.
    """

    act: Reply = field()
    line: MessageLine = field()

    @property
    def beside(self) -> tuple[MessageLine, ...]:
        """The message."""
        return (self.line,)

    def compose(self, act: Action, said: Facts) -> Action:
        """Both in one mapping."""
        return {"act": act, "message": said.get(self.line.name)}

    def split(self, action: Action) -> tuple[Action, Facts]:
        """The act, and the message."""
        return action["act"], {self.line.name: action["message"]}

    def lead(self, one: Value) -> str:
        """The message's label."""
        return f"{self.line.label}:"

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The legal actions without a message."""
        acts = self.act.options
        return None if acts is None else tuple(self.compose(act, {}) for act in acts)

    @property
    def noop(self) -> Action:
        """The idle act without a message."""
        return self.compose(self.act.noop, {})

    def allows(self, action: Action) -> bool:
        """A legal act with a legal message."""
        return isinstance(action, Mapping) and set(action) == {"act", "message"} and Contract.allows(self, action)

    def unread(self, said: Facts) -> Action:
        """A message counts without an idle act too."""
        return None if said.get(self.line.name) is None else self.compose(self.act.noop, said)

    def value(self, one: Value, text: str) -> str | None:
        """The message."""
        return self.line.read(text)

    def parse(self, text: str) -> Parsed:
        """Both; an error only if there is no action."""
        if self.line.parsing != "reference":
            return Contract.parse(self, text)
        stated, act = self.line.field(text), self.act.parse(text)
        message = None if stated is None else self.line.read(stated.value)
        if act.error is None:
            return Parsed(self.compose(act.action, {self.line.name: message}))
        kept = self.compose(self.act.noop, {self.line.name: message}) if message else None
        return Parsed(error=act.error, fallback_action=kept)
