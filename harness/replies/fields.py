"""A field of a reply: where it stands, and how the next one begins."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

EDGE = r"^[ \t>#*_`([\d.)•|-]{0,12}(?:my[ \t]+)?"
"""What may precede a field's name on its line."""
_BEFORE = re.compile(EDGE.removeprefix("^"), re.IGNORECASE)
_KNOWN = (
    *("message", "action", "answer", "final answer", "confidence", "thinking", "thoughts?"),
    *("reasoning", "reasons?", "analysis", "plan", "explanation", "choice", "decision"),
    *("move", "vote", "ranking", "stance", "verdict", "rating", "response", "result"),
    *("my message", "my action", "my answer", "confidence level", "行动", "行動", "动作", "aktion"),
    *("acción", "antwort", "答案"),
)
"""Names of fields in the forms of this package and in replies to other prompts. Any other name before a colon may be
the beginning of what a field says: "P1: you take right."."""
KNOWN = re.compile("|".join(_KNOWN), re.IGNORECASE)
"""Any of these names."""


@lru_cache(maxsize=64)
def next_field(others: tuple[str, ...] = ()) -> re.Pattern[str]:
    """A line that begins another field: a heading, or one of these names or a known one as a label."""
    name = "|".join([*_KNOWN, *(re.escape(one).replace(r"\ ", "[ _-]?") for one in others)])
    label = rf"[>*_`#\[<| \t•-]{{0,10}}(?:my[ \t]+)?(?:{name})(?![^\W_])"
    return re.compile(
        r"[ \t]*(?:(?:so |thus |therefore |hence )?[*_]*(?:the |my )(?:final |correct |best )?(?:answer"
        r"|action|choice) (?:is|should|must)\b"
        r"|\\boxed|```|~~~|[{<]|"
        rf"#{{1,6}}[ \t]*[^\W\d]|{label}(?:[*_`\] \t]*[:：]|\*\*[ \t]*$|\][ \t]|>|[ \t]*$)|-{{3,}}[ \t]*$)",
        re.IGNORECASE | re.MULTILINE,
    )


@dataclass(frozen=True, slots=True)
class Statement:
    """A field of a reply.

    Attributes:
        value: what it says, as it was written; "" if a JSON object says null.
        start, end: what must be taken out of the text, so that the field is not there.
        instead: what replaces it: the other fields of a JSON object.
        inline: whether it is on a line after its name and a colon.
        label: where its name begins on that line.
    """

    value: str
    start: int
    end: int
    instead: str = "\n"
    inline: bool = False
    label: int = 0

    def rest(self, text: str) -> str:
        """The reply without the field."""
        return f"{text[: self.start]}{self.instead}{text[self.end :]}"

    def without(self, text: str) -> str:
        """The reply without the field, nor its name on its line."""
        if not self.inline:
            return self.rest(text)
        line = text.rfind("\n", 0, self.label) + 1
        begin = line if _BEFORE.fullmatch(text, line, self.label) else self.label
        return f"{text[:begin]}{self.instead}{text[self.end :]}"


def line_end(text: str, start: int) -> int:
    """Where the line ends that `start` is in."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end
