"""What the reply forms share: the two readings, and the characters that only decorate an answer."""

from __future__ import annotations

import re
from typing import Literal

Parsing = Literal["tolerant", "reference"]

BLANK = re.compile(r"\s*")
DECORATION = re.compile("[\\s\u200b\"'“”‘’„«»`*_:=()\\[\\]{}<>#]*")
WRAPPING = " \t\r\n\v\f\u00a0\u200b\"'“”‘’„«»`*_()[]{}<>.!"


def end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where `pattern`, matched at `start`, ends; `start` if it does not match."""
    match = pattern.match(text, start)
    return match.end() if match else start


def valid(text: str) -> str:
    """`text` as valid Unicode: surrogate pairs joined, lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def literal(text: str) -> str:
    """A regular expression for exactly `text`, in the plain dialect that constrained decoding understands."""
    return re.sub(r"([\\^$.|?*+(){}\[\]])", r"\\\1", text)
