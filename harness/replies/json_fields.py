r"""Named values of a reply that should be one JSON object and often is not quite:

{"answer": "\frac{1}{2}", "reasoning": "It is "half", so …", 'confidence_level': 85%,}

The package json-repair would not do: it takes an answer or a message that was cut off for a whole one, makes a form
feed of `\frac`, and does not say where in a reply an object stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any

from ._escapes import unescape
from .characters import QUOTES, first_word
from .literals import NOTHING, NoValueError, objects, read, value_at

MAX_TEXT = 400_000
"""Characters of a reply that are searched: the last ones, where the answer should be."""

Candidate = tuple[int, int, dict[str, Any]]
"""An object: how many wanted keys it has, where it is, and the values of these keys."""


def json_fields(text: str, keys: Sequence[str]) -> dict[str, Any]:
    r"""The values of `keys` in the last JSON object of `text` that has them all, else the most of them.

    Read first as JSON, with single quotes, raw line breaks, trailing commas and Python's words allowed; where that
    fails, by the keys: a value reaches to the next member, the last one to the brace that closes the object, so that
    quotes and braces within a string and missing commas do no harm. A string that is never closed is not a value.
    Backslashes are read as `unescape` says: `\frac` is not a form feed. An object within one that has none of the keys
    is found too. Case of keys does not matter.

    Returns:
        key, spelled as in `keys` and in their order → value (str, int, float, bool, None, list or dict); keys that are
        nowhere are left out. Empty if there is no such object.
    """
    text = text[-MAX_TEXT:]
    by_folded = {key.casefold(): key for key in keys}
    best: Candidate = (0, 0, {})
    for candidate in chain(_as_json(text, by_folded), _by_keys(text, by_folded)):
        if candidate[:2] >= best[:2]:
            best = candidate
    return {key: best[2][key] for key in keys if key in best[2]}


def _as_json(text: str, keys: dict[str, str]) -> Iterator[Candidate]:
    """Objects that the parser of JSON reads."""
    for _, end, value in objects(text, unescape):
        for values in _with_keys(value, keys):
            yield len(values), end, values


def _with_keys(value: Any, keys: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The outermost mappings in `value` that have a wanted key."""
    if isinstance(value, dict):
        named = {keys[name]: v for k, v in value.items() if (name := k.strip().casefold()) in keys}
        if named:
            yield named
            return
        value = [*value.values()]
    for child in value:
        if isinstance(child, dict | list):
            yield from _with_keys(child, keys)


def _by_keys(text: str, keys: dict[str, str]) -> Iterator[Candidate]:
    """Objects distinguished by their keys alone: a key that comes again begins the next one."""
    if not keys or first_word(text, tuple(keys)) < 0:
        return
    begin = max(0, text.rfind("\n", 0, max(0, first_word(text, tuple(keys)))))
    found = _key_pattern(tuple(keys)).finditer(text, begin)
    matches = [(match, keys[key]) for match in found if (key := match[2].casefold()) in keys]  # "İ" matches an "i"
    start = 0
    values: dict[str, Any] = {}
    for (match, name), (after, next_name) in zip_longest(matches, matches[1:], fillvalue=(None, None)):
        assert match is not None and name is not None
        if name in values:
            yield len(values), start, values
            values = {}
        start = start if values else match.start()
        ends = next_name is None or next_name in {*values, name}
        value = _raw(text[match.end() : after.start() if after else len(text)], ends)
        if value is not NOTHING:
            values[name] = value
    if values:
        yield len(values), start, values


def fields_by_key(text: str, keys: Sequence[str]) -> tuple[dict[str, Any], int]:
    """(values, how many keys have none) of the object in `text` with the most keys, where it is not JSON.

    As the second way of `json_fields`: the value of a key that is cut off is none.
    """
    text, by_folded = text[-MAX_TEXT:], {key.casefold(): key for key in keys}
    if not by_folded:
        return {}, 0
    named = {match[2].casefold() for match in _key_pattern(tuple(by_folded)).finditer(text)}
    best = max(_by_keys(text, by_folded), key=lambda candidate: candidate[:2], default=(0, 0, {}))
    return best[2], len(named) - len(best[2])


BEFORE_KEY = r"(?:(?:^|[{,\n]|(?<=[\"'”’“`}\]]))[ \t]*+|(?<=\d)[ \t]++)"
"""What precedes a key: a brace, a comma or a line break, or where they lack the end of another value."""
_BEGINS = re.compile(r"\s*+(?:`{3,}\w*+\s*+)?(?:(?P<brace>\{)\s*+(?:[\"'“”„‘`]|\Z))")
_CLOSED = re.compile(r"(?:[\"'”’“`]|:\s*+[\w.+%-]++)\s*+,?+\s*+\}")


def broken_object(text: str) -> tuple[bool, bool]:
    """Whether a text begins, but for a fence, with a JSON object that no parser reads, and whether it is cut off too:
    no brace closes it."""
    begins = _BEGINS.match(text)
    if begins is None:
        return False, False
    try:
        value_at(text, begins.start("brace"), unescape)
    except NoValueError:
        return True, _CLOSED.search(text) is None
    return False, False


@lru_cache(maxsize=256)
def _key_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    any_of = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"{BEFORE_KEY}([\"'“‘”„`])[ \t]*+({any_of})[ \t]*+[\"'”’“`][ \t]*+[:：]\s*+", re.IGNORECASE)


def _raw(text: str, last: bool) -> Any:
    """The value that `text` begins with: it ends before another member, or, if `last`, with its object."""
    text = text.strip()
    quote = QUOTES.get(text[:1], "")
    if quote:
        if comment := _COMMENT.search(text, max(0, len(text) - 300)):
            text = text[: comment.start()]
        end = _end_of_string(text, quote, last)
        return unescape(text[1:end]) if end > 0 else NOTHING
    end, ended = _end_of_bare(text, last)
    whole = not last or ended or (len(text) > 1 and _CUT.search(text[-40:]) is None)
    text = text[:end].strip(" \t\r\n,")
    value = read(text) if text not in ("", "{", "[") else NOTHING  # as in nested objects that never close
    if isinstance(value, float) and not math.isfinite(value):
        return text
    if not whole or (value is NOTHING and last and end == len(text) and text[:1] in ("[", "{")):
        return NOTHING  # a list that is cut off
    return (unescape(text) or NOTHING) if value is NOTHING else value


_MEMBER = r",?+\s*+[\"'“”„‘`][\w \t-]{1,60}+[\"'”’“`][ \t]*+[:：]"
"""Where another member begins after a value; the comma may lack."""
_MEMBER_OR_CUT = rf"(?:{_MEMBER}|(?:,\s*+|\s++)[\"'“”„‘`][\w \t-]{{0,60}}+[\"'”’“`]?+\s*+\Z)"
"""The same, or one that is cut off in its key."""
_COMMENT = re.compile(r"\s*(?://|#)[^\n\"'”’]*+\Z")
_CUT = re.compile(r"[\d.+-]\Z")
"""The end of a number that may continue: the reply was cut off, or lacks its brace."""


def _end_of_string(text: str, quote: str, last: bool) -> int:
    """Where the string that begins `text` ends: at a quote before another member; if it is the `last` wanted one of its
    object, also at a quote before a brace that closes more than the string itself has opened, else at the last quote
    before a brace, else at one that ends the text; if it is not, else at the last quote; else -1."""
    depth, end = 0, -1
    member = _MEMBER_OR_CUT if last else _MEMBER
    ends = re.compile(rf"\\.|{re.escape(quote)}(?=\s*+,?\s*+\}}|(?P<member>{member}))|[{{}}]", re.DOTALL)
    for match in ends.finditer(text, 1):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
        elif match[0] == quote and (depth <= 0 if match["member"] else last):
            end = match.start()
            if depth <= 0:
                return end
    if not last:
        return text.rfind(quote)
    bare = text.rstrip(" \t\r\n,").removesuffix("```").rstrip()
    return end if end > 0 or len(bare) < 2 or not bare.endswith(quote) else len(bare) - 1


_BARE = {
    last: re.compile(rf"\\.|[{{}}]|(?<!\s)(?P<member>{member})|\n", re.DOTALL)
    for last, member in ((False, _MEMBER), (True, _MEMBER_OR_CUT))
}


def _end_of_bare(text: str, last: bool) -> tuple[int, bool]:
    """Where a value without quotes ends, and whether another member follows: before one; if it is the `last` wanted one
    of its object, even if a brace closes more than `text` has opened, or else the line ends."""
    depth = 0
    for match in _BARE[last].finditer(text):
        if match["member"] is not None:
            if depth <= 0 and match.start():
                return match.start(), True
            continue
        if not last and depth <= 0 and match[0] in "}\n":
            continue
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
        if depth < 0 or (depth == 0 and match[0] == "\n"):
            return match.start(), False
    return len(text), False
