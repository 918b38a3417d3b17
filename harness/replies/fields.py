r"""Named values of a reply that should be one JSON object and often is not quite:

{"answer": "\frac{1}{2}", "reasoning": "It is "half", so …", 'confidence_level': 85%,}
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ._escapes import unescape
from .literals import NOTHING, read

MAX_TEXT = 400_000
"""Characters of a reply that are searched: the last ones, where the answer should be."""
MAX_DEPTH = 64

_BLANKS = re.compile(r"\s*+")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"|\'((?:[^\'\\]|\\.)*+)\'', re.DOTALL)
_ATOM = re.compile(r"[^\s,\[\]{}\"']++")
_OPENING = re.compile(r'\{\s*+["\']')
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_SHARE = re.compile(r"(\d{1,4}(?:\.\d{1,4})?)\s*(?:/|out of|of)\s*([1-9]\d{0,3})")
_COMMA = re.compile(r"^(\d),(\d{1,6})$")
_PERCENT = re.compile(r"\s*(?:%|percent)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    """An object: where it begins and ends, and what it has of the wanted keys."""

    start: int
    end: int
    values: dict[str, Any]


def json_fields(text: str, keys: Sequence[str]) -> dict[str, Any]:
    r"""The values of `keys` in the last JSON object of `text` that has them all, else the most of them.

    Read first as JSON, with single quotes, raw line breaks, trailing commas and Python's words allowed; where that
    fails, by the keys: a value reaches to the next wanted key, the last one to the brace that closes the object, so
    that quotes and braces within a string do no harm. A string that is never closed is no value. Backslashes are read
    as `unescape` says: `\frac` is no form feed. An object within one that has none of the keys is found too. Case of
    keys does not matter.

    Returns:
        key, spelled as in `keys` and in their order → value (str, int, float, bool, None, list or dict); keys that are
        nowhere are left out. Empty if there is no such object.
    """
    text = text[-MAX_TEXT:]
    by_folded = {key.casefold(): key for key in keys}
    exact = _best(_objects(text, by_folded))
    loose = _best(_by_keys(text, by_folded))
    best = exact or loose
    if exact and loose and (len(loose.values), loose.start) >= (len(exact.values), exact.end):
        best = loose
    return {key: best.values[key] for key in keys if key in best.values} if best else {}


def confidence(value: Any) -> float | None:
    """Return a stated confidence as a number from 0 to 1; None if it is none.

    A number, or text with one. Up to 1 it is taken as it is; from 10 to 100 it is a percentage (85 → 0.85), and with a
    percent sign it always is (1% → 0.01); "8/10" and "8 out of 10" are shares. Numbers between 1 and 10 are ambiguous
    and count as none; so do negative ones, those above 100, nan and truth values.

    >>> [confidence(c) for c in (0.9, "85%", 85, "1%", "8/10", "0,85", 1.2, "nan", -0.1, True)]
    [0.9, 0.85, 0.85, 0.01, 0.8, 0.85, None, None, None, None]
    """
    percent, whole = False, 1.0
    if isinstance(value, str):
        value = value[:100].strip().lstrip("~≈ ")
        percent = bool(_PERCENT.search(value))
        value = _PERCENT.sub("", value) if percent else value
        share = _SHARE.fullmatch(value)
        value, whole = (share[1], float(share[2])) if share else (_COMMA.sub(r"\1.\2", value), whole)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number) or number < 0:
        return None
    if percent or whole != 1:
        number /= 100 if percent else whole
    elif 10 <= number <= 100:
        number /= 100
    return number if number <= 1 else None


def _best(candidates: Iterator[_Found]) -> _Found | None:
    """The last with the most keys."""
    best = None
    for one in candidates:
        if best is None or len(one.values) >= len(best.values):
            best = one
    return best


# ------------------------------------------------------------------------------------------ as JSON


class _NoJsonError(Exception):
    """What stands here is no JSON; `at` is how far it was read."""

    def __init__(self, at: int) -> None:
        self.at = at


def _objects(text: str, keys: dict[str, str]) -> Iterator[_Found]:
    """Objects with wanted keys. Those decoded do not overlap, and failed attempts are paid from a budget."""
    budget, at = 2 * len(text) + 4096, 0
    while budget > 0 and (opening := _OPENING.search(text, at)):
        start = opening.start()
        try:
            value, at = _value(text, start, MAX_DEPTH)
        except _NoJsonError as error:
            budget, at = budget - (error.at - start) - 1, start + 1
            continue
        yield from (_Found(start, at, values) for values in _with_keys(value, keys))


def _with_keys(value: Any, keys: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The outermost mappings in `value` that have a wanted key."""
    children = value if isinstance(value, list) else []
    if isinstance(value, dict):
        named = {keys[k.strip().casefold()]: v for k, v in value.items() if k.strip().casefold() in keys}
        if named:
            yield named
            return
        children = list(value.values())
    for child in children:
        yield from _with_keys(child, keys)


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """The value that begins at `at`, and where it ends."""
    mark = text[at : at + 1]
    if mark in ("{", "["):
        if not depth:
            raise _NoJsonError(at)
        return _object(text, at + 1, depth - 1) if mark == "{" else _list(text, at + 1, depth - 1)
    if mark in ('"', "'"):
        string = _STRING.match(text, at)
        if string is None:  # never closed: the rest of the text was read
            raise _NoJsonError(len(text))
        return unescape(string[1] if string[1] is not None else string[2]), string.end()
    atom = _ATOM.match(text, at)
    value = _plain(atom[0]) if atom else NOTHING
    if atom is None or value is NOTHING:
        raise _NoJsonError(atom.end() if atom else at)
    return value, atom.end()


def _plain(text: str) -> Any:
    """A value without quotes around it; what is no finite number stays text."""
    value = read(text)
    return text if isinstance(value, float) and not math.isfinite(value) else value


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return members, at + 1
        if text[at : at + 1] not in ('"', "'"):
            raise _NoJsonError(at)
        key, at = _value(text, at, 0)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise _NoJsonError(at)
        members[key], at = _value(text, _skip(text, at + 1), depth)
        at = _comma(text, at, "}")


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return items, at + 1
        value, at = _value(text, at, depth)
        items.append(value)
        at = _comma(text, at, "]")


def _comma(text: str, at: int, closing: str) -> int:
    """Behind the comma, or before the closing bracket."""
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return at + 1
    if text[at : at + 1] != closing:
        raise _NoJsonError(at)
    return at


def _skip(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


# ----------------------------------------------------------------------------------------- by keys


def _by_keys(text: str, keys: dict[str, str]) -> Iterator[_Found]:
    """Objects told apart by their keys alone: a key that comes again begins the next one."""
    names = "|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True))
    if not names:
        return
    key = re.compile(rf"(?:^|[{{,\n])[ \t]*+([\"'“‘`])[ \t]*+({names})[ \t]*+[\"'”’`][ \t]*+[:：]\s*+", re.IGNORECASE)
    matches = list(key.finditer(text))
    start = -1
    values: dict[str, Any] = {}
    for place, match in enumerate(matches):
        after = matches[place + 1] if place + 1 < len(matches) else None
        name = keys[match[2].casefold()]
        if name in values:
            yield _Found(start, match.start(), values)
            values = {}
        start = start if values else match.start()
        ends = after is None or keys[after[2].casefold()] in {*values, name}
        value = _raw(text[match.end() : after.start() if after else len(text)], ends)
        if value is not NOTHING:
            values[name] = value
    if values:
        yield _Found(start, len(text), values)


def _raw(text: str, last: bool) -> Any:
    """The value that `text` is but for a comma, or, if `last`, what stands of it before the object's end."""
    text = text.strip()
    quote = _CLOSING.get(text[:1], "")
    if quote:
        end = _end_of_string(text, quote) if last else text.rstrip(" \t\r\n,").rfind(quote)
        return unescape(text[1:end]) if end > 0 else NOTHING
    text = text[: _end_of_object(text)] if last else text
    text = text.strip(" \t\r\n,")
    value = _plain(text)
    return (unescape(text) or NOTHING) if value is NOTHING else value


def _end_of_string(text: str, quote: str) -> int:
    """Where the string that begins `text` ends, the last of its object: at a quote before a brace that closes more than
    the string itself has opened, else at the last quote before a brace, else at one that ends the text; else -1."""
    depth, end = 0, -1
    for match in re.finditer(rf"\\.|{re.escape(quote)}(?=\s*+,?\s*+\}})|[{{}}]", text[1:], re.DOTALL):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
        elif match[0] == quote:
            end = match.start() + 1
            if depth <= 0:
                return end
    bare = text.rstrip()
    return end if end > 0 or len(bare) < 2 or not bare.endswith(quote) else len(bare) - 1


def _end_of_object(text: str) -> int:
    """Where the first brace stands that closes more than `text` has opened, or else the line ends."""
    depth = 0
    for match in re.finditer(r"\\.|[{}\n]", text, re.DOTALL):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
        if depth < 0 or (depth == 0 and match[0] == "\n"):
            return match.start()
    return len(text)
