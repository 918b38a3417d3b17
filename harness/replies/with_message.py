"""A message, alone or beside an action: `MESSAGE: I take my left fork` and `ACTION: GRAB_LEFT`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Facts, Parsed, Reply, ReplyField

from .aside import spoken, unfenced
from .characters import WRAPPING, Parsing, literal, marker_pattern, valid
from .extract import Statement, field_of, line_end, text_in

_NOTHING = frozenset({"", "none", "n/a", "na", "-", "–", "—", "null", "no message", "nothing"})
_TEMPLATE = re.compile(r"\[[^\]]{0,80}\bor [\"'“‘]none[\"'”’]\]", re.IGNORECASE)
"""The prompt's own placeholder, echoed: [Short message, or "None"]."""
_ELEMENT = re.compile(r"<(\w{1,40})>([^<>]*)</\1>")
_FENCED = re.compile(r"\A\s*+`{3,}\w*+[ \t]*+\n(.*)\n[ \t]*`{3,}\s*\Z", re.DOTALL)
_CONSTRAINED = 200
"""Characters of a message that constrained decoding allows where no other limit is set."""


@dataclass(frozen=True, slots=True)
class MessageLine(Reply):
    """One line for the other agents, after its label. The action is the text, or None for silence.

    The tolerant mode takes the last label's line, or the line below if the label stands alone, without quotes and
    brackets around it. Without such a label a message counts that is named in another way: in a JSON object, an
    element, under a heading, behind a dash, with words such as "to my neighbors" behind the label. A fence below a
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
    def fields(self) -> tuple[ReplyField, ...]:
        """The message, behind its label."""
        return (ReplyField(self.label.lower(), f"{self.label}:", required=False),)

    def says(self, action: Action) -> Facts:
        """The message; the word None is silence."""
        return {self.fields[0].name: "None" if action is None else action}

    @property
    def examples(self) -> tuple[Action, ...]:
        """A message each of a few words, with marks, and none."""
        return tuple(text[: self.max_chars] for text in ("I go first.", "Let us wait - you take it: now", "We agree!"))

    def parse(self, text: str) -> Parsed:
        """The message. A reply without the label is an error, the word none is not."""
        field = self.field(text if self.parsing == "reference" else unfenced(spoken(text)))
        if field is None:
            return Parsed(error=f"no line '{self.label}:' was found; write one, or '{self.label}: None'")
        return Parsed(self.message(field.value))

    def constraint(self) -> Mapping[str, Any]:
        """The label and one line."""
        return {"regex": self.pattern()}

    def pattern(self) -> str:
        """A regular expression for the line."""
        return f"{literal(self.label)}: [^\\n]{{1,{self.max_chars or _CONSTRAINED}}}"

    def field(self, text: str) -> Statement | None:
        """The message in `text`, without its thinking; None if there is none."""
        if self.parsing == "reference":
            match = re.search(rf"{re.escape(self.label)}:\s*", text, re.IGNORECASE)
            if match is None:
                return None
            end = self.line_end(text, match.end(), match.end() + 1)
            return Statement(text[match.end() : end], match.end(), end)
        return field_of(text, self.label)

    def line_end(self, text: str, start: int, after: int) -> int:
        """Where the line ends that `start` is in, or `until:` begins in it, not before `after`."""
        end = line_end(text, start)
        match = re.compile(rf"{re.escape(self.until)}\s*:", re.IGNORECASE).search(text, min(after, end), end)
        return match.start() if match else end

    def message(self, raw: str) -> str | None:
        """The message, from the text between label and end of line."""
        if self.parsing == "reference":
            text = raw.strip()
            return None if text.lower() in ("none", "n/a", "-", "") else valid(text)[: self.max_chars]
        raw = _FENCED.sub(r"\1", raw)
        raw = said if (said := text_in(raw)) is not None else raw
        text = " ".join("".join(c if c.isprintable() else " " for c in valid(raw)).split()).strip(" *_`")
        if _TEMPLATE.fullmatch(text):
            return None
        if (wrapped := _ELEMENT.fullmatch(text)) is not None:
            text = wrapped[2].strip()
        if len(text) > 1 and text[0] + text[-1] in ('""', "''", "“”", "‘’", "«»", "[]", "()", "<>"):
            text = text[1:-1].strip()
        return None if text.strip(WRAPPING).casefold() in _NOTHING else text[: self.max_chars]


@dataclass(frozen=True, slots=True)
class ActionWithMessage(Reply):
    """An action and, before it, a message: {"act": action, "message": text or None}.

    A reply without a message is silent; reading it with `line` tells it from one that says so. If the action is
    unreadable, the message still counts, with the idle act. The tolerant mode does not look for the action in the
    message, unless its label stands nowhere else (the reply is then a single line).

    Attributes:
        act: the form of the action.
        line: the form of the message.
    """

    act: Reply
    line: MessageLine

    @property
    def options(self) -> tuple[Action, ...] | None:
        """The legal actions without a message."""
        acts = self.act.options
        return None if acts is None else tuple({"act": act, "message": None} for act in acts)

    @property
    def noop(self) -> Action:
        """The idle act without a message."""
        return {"act": self.act.noop, "message": None}

    def allows(self, action: Action) -> bool:
        """A legal act with a legal message."""
        if not isinstance(action, Mapping) or set(action) != {"act", "message"}:
            return False
        return self.act.allows(action["act"]) and self.line.allows(action["message"])

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The message's and the act's."""
        return (*self.line.fields, *self.act.fields)

    def says(self, action: Action) -> Facts:
        """What both say."""
        return {**self.line.says(action["message"]), **self.act.says(action["act"])}

    def written(self, action: Action) -> str:
        """The message's line, then the act."""
        return f"{self.line.written(action['message'])}\n{self.act.written(action['act'])}"

    @property
    def examples(self) -> tuple[Action, ...]:
        """Acts with messages."""
        return tuple(
            {"act": act, "message": text} for act, text in zip(self.act.examples, itertools.cycle(self.line.examples))
        )

    def parse(self, text: str) -> Parsed:
        """Both; an error only if there is no action."""
        reference = self.line.parsing == "reference"
        text = text if reference else unfenced(spoken(text))
        field = self.line.field(text)
        act = self.act.parse(text if reference or field is None else field.rest(text))
        value = field.value if field is not None else ""
        if act.error is not None and field is not None and field.inline and self._only_within(field, text):
            end = self.line.line_end(text, field.start, field.start)
            act, value = self.act.parse(text[end:]), text[field.start : end]
        message = self.line.message(value)
        if act.error is not None:
            return Parsed(
                error=act.error, fallback_action={"act": self.act.noop, "message": message} if message else None
            )
        return Parsed({"act": act.action, "message": message})

    def _only_within(self, field: Statement, text: str) -> bool:
        """Whether the label of the action stands nowhere but in the message's line."""
        label = getattr(self.act, "label", None)
        return label is not None and not marker_pattern(f"{label}:").search(field.rest(text))

    def constraint(self) -> Mapping[str, Any] | None:
        """The message's line, then one of the act's own texts; None if the act has no such form."""
        allowed = self.act.constraint() or {}
        texts = [*map(literal, allowed.get("choice", ())), *(allowed[key] for key in ("regex",) if key in allowed)]
        return {"regex": f"{self.line.pattern()}\\n({'|'.join(texts)})"} if texts else None
