r"""One normal form of mathematical answers, so that `\frac12`, `1/2` and `$0.50$` are seen to be the same.

The package math-verify alone would not do: of the 118 equal pairs in tests/core/replies/test_math_answers.py it finds
99 (not `x**2`, `½`, `5 cm^2`), takes 0.3333333 for 1/3, needs 8 ms a pair, and gives votes no form to be counted by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from harness.replies.characters import unquoted, valid

MAX_DEPTH = 64
"""Braces within braces; what is nested deeper stays as it is."""

_LATEX_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\.\d+|\S", re.DOTALL)
_COMMAND_LAST = re.compile(r"\\[A-Za-z]+\Z")
_ARGUMENTS = {"\\frac": 2, "\\binom": 2, "\\sqrt": 1, "\\begin": 1, "\\end": 1}
_FUNCTION_NAMES = """
sin cos tan cot sec csc sinh cosh tanh arcsin arccos arctan log ln lg exp det gcd lcm max min
pi cdot infty le ge ne to in pm mp cup cap alpha beta gamma theta lambda mu
"""
_FUNCTIONS = frozenset(f"\\{name}" for name in _FUNCTION_NAMES.split())
"""Commands that take no braces: those after them only group."""
MAX_CHARS = 2000
"""A longer text is not a mathematical answer; only its blanks are set right."""

_SIGNS = str.maketrans({
    "−": "-", "–": "-", "—": "-", "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "∗": r"\cdot ", "*": r"\cdot ",
    "÷": "/", "∕": "/", "⁄": "/", "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "λ": r"\lambda ",
    "∞": r"\infty ", "√": r"\sqrt ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "∪": r"\cup ", "∩": r"\cap ",
    "∈": r"\in ", "±": r"\pm ", "∅": r"\emptyset ", "°": "", "²": "^2", "³": "^3", "½": r"\frac{1}{2}",
    "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}", "$": "", "£": "", "€": "", "\u00a0": " ", "\u2009": " ", "\u202f": " ",
    "\u200b": "", "’": "'",
})  # fmt: skip
_SPACING = re.compile(
    r"(\\\\)|\\(?:[,;:!> ]|(?:left|right|[bB]igg?[lrm]?|middle|quad|qquad|displaystyle|textstyle|limits|enspace"
    r"|thinspace|space|hspace\{[^{}]*\}|hfill|break)(?![A-Za-z]))|~"
)
_SAME = {
    "dfrac": "frac", "tfrac": "frac", "cfrac": "frac", "dbinom": "binom", "tbinom": "binom", "leq": "le", "geq": "ge",
    "leqslant": "le", "geqslant": "ge", "neq": "ne", "times": "cdot", "ast": "cdot", "ldots": "dots", "cdots": "dots",
    "rightarrow": "to", "varnothing": "emptyset", "lbrace": "{", "rbrace": "}", "land": "wedge",
}  # fmt: skip
_NAME = re.compile(rf"\\({'|'.join(sorted(_SAME, key=len, reverse=True))})(?![A-Za-z])")
_DEGREES = re.compile(r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})|\\degrees?(?![A-Za-z])|\\?%")
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|math(?:rm|bf|it|sf|tt)|operatorname\*?|bold(?:symbol)?|emph)\s*\{([^{}]*)\}"
    r"(\s*\^\s*(?:[23](?!\d)|\{\s*-?\d\s*\}))?"
)
_BEHIND, _BEFORE = " \t\r\n.,;:", " \t\r\n,;:"
_WRAPS = (("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"), ("\\boxed{", "}"), ("\\fbox{", "}"))
_ORDINALS = frozenset(("th", "st", "nd", "rd"))
_NO_UNITS = frozenset(("i", "e", "am", "pm", "a.m.", "p.m.", "and", "or", "mod", "if", "for", "when", "where"))
_SHORT = (
    "sq|cu|cm|mm|km|nm|dm|kg|mg|lb|lbs|oz|ft|yd|yds|mi|hr|hrs|min|mins|sec|secs|ms|ml|mL|mph|kph|deg|rad|rads|day|"
    "cup|men|way|sets?"
)
_UNIT = re.compile(
    rf"(?:(?<=[\d)\]}}])\s*|(?<=\\pi)\s+)(?:(?<=\s)(?:[A-Za-z]{{4,}}|in|per|{_SHORT})|(?:{_SHORT}|(?:degree|dollar|unit|cent)s?"
    rf"|percent|inch(?:es)?))(?:(?:\s+|\s*/\s*)(?:[A-Za-z]{{3,}}|[smh]|in|{_SHORT}))*(?:\s*\^\s*(?:[23]|\{{\s*[23]\s*\}}))?\s*$"
)
_WORDS = re.compile(r"[A-Za-z][A-Za-z'\-]*(?:\s+[A-Za-z][A-Za-z'\-]*)*")
_JOINED = re.compile(r"(?:,\s*)?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_DIGITS = re.compile(r"(\d)(?:,\\!|\{,\}|\\[,;:!](?=\d{3}))(?=\d)")
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_MARK = re.compile(r"\\[A-Za-z]+|\\.|[()\[\]{},;]", re.DOTALL)
_STARS = re.compile(r"(?<=[\w)])\s*\*\*\s*(?=[\w(-])")
_POSITIVE = re.compile(r"(?<=[(\[,])\s*\+")
_NAMED = re.compile(r"([A-Za-z](?:_(?:\w|\{\w{1,3}\}))?(?:\([A-Za-z]\))?)\s*(?:=|\\in(?![A-Za-z]))\s*(?=[^=\s])")
_RATIONAL = re.compile(r"(-?)(?:(\d*)\\frac\{(-?)(\d+(?:\.\d+)?)\}\{(-?)(\d+(?:\.\d+)?)\}|(\d+(?:\.\d+)?))")
_MIXED = re.compile(r"(-?\s*\d+)\s+(\d+)\s*/\s*(\d+)")
_DECIMALS = 6
"""A number with at most so many decimals is written so (0.5), any other as a fraction."""


def math_canonical(text: str) -> str:
    r"""The normal form of an answer: what a question has already fixed, and how it is typeset, make no difference.

    Left out: `$`, `\(…\)`, a box, bold, `\left` and `\right`, thin spaces, all blanks that TeX does not need, brackets
    around a whole term, a full stop; signs of currency, percent and degree, units (`5 cm`, `5\text{ m}^2`,
    `12 apples`, never the variable of `5x`); the variable of `x = 5`, if all items of a list have the same.

    Made the same: `\dfrac12`, `\frac{1}{2}`, `1/2`; `\sqrt2` and `\sqrt{2}`; `x^2` and `x^{2}`; `\text{…}`, `\mbox{…}`
    and their content; `\leq` and `\le`, `\times`, `*` and `\cdot` and the like; Unicode signs and their commands;
    1,234, `1{,}234` and 1234 (but (1,234) is a pair). Words are in lower case.

    A rational number is written with decimals if six are enough, else as a fraction in lowest terms; `2\frac12` is 2.5.
    The items of `\{…\}` are sorted, any other list keeps its order, except that `\pm e` and `-e,e` become `e,-e`.

    Total; a text above `MAX_CHARS`, which bounds the time, and one whose brackets never come right only lose doubled
    blanks.

    >>> [math_canonical(t) for t in (r"$\frac12$", "x = 1,234", r"\{3, 1\}", r"90^\circ", r"5\text{ cm}^2", r"\pm5")]
    ['0.5', '1234', '\\{1,3\\}', '90', '5', '5,-5']
    """
    text = " ".join(valid(text).split())
    if len(text) > MAX_CHARS:
        return text
    normal = text
    for _ in range(8):  # one round is enough but for answers wrapped in several ways
        before, normal = normal, _once(normal)
        if normal == before:
            return normal
    return text  # brackets that close nothing: every round would set others right


def _once(text: str) -> str:
    text = _unwrapped(text)
    text = _STARS.sub("^", text)
    text = _DIGITS.sub(r"\1", text.replace("\\$", "").translate(_SIGNS))
    text = _SPACING.sub(lambda m: m[1] or " ", text)
    text = _NAME.sub(lambda m: "\\" + _SAME[m[1]], text).replace("{bmatrix}", "{pmatrix}")
    text = _unwrapped(_DEGREES.sub(" ", text))
    text = _unwrapped(_TEXT.sub(lambda m: _worded(m, text), text))
    if _WORDS.fullmatch(text) and (max(map(len, text.split())) > 2 or text.lower() == "no"):
        return " ".join(text.lower().split())
    text = _POSITIVE.sub("", text)
    text = _UNIT.sub("", _JOINED.sub(",", text)).rstrip(_BEHIND).lstrip(_BEFORE)
    if not re.search(r"[(\[]|\\\{", text):
        text = _THOUSANDS.sub(lambda m: m[0].replace(",", ""), text)
    items = _split(text, ",;" if ";" in text and "," not in text else ",")
    items = _unnamed([item for item in items if item.strip()])
    if len(items) == 1 and items[0].count("\\pm") == 1:
        items = [items[0].replace("\\pm", sign) for sign in "+-"]
    normal = [_item(item, MAX_DEPTH) for item in items]
    if len(normal) == 2 and normal[0] == f"-{normal[1]}":
        normal.reverse()
    return ",".join(normal)


def _unwrapped(text: str) -> str:
    while True:
        before, text = text, unquoted(_bare_end(text).lstrip(_BEFORE))
        for opening, closing in _WRAPS:
            if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
                inner = text[len(opening) : -len(closing)]
                if closing != "}" or _end(text, len(opening) - 1) == len(text) - 1:
                    text = inner
        if text == before:
            return text


def _bare_end(text: str) -> str:
    r"""`text` without blanks and marks at its end, and without the backslash of a mark that is a space: `5\,`."""
    while (bare := text.rstrip(_BEHIND)) != text and (len(bare) - len(bare.rstrip("\\"))) % 2:
        text = bare[:-1]
    return bare


def _worded(match: re.Match[str], text: str) -> str:
    r"""What becomes of a `\text{…}`: nothing of a unit or the th of a fifth, a comma of an "and", else its content."""
    content, power = match[1].strip(), match[2] or ""
    if content.lower() in ("and", "or", ", and", ", or"):
        return ","
    before = text[: match.start()].rstrip()
    if content in _ORDINALS and (before.endswith("^") or before[-1:].isdigit()):
        return "1" if before.endswith("^") else ""
    behind = before[-1:].isdigit() or before[-1:] in (")", "}") or before.endswith("\\pi")
    if behind and not text[match.end() :].strip(_BEHIND) and content.lower() not in _NO_UNITS:
        return ""
    spaced = f" {content} " if len(content) > 1 else content
    return spaced + power


def _marks(text: str, start: int = 0) -> Iterator[tuple[str, int, int]]:
    r"""Brackets and separators from `start` on as (mark, position, number of open brackets after it).

    Round, square and curly ones may close each other, as in half-open intervals; `\{` counts as `{`.
    """
    depth = 0
    for match in _MARK.finditer(text, start):
        mark = match[0][-1] if match[0] in ("\\{", "\\}") else match[0]
        if mark in ("(", "[", "{"):
            depth += 1
        elif mark in (")", "]", "}"):
            depth = max(depth - 1, 0)
        yield mark, match.end() - 1, depth


def _split(text: str, separators: str) -> list[str]:
    """`text` cut at the separators that are in no bracket."""
    parts, start = [], 0
    for mark, at, depth in _marks(text):
        if mark in separators and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _unnamed(items: list[str]) -> list[str]:
    """Without `x =`, if the variable is the same in all items that have one and is in no other place."""
    named = [_NAMED.match(item.strip()) for item in items]
    names = {match[1] for match in named if match}
    if len(names) != 1 or any(item.count("=") > 1 for item in items):
        return items
    return [item.strip()[match.end() :] if match else item for item, match in zip(items, named, strict=True)]


def _end(text: str, start: int) -> int:
    """Where the bracket at `start` closes; -1 if it never does."""
    return next((at for _, at, depth in _marks(text, start) if depth == 0), -1)


def _item(text: str, depth: int) -> str:
    """The normal form of one item of a list."""
    text = text.strip(" \t\r\n")
    text = text.removeprefix("+").strip() if text[1:2] != "+" else text
    opening = "\\{" if text.startswith("\\{") else text[:1]
    if depth and opening in ("(", "[", "\\{") and _end(text, 0) == len(text) - 1 > len(opening):
        closing = "\\}" if text.endswith("\\}") else text[-1]
        inner = text[len(opening) : -len(closing)]
        each = [_item(part, depth - 1) for part in _split(inner, ",")]
        if len(each) == 1 and opening + closing == "()":
            return each[0]
        return opening + ",".join(sorted(each) if opening == "\\{" else each) + closing
    mixed = _MIXED.fullmatch(text)
    if mixed:
        text = f"{mixed[1]}\\frac{{{mixed[2]}}}{{{mixed[3]}}}"
    plain = _Latex(text).plain()
    return _rational(_divided(plain))


def _divided(text: str) -> str:
    r"""`a/b` as `\frac{a}{b}`, where it is plain how far either reaches."""
    before, slash, after = text.partition("/")
    if not slash or "/" in after or not _balanced(before) or not _balanced(after):
        return text
    if not re.fullmatch(r"\d+(?:\.\d+)?|[A-Za-z]|\\[A-Za-z]+|\(.*\)|\\sqrt\{[^{}]*\}", after):
        return text
    sign, term = ("-" if before.startswith("-") else ""), before.removeprefix("-")
    numerator, denominator = _bare(term), _bare(after)
    if not numerator or (numerator == term and re.search(r"[-+=<>]|\\(?:cup|cap|le|ge|ne|to|pm)\b", numerator)):
        return text
    return f"{sign}\\frac{{{numerator}}}{{{denominator}}}"


def _balanced(text: str) -> bool:
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and _end(text, 0) == len(text) - 1 else text


def _rational(text: str) -> str:
    """A rational number in its one form; any other text as it is."""
    match = _RATIONAL.fullmatch(text)
    if not match:
        return text
    sign, whole, numerator_sign, numerator, denominator_sign, denominator, number = match.groups()
    if number:
        value = Fraction(number)
    elif not Fraction(denominator):
        return text
    else:
        part = Fraction(numerator) / Fraction(denominator)
        if whole and (part >= 1 or numerator_sign or denominator_sign):
            return text
        value = int(whole or 0) + (part if numerator_sign == denominator_sign else -part)
    value = -value if sign else value
    return _written(value)


def _written(value: Fraction) -> str:
    sign, value = ("-" if value < 0 else ""), abs(value)
    if value.denominator == 1:
        return f"{sign}{value.numerator}"
    scaled = value * 10**_DECIMALS
    if scaled.denominator == 1:
        digits = str(scaled.numerator).rjust(_DECIMALS + 1, "0")
        return f"{sign}{digits[:-_DECIMALS]}.{digits[-_DECIMALS:]}".rstrip("0")
    return f"{sign}\\frac{{{value.numerator}}}{{{value.denominator}}}"


class _TooDeepError(Exception):
    """Braces within braces beyond `MAX_DEPTH`."""


class _Latex:
    """One formula, read once from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = _LATEX_TOKEN.findall(text)
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
        """What precedes the next `closing`, which is read too."""
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
        number of several digits, with a sign before it, or what is in round brackets."""
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
