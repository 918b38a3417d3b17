r"""A mathematical answer in a box: `\boxed{\frac{1}{2}}`."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.api import Action, Parsed, Reply, ReplyField
from harness.replies.characters import first_word, is_placeholder, says_nothing, valid
from harness.replies.extract import ANSWER, stated
from harness.replies.json_fields import broken_object, json_fields
from harness.replies.literals import masked
from harness.replies.statements import LABEL, boxes, declines, labelled, last_statement
from harness.replies.strip_reasoning import strip_reasoning

from .mathematics import math_canonical

MAX_LINE = 120
"""Characters of a line without a box that can be an answer."""
MAX_BOX = 2000
_PLACEHOLDERS = frozenset(
    ("", "?", "...", "…", "\\ldots", "\\dots", "answer", "your answer", "final answer", "your final answer")
)
_SENTENCE = re.compile(r"(?<!\bno)[.!?](?=\s+[A-Z\"'(]|\s*$)|\s+(?=I hope\b|because\b|since\b|which\b)")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]")
_MATHEMATICAL = re.compile(r"[\d\\=+*/^_(){}\[\]<>-]|\A(?:yes|no|true|false)\Z", re.IGNORECASE)
_CODE = re.compile(
    r"(?<![\w\\])(?:print|return|def|import|assert|input|len|str|int|float|range|printf)\b[ \t]*[(\w\"']"
)
_ANSWER_KEY = re.compile(
    r"(?:[\"'“”„‘`][ \t]*+(?:final_)?answer[ \t]*+[\"'”’“`]|\{\s*answer)[ \t]*+[:：]", re.IGNORECASE
)
_MEMBER = re.compile(r"[\s{,\[]*+[\"'“”„‘`][\w \t-]{1,60}+(?:[\"'”’“`]\s*+[:：]|\Z)")
"""A line that is a member of a JSON object."""
_FENCE = re.compile(r"^[ \t]*`{3,}[ \t]*(\w*)", re.MULTILINE)
_PLAIN_FENCES = ("", "text", "txt", "plaintext", "markdown", "md", "math", "latex", "tex", "xml", "json", "yaml")
_DIGIT = re.compile(r"\d")
_ALPHANUMERIC = re.compile(r"[^\W_]")
_LEAD = re.compile(
    r"(?:(?:so|thus|therefore|hence|then|finally|overall|altogether|in total|we (?:get|have|find|obtain)"
    r"|I (?:get|find)"
    r"|that|this|it|is|equals?|gives|makes|yields|must be)\b[,:]?[\s*_]*)+",
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"(?<![\w\\])(?:is|are|equals?|gives?|yields?|get|obtain|find|makes?|leaves?|must be"
    r"|should be)(?![\w'’])[ \t]*:?(?=[ \t*_`]*[^ \t*_`])"
    r"(?!(?:[ \t*_`]*)(?:not|the|an?|that|to|no|in|at)\b)",
    re.IGNORECASE,
)
"""The verb of a sentence that ends with an answer."""
_TEXT = re.compile(r"\\text\{[^{}]*\}|\\[A-Za-z]+")
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{3,}")


@dataclass(frozen=True, slots=True)
class Boxed(Reply):
    r"""A mathematical answer. The action is its text as it was written, without the box; see `math_canonical`.

    The rules, in order:

    1. the last closed `\boxed{…}` or `\fbox{…}` that is neither empty nor a placeholder (`\boxed{...}`), or `\boxed 5`;
       of boxes within boxes the inmost content counts;
    2. what follows the last label ("the final answer is", "Answer:", in any case, bold or not), on its line or
       the next: the formula in dollars that it begins with, else the sentence, at most `MAX_LINE` characters;
    3. the last line, if it looks mathematical: at most `MAX_LINE` characters, with a digit, a command, or one of
       = + - * / ^ _ < > and brackets, or yes, no, true, false and nothing else, and with at most two plain words; words
       such as "therefore" or "it equals" before it are left out. Code is not an answer.

    In a JSON object the field `answer` or `final_answer` is read, by these rules or as what follows a label. Only
    a box or a label outside of all objects comes before it. What such an object says besides is not an answer.

    A text that only says that there is no answer ("I have no idea", "No answer", "N/A", "unknown") is none, in a box
    and after a label too. "None" and "no solution" are answers in a box and after a label. Thinking is left out.
    """

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The formula."""
        return (ReplyField("answer"),)

    def written(self, action: Action) -> str:
        """The formula in a box."""
        return f"\\boxed{{{action}}}"

    @property
    def examples(self) -> tuple[Action, ...]:
        """Numbers and formulas."""
        return ("42", "\\frac{1}{2}", "x^2+1", "(3, 4)", "-7", "1{,}234")

    def parse(self, text: str) -> Parsed:
        r"""The answer's text."""
        text = strip_reasoning(text)
        broken, cut_off = broken_object(text)
        member = _member(text) if first_word(text, ("answer",)) >= 0 and _ANSWER_KEY.search(text) else ""
        outside = masked(text) if member else text
        prose = _without_code(outside) if "```" in outside else outside
        answer = (member if broken else "") or _boxed(outside) or _labelled(prose) or member
        answer = answer or stated(prose, ANSWER, _stated) or ""
        if not answer and not cut_off:
            answer = _mathematical_line(prose)
        if answer:
            return Parsed(valid(answer))
        return Parsed(error="no final answer was found; end with the answer in a box, \\boxed{}")

    def well_formed(self, text: str) -> bool:
        """Whether there is a box."""
        return bool(_boxed(strip_reasoning(text)))

    def constraint(self) -> Mapping[str, Any]:
        """Any work, then a box of up to 200 characters at the end."""
        return {"regex": r"(.|\n)*\\boxed\{[^\n]{1,200}\}"}


def _member(text: str) -> str:
    """The answer that a field of a JSON object gives."""
    fields = json_fields(text, ("final_answer", "answer"))
    value = next(iter(fields.values()), None)
    said = value if isinstance(value, str) else "" if value is None else json.dumps(value)
    return _boxed(said) or _labelled(said) or _mathematical_line(said) or _stated(said)


def _boxed(text: str) -> str:
    for _, content in reversed(boxes(text)):
        for _ in range(8 if len(content) <= 20 * MAX_BOX else 0):
            inner = boxes(content)
            if len(inner) != 1 or not content.startswith(("\\boxed", "\\fbox")):
                break
            content = inner[0][1]
        bare = content.strip("$ ").removeprefix("\\text{").removesuffix("}").strip("[]<> ").lower()
        if len(content) <= MAX_BOX and bare not in _PLACEHOLDERS and _says_something(content):
            return content
    return ""


def _says_something(answer: str) -> bool:
    r"""Whether anything is left of an answer in its normal form; of `\boxed{}` and `{\,}` nothing is."""
    return not (declines(answer) or is_placeholder(answer)) and (
        _DIGIT.search(answer) is not None or not says_nothing(math_canonical(answer))
    )


def _labelled(text: str) -> str:
    return next((answer for statement in labelled(text) if (answer := _stated(statement))), "")


def _stated(statement: str) -> str:
    """The answer that a line after a label begins with."""
    statement = statement[: 4 * MAX_LINE].strip().removeprefix("that ")
    formula = _FORMULA.match(statement)
    if formula:
        answer = next(part for part in formula.groups() if part).strip()
        return answer if _says_something(answer) else ""
    cut = _SENTENCE.search(statement)
    statement = statement[: cut.start()] if cut else statement
    statement = statement.strip(" \t*_`:").rstrip(",;.")
    if (
        len(statement) > MAX_LINE
        or _plain_words(statement) > 4
        or statement.lower() in _PLACEHOLDERS
        or LABEL.search(statement)
    ):
        return ""
    return statement if _says_something(statement) else ""


def _mathematical_line(text: str) -> str:
    line = last_statement(text)[: 2 * MAX_LINE]
    line = line.strip(" \t*_`").rstrip(".;,*_`")
    if (says := deque(_SAYS.finditer(line), 1)) and _plain_words(line[: says[0].start()]):
        line = line[says[0].end() :].strip(" \t*_`")
    lead = _LEAD.match(line)
    line = line[lead.end() :] if lead else line
    line = line.strip(" \t*_`") if lead else line
    sound = (
        _ALPHANUMERIC.search(line) and _MATHEMATICAL.search(line) and "\\boxed" not in line and not _CODE.search(line)
    )
    sound = sound and not (declines(line.rpartition(":")[2]) or is_placeholder(line)) and not _MEMBER.match(line)
    return line if sound and len(line) <= MAX_LINE and _plain_words(line) <= 2 else ""


def _without_code(text: str) -> str:
    """The text without fences of a programming language."""
    kept, at, code, inside = list[str](), 0, False, False
    for fence in _FENCE.finditer(text):
        if not inside:
            kept.append(text[at : fence.start()])
            code = fence[1].lower() not in _PLAIN_FENCES
        elif not code:
            kept.append(text[at : fence.start()])
        inside, at = not inside, fence.end()
    return "\n".join([*kept, "" if inside and code else text[at:]])


def _plain_words(line: str) -> int:
    return len(_WORD.findall(_TEXT.sub(" ", line)))
