"""Text → JSON value: JSON as it is, else a Python literal rewritten token by token into JSON.

One pass over the text with patterns that never go back, so that the time is linear whatever a model wrote; Python's
own literal parser can be made to take far more of both time and memory.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_TEXT = 4_000_000
"""Characters of an answer that is read; a longer one stays text. The longest right one (III-30, N = 100) has 70,000."""
MAX_DEPTH = 64
"""Brackets within brackets; the right answers have two."""
MAX_DIGITS = 400
"""Characters of a number; a longer one stays text."""

NOTHING = object()
"""What `read` gives for a text that is no value."""

_TOKEN = re.compile(
    r"""\s*+(?:
      (?P<mark>[\[\](){},:])
    | (?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')
    | (?P<number>[+-]?+(?:0[xXoObB][0-9a-fA-F_]++
        |(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)(?:[eE][+-]?+[0-9]++)?+))(?![\w.])
    | (?P<word>true|false|none|null|nan)(?!\w)
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_WORDS = {"true": "true", "false": "false", "none": "null", "null": "null", "nan": "NaN"}
_PAIRS = {"]": "[", "}": "{", ")": "("}
_ESCAPE = re.compile(r'\\.|"', re.DOTALL)
_ESCAPED = {'"': '\\"', "\\'": "'"}

_JSON = json.JSONDecoder(
    strict=False,  # raw line breaks in strings are harmless
    parse_int=lambda digits: int(digits) if len(digits) <= MAX_DIGITS else digits,
    parse_constant=str,  # "NaN" and "Infinity" are no numbers: as text they are never right
)


def read(text: str) -> Any:
    """The value that the whole of `text` is, or `NOTHING`. Tuples become lists; keys of mappings become text.

    >>> read("{0: (1, 2.50), 'a': True}")
    {'0': [1, 2.5], 'a': True}
    """
    if len(text) > MAX_TEXT:
        return NOTHING
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _JSON.decode(_as_json(text))
    except (ValueError, RecursionError):
        return NOTHING


class _Open:
    """A bracket that is not closed yet: which, where it stands in the output, whether it has had a comma."""

    __slots__ = ("at", "comma", "mark")

    def __init__(self, mark: str, at: int) -> None:
        self.mark, self.at, self.comma = mark, at, False


def _as_json(text: str) -> str:
    """A Python literal as JSON.

    Raises:
        ValueError: if it is none; not all that it lets pass is JSON.
    """
    out: list[str] = []
    outermost = _Open("", 0)
    opened = [outermost]
    at, end, valued = 0, len(text.rstrip()), False
    while at < end:
        token = _TOKEN.match(text, at, end)
        if token is None or (valued and not token["mark"]):  # two values side by side: soon told, however many follow
            raise ValueError(f"no literal at {at}")
        at, valued = token.end(), not token["mark"]
        if token["mark"]:
            _mark(token["mark"], out, opened)
        elif token["string"]:
            out.append(_string(token["string"]))
        else:
            out.append(_WORDS[token["word"].lower()] if token["word"] else _number(token["number"]))
    if len(opened) > 1:
        raise ValueError("a bracket stays open")
    if outermost.comma:  # 1, 2 is a tuple
        _close(out, "[", "]", 0)
    return " ".join(out)


def _mark(mark: str, out: list[str], opened: list[_Open]) -> None:
    inner = opened[-1]
    if mark in "[{(":
        if len(opened) > MAX_DEPTH:
            raise ValueError("too many brackets within brackets")
        opened.append(_Open(mark, len(out)))
        out.append("")
    elif mark == ",":
        inner.comma = True
        out.append(",")
    elif mark == ":":
        if out and not out[-1].startswith('"'):
            out[-1] = f'"{out[-1]}"'
        out.append(":")
    elif inner.mark != _PAIRS[mark]:
        raise ValueError(f"{mark} closes nothing")
    else:
        opened.pop()
        alone = mark == ")" and not inner.comma and len(out) > inner.at + 1  # (5) is 5
        opening, closing = ("", "") if alone else ("{", "}") if mark == "}" else ("[", "]")
        out[inner.at] = opening
        if not alone:
            _close(out, "", closing, inner.at)


def _close(out: list[str], opening: str, closing: str, start: int) -> None:
    """Write the brackets around what stands from `start`; a comma at its end goes."""
    if out[-1] == "," and len(out) > start + 1:
        out.pop()
    out[start : start + 1] = [opening + out[start]]
    out.append(closing)


def _string(token: str) -> str:
    if token[0] == '"':
        return token.replace("\\'", "'") if "\\'" in token else token
    return '"' + _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[0], escape[0]), token[1:-1]) + '"'


def _number(token: str) -> str:
    if len(token) > MAX_DIGITS:
        return json.dumps(token)
    try:
        return str(int(token, 0))
    except ValueError:
        return json.dumps(float(token))
