r"""A field of a reply by its name, in whatever form the reply is written:

    MESSAGE: I go first          ### Message            <message>I go first</message>
    **MESSAGE** - I go first     I go first             {"message": "I go first", "action": "WAIT"}
    MESSAGE TO NEIGHBORS: …                             [MESSAGE] I go first

All forms find their fields here. A field is given with its place, so that what one field says is never read as another
one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from .characters import WRAPPING, beginning_with, first_word, has_any, marker_pattern
from .fields import EDGE, Statement, line_end
from .json_fields import json_fields
from .literals import masked, objects

T = TypeVar("T")

ANSWER = ("answer", "final answer", "preferred answer", "result", "solution")
"""Names under which replies give an answer."""
_TO = r"(?:[ \t_]+\(?(?:to|for)\b(?:(?![ \t][–—-]{1,2}[ \t])[^:：\n<>\"{}]){0,60}?)"
"""What may follow a name: "to my neighbors"."""
_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "message": ("nachricht", "消息", "信息", "メッセージ", "메시지", "mensaje", "mensagem", "messaggio", "сообщение"),
    "action": ("aktion", "行动", "动作", "行動", "アクション", "행동", "acción", "ação", "azione", "действие"),
    "confidence": (
        *("konfidenz", "sicherheit", "置信度", "信心", "確信度", "자신감", "신뢰도", "confiance", "confianza"),
        *("confiança", "fiducia", "уверенность", "certainty", "probability"),
        *("probability that this is correct", "confidence score", "confidence rating"),
        *("confidence in this answer", "confidence in my answer"),
    ),
}
"""Field → its name in other languages and words."""
_OBJECT_BELOW = re.compile(r"[\s*_]*+(?:`{3,}\w*+\s*+)?\{")


def stated(text: str, names: tuple[str, ...], read: Callable[[str], T | None]) -> T | None:
    """What `read` makes of a field that is in an object, an element, below a heading or after a dash.

    None if there is no such field, or another statement of it follows. What is on a line after a colon, each
    form reads by its own grammar.
    """
    field = field_of(text, *names) if _may_have(text, names, colon=False) else None
    if field is None or field.inline or _names(names).colon.search(text, field.end):
        return None
    return read(field.value.strip())


def fields_of(text: str, names: Sequence[str], lines: bool = True) -> dict[str, Any]:
    """Name → what the field of that name says, in a JSON object that has them, else wherever each stands.

    Fields that are nowhere are left out; with `lines` false also those that are on a line after a colon.
    """
    fields = json_fields(text, names)
    for name in names:
        if name not in fields and (field := field_of(text, name)) is not None and (lines or not field.inline):
            fields[name] = field.value.strip(WRAPPING)
    return fields


@lru_cache(maxsize=256)
def field_of(text: str, *called: str, others: tuple[str, ...] = (), whole: bool = False) -> Statement | None:
    """The field of a reply that has one of these names; None if it has none. Linear in the length of `text`.

    The first of these counts, of each the last one: a line `NAME: …`, also with words such as "to my neighbors" behind
    the name; a member of a JSON object, also of a broken one; an element; `NAME - …`, `[NAME] …`; a line that is only
    the name, with what is below it. What a JSON object or an element says is not a line of the reply. A label in
    the middle of a line counts where the field stands nowhere else.

    Args:
        text: the reply.
        called: the names.
        others: the names of those fields that may follow it, besides the known ones.
        whole: whether the field is a text of any lines: if another one follows below its line, all lines up to that are
            its own.
    """
    called = _in_all_languages(called)
    if not _may_have(text, called):
        return None
    from .field_continuation import fenced_block, lines_end, statement_below  # what only a reply with a label needs

    names = _names(called)
    spans, member = _in_objects(text, names) if "{" in text else ([], None)
    element = _element(text, names) if "<" in text else None
    hidden = [*spans, (element.start, element.end)] if element else spans
    lines = masked(text, hidden) if hidden else text
    first_words = _begins(called)[3]
    begin = text.rfind("\n", 0, max(0, first_word(text, first_words))) + 1
    starting = deque(names.starting.finditer(lines, begin), 1)
    label = starting[0] if starting else None
    if label is None and (within := deque(beginning_with(first_words, names.colon, lines, begin), 1)):
        clear = element or _dashed(text, lines, names, begin) or _headed(text, lines, names, begin, others)
        if clear is not None:  # the label is only mentioned, in what another field says
            return clear
        label = within[0]
    if label is not None:
        end = line_end(lines, label.end())
        if lines[label.end() : end].strip(WRAPPING) and fenced_block(lines, label.end()) is None:
            end = lines_end(lines, end, others) if whole else end
            return Statement(text[label.end() : end], label.end(), end, inline=True, label=label.start())
        bare = not lines[label.end() : end].strip(WRAPPING)
        if member is None and bare and text[label.end() : end].strip(WRAPPING):  # a message that is itself an object
            end = max([end, *(stop for start, stop in spans if label.end() <= start < end)])
            return Statement(text[label.end() : end], label.end(), end, inline=True, label=label.start())
    if member is None and "{" in text and (label is None or _OBJECT_BELOW.match(lines, label.end())):
        member = _in_broken_object(text, names)
    return (
        member
        or (statement_below(text, lines, label.end(), others) if label is not None else None)
        or element
        or _dashed(text, lines, names, begin)
        or _headed(text, lines, names, begin, others)
        or (Statement("", label.end(), label.end(), inline=True, label=label.start()) if label is not None else None)
    )


@lru_cache(maxsize=256)
def _in_all_languages(called: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for name in called for word in (name, *_ELSEWHERE.get(name.lower(), ()))))


def may_name(text: str, names: Sequence[str]) -> list[bool]:
    """Of each name of a field, whether its last word is anywhere in a text, which costs next to nothing to say."""
    low = text.lower()
    changed = len(low) != len(text)
    return [changed or has_any(low, _last_words(name)) for name in names]


@lru_cache(maxsize=1024)
def _last_words(name: str) -> tuple[str, ...]:
    return tuple({re.split(r"[ _-]", one.lower())[-1] for one in _in_all_languages((name,))})


_COLON = re.compile(r"(?:[ \t*_`]*\([^()\n]{1,30}\))?[ \t*_`)\]]*[:：]")


def _may_have(text: str, called: tuple[str, ...], colon: bool = True) -> bool:
    """Whether a name is in the text where a field begins; with `colon` also before a colon anywhere.

    Nearly all replies have none but after a colon: this is what reading them costs.
    """
    low = text.lower()
    if len(low) != len(text):  # a letter of which lower case has two
        return True
    words, frame, before, _ = _begins(called)
    for word in words:
        at = low.find(word)
        while at >= 0:
            end = at + len(word)
            is_label = _COLON.match(text, end) is not None
            if is_label and colon:
                return True
            mentioned = (is_label and text[at - 1 : at].isspace()) or not _may_begin(low, at, before)
            if not mentioned and frame.search(text, max(0, at - 60), at):
                return True
            at = low.find(word, end)
    return False


def _may_begin(low: str, at: int, before: tuple[str, ...]) -> bool:
    """Whether what precedes a name could be what precedes it where a field begins. Far faster than the pattern, which
    decides where it could."""
    lead = low[max(0, at - 60) : at].rstrip(" \t>#*_()0123456789.•-")
    return not lead or lead[-1] in "\n\"'“„‘`<[{|/" or lead[-1].isdigit() or lead.endswith(before)


@lru_cache(maxsize=64)
def _begins(called: tuple[str, ...]) -> tuple[tuple[str, ...], re.Pattern[str], tuple[str, ...], tuple[str, ...]]:
    """The last words of names, what precedes one that is not a word of a sentence, the words with which that may end,
    and the first words of names."""
    words = [re.split(r"[ _-]", name.lower()) for name in called]
    others = ("[ _-]?".join(map(re.escape, word[:-1])) for word in words)
    before = "|".join(dict.fromkeys(("public", "short", "final", "preferred", *others)))
    frame = rf"(?:^|[\n\"'“„‘`<\[{{|/])[ \t>#*_`(\[\d.)•|-]*(?:my[ \t]+)?(?:{before})?[ _-]?$"
    return (
        tuple(dict.fromkeys(word[-1] for word in words)),
        re.compile(frame, re.IGNORECASE),
        ("my", "public", "short", "final", "preferred", *(word[-2] for word in words if len(word) > 1)),
        tuple({word[0] for word in words}),
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """The patterns of one name."""

    colon: re.Pattern[str]
    starting: re.Pattern[str]
    dashed: re.Pattern[str]
    heading: re.Pattern[str]
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    key: re.Pattern[str]


@lru_cache(maxsize=64)
def _names(called: tuple[str, ...]) -> _Names:
    """The patterns of a field with these names, whose words may be joined in any way."""
    both = re.IGNORECASE | re.MULTILINE
    word = "|".join(re.escape(name).replace(r"\ ", "[ _-]?") for name in sorted(called, key=len, reverse=True))
    word = f"(?:{word})"
    colon = "|".join(marker_pattern(f"{name}:").pattern for name in called)
    element = rf"{word}(?:_(?:to|for)_\w{{1,40}})?"
    return _Names(
        re.compile(colon, re.IGNORECASE),
        re.compile(rf"{EDGE}(?:{colon}|{word}(?:{_TO}|[ \t*_`]*+\([^()\n]{{1,30}}\))[ \t*_`)]*+[:：])", both),
        re.compile(
            rf"{EDGE}(?:{word}{_TO}?[ \t*_`)]*+(?:[-–—=]+>|[–—=|→]|-(?=[ \t]))|(?<=\[){word}\])"
            r"[ \t*_`]*+(\S[^\n]*?)[ \t|]*$",
            both,
        ),
        re.compile(rf"{EDGE}{word}{_TO}?[ \t*_`#)\]:：]*+$", both),
        re.compile(rf"<[ ]?{element}(?:[ \t][^<>]{{0,200}})?>", re.IGNORECASE),
        re.compile(rf"<[ ]?/[ ]?{element}[ ]?>", re.IGNORECASE),
        re.compile(rf"(?:my|public|short)?{word}(?:s|text|(?:to|for)\w{{1,40}})?", re.IGNORECASE),
    )


def _in_objects(text: str, names: _Names) -> tuple[list[tuple[int, int]], Statement | None]:
    """Where the JSON objects of a text are, and the field of the last one that has it."""
    from .members import as_json, member_of  # what only a text with an object needs

    spans, field = [], None
    for start, end, value in objects(text):
        spans.append((start, end))
        if (member := member_of(value, names.key)) is not None:
            field = Statement(member[0], start, end, as_json(member[1]))
    return spans, field


def _in_broken_object(text: str, names: _Names) -> Statement | None:
    """The field after its key, where no parser of JSON reads the object."""
    from .members import in_broken_object

    found = in_broken_object(text, names.key)
    return None if found is None else Statement(*found)


def members_of(text: str, names: Sequence[str]) -> tuple[list[str], str] | None:
    """What `field_of` reads under each of these names, one after the other, and the text without them, where they are
    all members of its only object: parsed once. None for any other text."""
    named = "{" in text and "<" not in text and all(_may_have(text, (name,)) for name in names)
    found = list(objects(text)) if named else []
    if len(found) != 1:
        return None
    from .members import as_json, member_of

    start, end, rest = found[0]
    around, said = masked(text, [(start, end)]), list[str]()
    for name in names:
        if _may_have(around, (name,)) or (member := member_of(rest, _names((name,)).key)) is None:
            return None
        said, rest = [*said, member[0]], member[1]
    return said, f"{text[:start]}{as_json(rest)}{text[end:]}"


def _element(text: str, names: _Names) -> Statement | None:
    """The last element; one that is never closed ends with its line."""
    closing = deque(names.closing.finditer(text), 1)
    before = closing[0].start() if closing else len(text)
    opening = deque(names.opening.finditer(text, 0, before), 1)
    if not opening:
        return None
    end = before if closing else line_end(text, opening[0].end())
    return Statement(text[opening[0].end() : end], opening[0].start(), closing[0].end() if closing else end)


def _dashed(text: str, lines: str, names: _Names, begin: int) -> Statement | None:
    last = deque(names.dashed.finditer(lines, begin), 1)
    return Statement(text[last[0].start(1) : last[0].end(1)], *last[0].span()) if last else None


def _headed(text: str, lines: str, names: _Names, begin: int, others: tuple[str, ...] = ()) -> Statement | None:
    from .field_continuation import statement_below

    for heading in reversed(deque(names.heading.finditer(lines, begin), 9)):
        if heading[0].strip().isdigit():  # a value: a number is a heading only with marks
            continue
        if field := statement_below(text, lines, heading.end(), others):
            return field
    return None
