"""Numbers in lines that say an answer: `1,234`, `$12.50`, `7/8`, `6 × 7 = 42`, `42 (room 7 is taken)`."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from fractions import Fraction

from .characters import WRAPPING
from .conclusions import MEMBER, OPEN, concluding, first_sentence, is_plain
from .json_fields import json_fields
from .mentions import UNDECIDED, Mention, Stated, denied, offered, stated_in
from .statements import WINDOW

_MAX_NUMBER = 10**300
"""A number beyond it is none: every one can be compared with floats."""
_GROUPS = r"\d{1,3}(?:(?:,|\{,\}|\\,|['’\u202f\u2009\u00a0])\d{3})+(?![\d,]\d)|\d{1,3}(?: \d{3})+(?![\d,]|[ ]\d|[ ]?%)"
_DIGITS = rf"(?:{_GROUPS}|\d{{1,400}}+(?!\d))(?:\.\d{{1,400}})?+|\.\d{{1,400}}"
_NUMBER = re.compile(
    r"(?<![\w.^\\√∛])(?:(?P<minus>(?i:minus|negative))[ \t*_]{1,3})?"
    r"(?P<sign>[-+−–]?)[ \t]?(?:\\?[$£€¥][ \t]?)?(?P<inner>[-−]?)"
    r"(?:\\[dt]?frac[ \t]?\{[ \t]?(?P<over>\d{1,40})[ \t]?\}[ \t]?\{[ \t]?(?P<under>\d{1,40})[ \t]?\}"
    rf"|(?:(?P<ones>\d{{1,40}})[ ](?=\d{{1,9}}/\d))?(?P<digits>{_DIGITS})(?P<power>[eE][-+]?\d{{1,3}}(?!\w)"
    r"|[ \t]?(?:×|\\times|\*|x)[ \t]?10[ \t]?(?:\^|\*\*)[ \t]?\{?(?P<ten>[-−]?\d{1,3})\}?)?"
    r"(?:[ \t]?/[ \t]?(?P<by>\d{1,40})(?![\d.]))?)"
    r"(?P<percent>[ \t]?(?:\\?%|percent\b))?"
    r"(?:[ \t]?(?P<times>(?i:k(?![\w/])|thousand\b|million\b|mio\b|billion\b|bn\b|trillion\b|dozen\b"
    r"|hundred\b)|[万萬千亿億]))?"
)
_TIMES = {
    "k": 10**3,
    "thousand": 10**3,
    "million": 10**6,
    "mio": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
    "dozen": 12,
    "hundred": 100,
    "千": 10**3,
    "万": 10**4,
    "萬": 10**4,
    "亿": 10**8,
    "億": 10**8,
}
_ODD = re.compile(
    r",\d|\.\d|[–-]\d|:\d|[ \t]?(?:to|through|[–—-])[ \t]?\d|[ \t$]?(?:<(?![|/>])|>[ \t]*[\w(]|[≤≥≠π√∞]"
    r"|\\(?:pi|sqrt|leq?|geq?|infty)\b)|[ ]?[xyzn](?!\w)"
    r"|[ \t]?(?:hours?|hrs?|h|minutes?|min|feet|foot|ft|days?|weeks?|years?|dollars?|pounds?|km|m"
    r"|kg)[ \t,]+(?:and[ \t]+)?\d+[ \t]?[^\W\d]"
    r"|[ \t]*\([^()\n]{0,40}\)[ \t,]*(?:or|and|/)[ \t]*[$£€]?\d"
    r"|[ \t]*\([ \t]*(?:=|or\b|i\.e\.,?)[ \t]*[$£€]?[\d.]+[ \t]*(?:[^\d \t*/×+·^.-]|$|[^\W\d])"
)
"""What makes of a number before it another kind of value: a range, 3:42, 2π, 3x, 1 hour 30 minutes, 60 % (= 0.6)."""
_OF_LOSS = re.compile(r"(?i:loss|losses|deficit|debt|decrease|decline|drop|reduction|shortfall)[ \t]+of[ \t]*[$£€\\]*$")
_INDEXED = re.compile(
    r"(?<![^\W_])(?:(?i:agent|player|participant|philosopher|robot|team|option|response|candidate|document"
    r"|question|problem"
    r"|step|stage|phase|round|turn|case|part|section|chapter|page|line|figure|table|equation|rule|clue|example|method"
    r"|scenario|version|day|week|age[ds]?)|P)[ \t_-]?#?$"
)
"""What a number behind it counts: a number of a thing is no value."""
_PLACES = re.compile(
    r"[ \t](?:decimals?(?:[ \t]places?|[ \t]digits?)?|significant[ \t]\w+)(?!\w)|(?:[ \t]|-)years?(?:[ \t]"
    r"|-)olds?(?!\w)"
)
"""What follows a number of digits to which another one is rounded, or an age."""
_UNKNOWNS = re.compile(r"(?<!\w)([^\W\d_])[ \t]*=(?=[ \t$]*[-−]?\d)")
"""Unknowns that get a value: "x = 3, y = 4"."""
_OR = re.compile(r"\d[^\w\n]*(?:or|and)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"[ \t]+(?:is|was|are|were|has|had|will|looks?|seems?)(?!\w)(?![ \t]+(?:the|my|our|correct|right|best|left))"
)
"""What makes of a number with which a line begins one that is only spoken of: "17 is too low"."""
_UNITS = re.compile(r"[^\w\n]*[-−]?\d[\d.,]*[ \t]*[^\W\d]+[^\w\n]*")
"""A number with its unit."""
_UNKNOWN = re.compile(r"(?<!\w)[^\W\d_][ \t]*[-+−–*/×·÷^][ \t]*$")
"""An unknown and a sign before a number: "N - 17"."""
_COMMA = re.compile(r"(?<![\d.,])(\d{1,9}),(\d{1,2}|\d{4,9})(?![\d,]|\.\d)")
"""A decimal comma: 3,14."""
_OPERATOR = re.compile(
    r"[\s*_`\"')\]}$]*(?:[-+−–×·÷∙⋅^*/]|x(?=[ \t]?\d)|plus\b|minus\b|times\b|divided by\b|multiplied by\b|over\b|mod\b"
    r"|\\(?:times|cdot|div))[ \t]*[(\[{$\\]*[ \t]*[-−]?[\d$£€]"
)
_EXPLAINS = re.compile(
    r"[ \t]+\([^()\n]*+\)(?![ \t]*[-=+*/×·^])|[ \t]+\((?=[^()\n]*$)|[ \t]+\[|,[ \t]+(?=[^\W\d])|;|[.!](?=[\s*_`\"']|$)"
    r"|[ \t]+(?:because|since|as|so|which|after|from|due|where|when|if|with|given|but|not|i\.e|e\.g|hence"
    r"|thus|therefore"
    r"|whereas|while|that[ ]is|instead|rather|per|out|by|in[ ]total)\b|[ \t]+[–—-]{1,2}[ \t]+(?=[^\W\d])|//|#"
)
"""What ends the value of a line: all behind it is explanation."""
_ASSIGNED = re.compile(
    r"[\s*_`\"')\]}$]*(?:,|;|\band\b|\bor\b)[\s*_`$]*(?:and\b|or\b)?[\s*_`$]*[^\W\d]\w{0,12}[ \t]*=[ \t]*[-−]?[\d$]"
)
"""A second unknown: "x = 3, y = 4"."""
_FILL = (
    r"[\s*_`\"'“”‘’«»(\[{<$:=≈~>|#\\]*+(?>(?i:the|an?|is|it['’]s|its?|this|that|there|are|be|exactly"
    r"|approximately|about|around"
    r"|roughly|precisely|just|only|therefore|thus|hence|so|then|simply|equal|equals|to|i|get|say|total"
    r"|sum|answer|value|number"
    r"|[^\W\d_]+ly)\b[.:=,]?+[\s*_`\"'“(\[$:=≈~\\]*+)*+"
)
"""Possessive: where a filler could be read in two ways, a line of many would take time without end."""
_BEGINS = re.compile(
    rf"{_FILL}(?:(?!(?i:since|because|as|if|when|after|before|for|in|at|of|from|with|given|by|not|no|than"
    r"|between|over|under|more|less|least|most|up|to|or|and|but|while|though|although|unless|until|per"
    r"|every|each|either"
    r"|above|below|beyond|nearly|almost|another|step|case|part|question)\b)[^\W\d_]+[.:=]?[\s*_`\"'“(\[$:=≈~\\]+)?"
)
"""What may precede a number with which a line begins: marks, fillers, and one word, such as "room", or "x"."""
_EXACTLY = re.compile(rf"{_FILL}(?:[a-zA-Z][ \t]*=[\s$*_`]*)?")
"""The same of a line that no label announces."""
_LISTED = re.compile(r"\s*\d{1,2}[.)][ \t]+(?=[*_`$]{0,4}[-−]?[$£€]?\d)")
_BULLET = re.compile(r"^[ \t>]*(?:[-*•–—+▪‣◦●·][ \t]+)?")
_CALCULATED = re.compile(r"<<[^<>\n]{1,80}>>")
"""The mark of a calculator, as in GSM8K: 17 + 25 = <<17+25=42>>42."""
_SEPARATORS = re.compile(r",|\{,\}|\\,|[ '’\u202f\u2009\u00a0]")
_AROUND = WRAPPING + "$\\"
_MAX_LINE_CHARS = 4 * WINDOW
_MAX_NUMBERS = 200
"""Numbers of a line that are looked at."""
KEYS = ("answer", "final_answer", "result", "value", "number", "choice")
"""Keys of an object that hold a number."""
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅛": "1/8"}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POWER = re.compile(r"(?<=10)[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Reads numbers.

    Attributes:
        percent: whether a percent sign makes hundredths: 12% is 0.12.
    """

    percent: bool = False

    def read(self, line: str, announced: bool = True) -> Stated[int | float]:
        """The number that a line states (`harness.replies.mentions`); of an equation what it comes to.

        Args:
            line: the line.
            announced: whether a label precedes it: then a word may stand before its number.
        """
        if not announced and UNDECIDED.search(line[-_MAX_LINE_CHARS:]):
            return Stated(None, False)
        line = self._bare(line, announced)
        if line.startswith("{") and (members := json_fields(line, KEYS)):
            return self.read(str(next(iter(members.values()))))
        if not announced and MEMBER.match(line):
            return Stated(None, False)
        if listed := _LISTED.match(line):
            line = line[listed.end() :]
        mentions = self._mentions(line)
        if not mentions:
            return Stated(None, not _NUMBER.search(line))
        begins = _BEGINS if announced else _EXACTLY
        is_subject = not announced and _SUBJECT.match(line, mentions[0].end) is not None
        if not is_subject and begins.fullmatch(line, 0, mentions[0].start) is not None:
            is_open = not announced and OPEN.search(first_sentence(line)) is not None
            return Stated(None if is_open else self._leading(line, mentions), False)
        alone = announced
        if not announced:
            sentence = concluding(line, lambda said: bool(self._mentions(said)))
            if sentence is None:
                return Stated(None, False)
            line, mentions = sentence, self._mentions(sentence)
            alone = is_plain(line[: mentions[-1].end])
        if not announced and len(set(_UNKNOWNS.findall(line))) > 1:
            return Stated(None, False)
        if (sign := line.find("=") if announced else line.rfind("=")) >= 0:
            later = [one for one in mentions if one.start > sign]
            if later and not line[sign + 1 : later[0].start].strip(_AROUND):
                line, mentions = line[sign + 1 :], _moved(later, sign + 1)
        if begins.fullmatch(line, 0, mentions[0].start) is not None:
            return Stated(self._leading(line, mentions), False)
        head = None if announced else line[: mentions[0].start]  # "First 17, then 42" begins with no answer
        said = stated_in(
            line, mentions, lambda before: before != head and _BEGINS.fullmatch(before) is not None, alone=alone
        )
        if said.value is None:
            return said
        at = next(one for one in mentions if one.value == said.value and not denied(line, one))
        rest = _moved([one for one in mentions if one.start >= at.start], at.start)
        return Stated(self._leading(line[at.start :], rest), False)

    def _mentions(self, line: str) -> list[Mention[int | float]]:
        """The numbers of a line."""
        found = [
            match for match in itertools.islice(_NUMBER.finditer(line), _MAX_NUMBERS) if not self._is_aside(line, match)
        ]
        return [Mention(*match.span(), value) for match in found if (value := self._value(match)) is not None]

    def _is_aside(self, line: str, match: re.Match[str]) -> bool:
        """Whether a number stands in brackets behind words: "undefined (division by 0)"; or is the size of a loss."""
        if _OF_LOSS.search(line[: match.start()]) or _PLACES.match(line, match.end()):
            return True
        if _INDEXED.search(line, max(0, match.start() - 20), match.start()) and not match["sign"]:
            return True
        opened = line.rfind("(", 0, match.start())
        if opened < 0 or ")" in line[opened : match.start()]:
            return False
        return any(map(str.isalpha, line[opened : match.start()])) and any(map(str.isalpha, line[:opened]))

    def _has_minus(self, match: re.Match[str]) -> bool:
        """Whether a sign before a number is a minus: a dash between words and a number is not."""
        if match["sign"] not in ("-", "−", "–"):
            return False
        after = match.end("sign")
        is_apart = match.string[after : after + 1] in (" ", "\t")
        return not (is_apart and match.string[: match.start("sign")].rstrip(" \t*_`")[-1:].isalpha())

    def _bare(self, line: str, announced: bool) -> str:
        """A line without the mark of a list, its end where it is very long, and in plain signs."""
        cut = line[max(0, len(line) - _MAX_LINE_CHARS) :] if not announced else line[:_MAX_LINE_CHARS]
        if len(cut) < len(line) and not announced:  # the end of a long number is not a number
            cut = cut.partition(" ")[2]
        line = _BULLET.sub("", cut) if not announced else cut
        line = _CALCULATED.sub("", line) if "<<" in line else line
        line = _COMMA.sub(r"\1.\2", line) if announced and "," in line else line
        if not line.isascii():
            line = _POWER.sub(lambda power: "^" + power[0].translate(_RAISED), line)
            for sign, fraction in _VULGAR.items():
                if sign in line:
                    line = re.sub(rf"(?<=\d)[ ]?{sign}", f" {fraction}", line).replace(sign, fraction)
        return line

    def _leading(self, line: str, mentions: list[Mention[int | float]]) -> int | float | None:
        """The number of a line that begins with one, or with an expression and what it comes to."""
        first = mentions[0]
        ends = _EXPLAINS.search(line, first.end)
        end = ends.start() if ends else len(line)
        if _UNKNOWN.search(line[: first.start + 3].rstrip("0123456789 ")):
            return None
        sides = re.split("[=≈]", line[:end])
        if len(sides) > 1:
            if any(map(_OR.search, sides[1:-1])):  # "x = 42 or x = 17"
                return None
            if _UNITS.fullmatch(sides[0]) and _UNITS.fullmatch(sides[-1]):
                return None
            for side in (sides[-1], sides[0]):
                inner = list(_NUMBER.finditer(side))
                if len(inner) == 1 and not _ASSIGNED.match(line, end):
                    value, after = self._value(inner[0]), side[inner[0].end() :]
                    return None if _ODD.match(after) or _OPERATOR.match(after) else value
            return None
        if _ODD.match(line, first.end) or _OPERATOR.match(line, first.end) or _ASSIGNED.match(line, first.end):
            return None
        if denied(line, first) or (len(mentions) > 1 and offered(line, first, mentions[1])):
            return None
        return first.value

    def _value(self, match: re.Match[str]) -> int | float | None:
        digits = _SEPARATORS.sub("", match["over"] or match["digits"])
        divisor = int(match["under"] or match["by"] or 1)
        if not divisor:
            return None
        sign = -1 if self._has_minus(match) or match["inner"] or match["minus"] else 1
        whole, _, part = digits.partition(".")
        plain = (
            divisor == 1
            and not match["power"]
            and not match["percent"]
            and not match["ones"]
            and not match["times"]
            and digits.isascii()
            and whole.isdigit()
        )
        if plain and int(whole) < _MAX_NUMBER:  # as most answers are; fractions are slow
            return sign * (float(digits) if part.strip("0") else int(whole))
        power = int((match["ten"] or (match["power"] or "e0")[1:]).replace("−", "-"))
        value = sign * (int(match["ones"] or 0) + Fraction(digits) * Fraction(10) ** power / divisor)
        if match["times"]:
            value *= _TIMES[match["times"].lower()]
        if self.percent and match["percent"]:
            value /= 100
        if abs(value) > _MAX_NUMBER:
            return None
        return value.numerator if value.denominator == 1 else float(value)


def _moved(mentions: list[Mention[int | float]], by: int) -> list[Mention[int | float]]:
    """Mentions in a line without its first `by` characters."""
    return [Mention(one.start - by, one.end - by, one.value) for one in mentions]
