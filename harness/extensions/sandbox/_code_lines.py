"""Python text as logical lines: one pass that knows strings, comments and brackets, for texts that may not compile.

Python's own parser is not used: text that a model wrote can make it take exponential time or end the process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PIECE = re.compile(
    r"""(?P<long>\"{3}|'{3})
      | (?P<short>"(?:[^"\\\n]|\\.)*+(?:"|$)|'(?:[^'\\\n]|\\.)*+(?:'|$))
      | (?P<comment>\#[^\n]*+)
      | (?P<open>[(\[{]++) | (?P<close>[)\]}]++)
      | (?P<join>\\\n) | (?P<newline>\n)
      | [^"'\#()\[\]{}\\\n]++ | ["'\\]""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_END = {mark: re.compile(rf"(?:[^\\{mark[0]}]|\\.|{mark[0]}(?!{mark[0]}{{2}}))*+(?:{mark}|\Z)", re.DOTALL)
        for mark in ('"""', "'''")}  # fmt: skip
_PLAIN_LINE = re.compile(r"([^\"'#()\[\]{}\\\n]*+)\n")
_FRESH = re.compile(r"(?:def|class|async def|from|import)\s|@")


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line.

    Attributes:
        first: its first physical line, counted from 0.
        last: its last one.
        indent: blanks before it.
        text: its first physical line without blanks around it.
        opens: whether a block begins after it: its last sign but comments is a colon.
        inside: its physical lines that begin within a string, whose blanks are part of it.
    """

    first: int
    last: int
    indent: int
    text: str
    opens: bool
    inside: frozenset[int]


def logical(text: str) -> list[Line]:
    """The logical lines of `text` in order; blank lines and those with nothing but a comment are left out."""
    physical = text.split("\n")
    lines: list[Line] = []
    at = number = first = depth = 0
    code, sign, inside = False, "", set[int]()
    while at < len(text):
        if first == number and not (code or depth) and (plain := _PLAIN_LINE.match(text, at)):
            if bare := plain[1].strip():
                lines.append(_line(physical, number, number, bare[-1], inside))
            at, number, first = plain.end(), number + 1, number + 1
            continue
        piece = _PIECE.match(text, at)
        assert piece is not None  # every character is covered
        kind, token = piece.lastgroup, piece.group()
        at = piece.end()
        if kind == "long":
            end = _END[token].match(text, at)
            at = end.end() if end else len(text)
            broken = text.count("\n", piece.end(), at)
            inside.update(range(number + 1, number + broken + 1))
            number += broken
            code, sign = True, "s"
        elif kind in ("newline", "join"):
            number += 1
            # A definition at the margin is never within brackets: an open one before it was prose.
            if kind == "newline" and (not depth or _FRESH.match(physical[number])):
                if code:
                    lines.append(_line(physical, first, number - 1, sign, inside))
                first, depth, code, sign, inside = number, 0, False, "", set()
        elif kind != "comment" and not token.isspace():
            depth = max(0, depth + len(token) * ((kind == "open") - (kind == "close")))
            code, sign = True, token.rstrip()[-1]
            if kind == "short":
                number += token.count("\n")
    if code:
        lines.append(_line(physical, first, number, sign, inside))
    return lines


def _line(physical: list[str], first: int, last: int, sign: str, inside: set[int]) -> Line:
    text = physical[first]
    bare = text.lstrip()
    return Line(first, last, len(text) - len(bare), bare.rstrip(), sign == ":", frozenset(inside))
