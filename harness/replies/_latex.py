r"""LaTeX formulas with braces where they belong and nowhere else: `\frac12` → `\frac{1}{2}`, `{x}^2` → `x^{2}`."""

from __future__ import annotations

import re

MAX_DEPTH = 64
"""Braces within braces; what is nested deeper stays as it is."""

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|\S", re.DOTALL)
_COMMAND_LAST = re.compile(r"\\[A-Za-z]+\Z")
_ARGUMENTS = {"\\frac": 2, "\\binom": 2, "\\sqrt": 1, "\\begin": 1, "\\end": 1}
_NAMES = """
sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln lg exp det gcd lcm max min
pi cdot infty le ge ne to in pm mp cup cap alpha beta gamma theta lambda mu
"""
_FUNCTIONS = frozenset(f"\\{name}" for name in _NAMES.split())
"""Commands that take no braces: those behind them only group."""


class _TooDeepError(Exception):
    """Braces within braces beyond `MAX_DEPTH`."""


class Latex:
    """One formula, read once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _TOKEN.findall(text)
        self._at = self._depth = 0

    def plain(self) -> str:
        """The formula without blanks, numbers without needless zeros, braces set right."""
        pieces = []
        try:
            while self._at < len(self._tokens):
                pieces.append(self._until("}"))
        except _TooDeepError:
            return "".join(self._text.split())
        return _joined(pieces)

    def _until(self, closing: str) -> str:
        """What stands before the next `closing`, which is read too."""
        pieces: list[str] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token in (closing, "}"):
                self._at += 1
                break
            keep = bool(pieces) and re.fullmatch(r"\\[A-Za-z]+", pieces[-1]) and pieces[-1] not in _FUNCTIONS
            piece = self._piece()
            pieces.append(f"{{{piece}}}" if keep and token == "{" else piece)
        return _joined(pieces)

    def _piece(self) -> str:
        """One token with its arguments."""
        if self._depth >= MAX_DEPTH:
            raise _TooDeepError
        self._depth += 1
        piece = self._whole_piece()
        self._depth -= 1
        return piece

    def _whole_piece(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token == "{":
            return self._until("}")
        if token in ("^", "_"):
            argument = self._argument(whole=True)
            return f"{token}{{{argument}}}" if argument else ""
        if token in _ARGUMENTS:
            root = self._root() if token == "\\sqrt" else ""
            arguments = [self._argument(whole=token == "\\sqrt") for _ in range(_ARGUMENTS[token])]
            return token + root + "".join(f"{{{argument}}}" for argument in arguments)
        if token[-1].isdigit() and token[0] != "\\":
            return _number(token)
        return token

    def _argument(self, whole: bool) -> str:
        """What a command is applied to: a group, a command with its own arguments, one character; if `whole`, also a
        number of several digits, with a sign before it, or what stands in round brackets."""
        token = self._tokens[self._at] if self._at < len(self._tokens) else "}"
        if token == "}":
            return ""
        if whole and token == "(":
            self._at += 1
            return self._until(")")
        if whole and token == "-":
            self._at += 1
            return "-" + (self._piece() if self._at < len(self._tokens) else "")
        if not whole and token[0].isdigit() and len(token) > 1:
            self._tokens[self._at] = token[1:]
            return token[0]
        return self._piece()

    def _root(self) -> str:
        if self._tokens[self._at : self._at + 1] != ["["]:
            return ""
        self._at += 1
        return f"[{self._until(']')}]"


def _joined(pieces: list[str]) -> str:
    """The pieces with a blank only where a command would run into a letter."""
    text = previous = ""
    for piece in filter(None, pieces):
        letter = piece[0].isalpha() and piece[0].isascii()
        text += f" {piece}" if letter and _COMMAND_LAST.search(previous) else piece
        previous = piece
    return text


def _number(token: str) -> str:
    whole, point, decimals = token.partition(".")
    decimals = decimals.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{decimals}" if point and decimals else "")
