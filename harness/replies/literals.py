"""Values in text that a model wrote: JSON, and what models write instead of it.

The parser accepts single and curly quotes, trailing commas, comments (`//`, `#`, `/* */`), raw line breaks in strings,
tuples, and Python's words and numbers.
It takes linear time: Python's own literal parser can be made to take far more of both time and memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MAX_TEXT = 4_000_000
"""Characters of an answer that is read; a longer one stays text. The longest right one (III-30, N = 100) has 70,000."""
MAX_DEPTH = 64
"""Brackets within brackets; the right answers have two."""
MAX_DIGITS = 400
"""Characters of a number; a longer one stays text."""

NOTHING = object()
"""What `read` gives for a text that is not a value."""

_SCALAR = re.compile(
    r"""\s*+(?:"((?:[^"\\]|\\.)*+)"|'((?:[^'\\]|\\.)*+)'|[“”„]((?:[^“”\\]|\\.)*+)[“”]|‘((?:[^’\\]|\\.)*+)’"""
    r"""|(?P<bare>(?!//|\#|/\*)[^\s\[\](){},:"'“”„‘’]++))""",
    re.DOTALL,
)
_NUMBER = re.compile(
    r"[+-]?+(?:0[xob][0-9a-f_]++|(?:[0-9][0-9_]*+(?:\.[0-9_]*+)?+|\.[0-9][0-9_]*+)(?:e[+-]?+[0-9]++)?+)", re.IGNORECASE
)
_WORDS = {"true": True, "false": False, "none": None, "null": None, "nan": "NaN"}
_BLANKS = re.compile(r"(?:\s++|(?://|#)[^\n]*+)*+")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_OBJECT = re.compile(  # bounded: what one brace looks through is not paid from the budget of `objects`
    r"\{(?:\s++|/\*[^*]{,500}+\*/|(?://|#|/\*)[^\n]{,500}+){,20}+(?:[\"'“”„‘}]|[A-Za-z_]\w{,60}[ \t]*:)"
)
_DEEP = re.compile(rf'(?:[{{\[(]\s*+(?:"[^"\\]*+"\s*+:\s*+)?){{{MAX_DEPTH}}}(?=[{{\[(])')
"""Brackets within brackets that are too many to be read."""
_FLAT = re.compile(r"\{(?:[^{}\[\]()\\]++|\{[^{}\[\]()\\]*+\}|\[[^{}\[\]()\\]*+\])*+\}")
_BARE_KEY = re.compile(r"([A-Za-z_]\w{0,60})[ \t]*:")
_OPENING = frozenset("\"'“”„‘")
_ESCAPE = re.compile(r'\\.|"', re.DOTALL)
_ESCAPED = {'"': '\\"', "\\'": "'"}


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits


_JSON = json.JSONDecoder(
    strict=False,  # raw line breaks in strings are harmless
    parse_int=_whole,
    parse_constant=str,  # "NaN" and "Infinity" are not numbers: as text they are never right
)
_PLAIN = json.JSONDecoder(strict=False, parse_int=_whole, parse_float=lambda token: _scalar(token), parse_constant=int)
"""Reads numbers as `value_at` does; refuses NaN and Infinity, which no int is."""


class NoValueError(Exception):
    """What is in the text is not a value; `at` is how far the parser has read."""

    def __init__(self, at: int) -> None:
        self.at = at


def read(text: str) -> Any:
    """The value that the whole of `text` is, or `NOTHING`. Tuples become lists; keys of mappings become text.

    >>> read("{0: (1, 2.50), 'a': True}")
    {'0': [1, 2.5], 'a': True}
    """
    if len(text) > MAX_TEXT:
        return NOTHING
    with contextlib.suppress(ValueError, RecursionError):
        return _JSON.decode(text)
    bare = text.rstrip().removesuffix(",")
    if bare and text.count("[") + text.count("{") <= MAX_DEPTH:
        with contextlib.suppress(ValueError):
            return _PLAIN.decode(f"[{bare}]")  # 1, 2 is a tuple
    try:
        value, end = value_at(f"({text})", 0, depth=MAX_DEPTH + 1)  # in brackets, because 1, 2 is a tuple
    except NoValueError:
        return NOTHING
    return value if end == len(text) + 2 and text.strip() else NOTHING


def objects(text: str, unescape: Callable[[str], str] | None = None) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The outermost objects in `text`, from left to right, as (start, end, value).

    Linear: objects do not overlap, and the characters that failed attempts read are paid from a budget proportional to
    the length of `text`; the search ends when it is used up.
    """
    budget, quick, at = 2 * len(text) + 4096, 32, 0
    while budget > 0 and (brace := _OBJECT.search(text, at)):
        start = brace.start()
        try:
            if (deep := _DEEP.match(text, start)) is not None:
                raise NoValueError(deep.end())
            plain = _plain_object(text, start, quick > 0)
            quick -= plain is None  # an error of json takes as long as the text before it is: it counts lines
            value, at = plain or value_at(text, start, unescape)
        except NoValueError as error:
            budget, at = budget - (error.at - start) - 1, start + 1
        else:
            yield start, at, value


def _plain_object(text: str, start: int, quick: bool) -> tuple[dict[str, Any], int] | None:
    """What `value_at` makes of an object that is plain JSON without escapes, far sooner; None where it is not. If not
    `quick`, only of one without brackets deeper within; all its quotes may be single."""
    if text.startswith("{}", start):
        return {}, start + 2
    with contextlib.suppress(ValueError, RecursionError):
        if flat := _FLAT.match(text, start):
            return _PLAIN.decode(flat[0] if '"' in flat[0] else flat[0].replace("'", '"')), flat.end()
        if quick and all(text.count(bracket, start, start + 20 * MAX_DEPTH) <= MAX_DEPTH for bracket in "{["):
            value, end = _PLAIN.raw_decode(text, start)
            brackets = text.count("{", start, end) + text.count("[", start, end)
            return (value, end) if brackets <= MAX_DEPTH and text.find("\\", start, end) < 0 else None
    return None


def masked(text: str, spans: Sequence[tuple[int, int]] | None = None) -> str:
    """The text with blanks in place of these parts, by default of all its objects."""
    pieces, at = list[str](), 0
    for start, end in sorted((start, end) for start, end, _ in objects(text)) if spans is None else sorted(spans):
        if start >= at:
            pieces += [text[at:start], " " * (end - start)]
            at = end
    return "".join([*pieces, text[at:]]) if pieces else text


def value_at(
    text: str, at: int, unescape: Callable[[str], str] | None = None, depth: int = MAX_DEPTH
) -> tuple[Any, int]:
    """The value that begins at `at`, and where it ends.

    Args:
        text: where it is.
        at: where it begins; blanks may come first.
        unescape: makes a string of what comes between its quotes; None for JSON's rules.
        depth: brackets within brackets that are read.

    Raises:
        NoValueError: if there is none.
    """
    scalar = _SCALAR.match(text, at)
    if scalar is None:
        at, begin = _skip(text, at), at
        scalar = _SCALAR.match(text, at) if at > begin else None
    if scalar is not None:
        try:
            if scalar["bare"] is not None:
                return _scalar(scalar["bare"]), scalar.end()
            return (unescape or _unescape)(scalar[scalar.lastindex or 0]), scalar.end()
        except ValueError:
            raise NoValueError(scalar.end()) from None
    opening = text[at : at + 1]
    if opening not in _CLOSING or not depth:
        raise NoValueError(len(text) if opening in _OPENING else at)  # to the end for a closing quote
    closing = _CLOSING[opening]
    items: list[Any] = []
    members: dict[str, Any] = {}
    at = _skip(text, at + 1)
    comma = False
    while text[at : at + 1] != closing:
        if opening == "{":
            if bare := _BARE_KEY.match(text, at):
                key, at = bare[1], bare.end(1)
            else:
                key, at = value_at(text, at, unescape, 0)
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise NoValueError(at)
            value, at = value_at(text, at + 1, unescape, depth - 1)
            members[key if isinstance(key, str) else json.dumps(key)] = value
        else:
            value, at = value_at(text, at, unescape, depth - 1)
            items.append(value)
        at = _skip(text, at)
        comma = text[at : at + 1] == ","
        if comma:
            at = _skip(text, at + 1)
        elif text[at : at + 1] != closing:
            raise NoValueError(at)
    if opening == "(" and len(items) == 1 and not comma:  # (5) is 5
        return items[0], at + 1
    return members if opening == "{" else items, at + 1


def _skip(text: str, at: int) -> int:
    """Where blanks and comments end. Raises `NoValueError` for a comment that never ends."""
    while True:
        blanks = _BLANKS.match(text, at)
        at = blanks.end() if blanks else at
        if text[at : at + 2] != "/*":
            return at
        end = text.find("*/", at + 2)
        if end < 0:
            raise NoValueError(len(text))
        at = end + 2


def _unescape(inner: str) -> str:
    """A string of what comes between its quotes, by JSON's rules. Raises `ValueError` for other escapes."""
    if "\\" not in inner:
        return inner
    string: str = _JSON.decode(f'"{_ESCAPE.sub(lambda escape: _ESCAPED.get(escape[0], escape[0]), inner)}"')
    return string


def _scalar(token: str) -> Any:
    """A number or a word such as `true`; a number beyond floats stays text. Raises `ValueError` for any other."""
    if token.lower() in _WORDS:
        return _WORDS[token.lower()]
    if not _NUMBER.fullmatch(token):
        raise ValueError
    if len(token) > MAX_DIGITS:
        return token
    try:
        return int(token, 0)
    except ValueError:
        number = float(token)
        return number if math.isfinite(number) else token
