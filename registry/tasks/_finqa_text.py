"""FinQA's program language as text: ten operations, literals, references (Chen et al. 2021, section 3.2).

    subtract(5829, 5735), divide(#0, 5735)

An argument is a number as in the report (`5829`, `-2.5`, `.5`, `12.5%`), a constant (`const_100`, `const_m1`), or the
result of an earlier step (`#0` is the first). A table operation takes a row's name and `none`.

Reading takes one pass over the text and never raises. It accepts steps separated by commas or line breaks, and
nested calls, `divide(subtract(5829, 5735), 5735)`, which become steps of their own. Everything else is an error, as it
is for the benchmark: arithmetic in signs (`5829 - 5735`), unknown operations, missing arguments, names and numbering
before a step, its result after it. The error says how to write what was meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from harness.api import near

ARITHMETIC = ("add", "subtract", "multiply", "divide", "exp", "greater")
TABLE = ("table_max", "table_min", "table_sum", "table_average")
OPERATIONS = (*ARITHMETIC, *TABLE)
MAX_STEPS = 20
"""Steps of a program; the longest of the data set has fewer than ten."""
MAX_LITERAL = 40
"""Characters of a number."""
MAX_ROW = 200
"""Characters of a row's name."""
EXAMPLE = "subtract(<number>, <number>), divide(#0, <number>)"

CALL = re.compile(  # an operation, or an unknown name in the form of one
    rf"(?<![\w#])((?i:{'|'.join(OPERATIONS)})(?=\s{{0,3}}\()|[a-z]\w{{0,30}}(?=\())\s{{0,3}}\("
)
_AHEAD = r"(?=[A-Za-z]\w{0,30}\s{0,3}\()"
_NUMBER = r"(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})"
_LITERAL = re.compile(rf"([+-]?{_NUMBER}(?:[eE][+-]?[0-9]{{1,3}})?)(?:\s?(%))?(?![\w.])")
_FORMATTED_NUMBER = re.compile(  # numbers as people write them
    r"(\()?\s{0,3}([-−–]?)\s{0,3}[$€£¥]?\s{0,3}([-−–]?)"
    rf"([0-9]{{1,3}}(?:,[0-9]{{3}}){{1,12}}(?:\.[0-9]{{1,60}})?|{_NUMBER})\s?(%?)(?(1)\s{{0,3}}\))(?![\w.])"
)
_CONSTANT = re.compile(r"const_(?:m1|[0-9]{1,40}(?:\.[0-9]{1,40})?)(?![\w.])")
_REFERENCE = re.compile(r"#[0-9]{1,3}(?!\w)")
_BLANK = re.compile(r"\s*+")
_BETWEEN = re.compile(r"\s*+(?:,\s*+)?")
_JOINS = re.compile(r"(?:\s|->|=>|[,;|→&`\"']|\band\b|\bthen\b)*+", re.IGNORECASE)
_NUMBERING = re.compile(r"(?:[-*•]\s{1,3})?(?:(?:step\s{0,3})?[0-9]{1,2}\s{0,2}[.):=](?!\d)\s{0,3})?", re.IGNORECASE)
_NAMED_STEP = re.compile(rf"(?:(#[0-9]{{1,3}})\s{{0,3}}[=:]|([A-Za-z_]\w{{0,40}})\s{{0,3}}=)\s{{0,3}}{_AHEAD}")
_RESULT = re.compile(
    r"\s{0,3}[=≈]\s{0,3}[-−]?\s?[$€£¥]?\s?[0-9]{1,40}(?:,[0-9]{3}){0,12}(?:\.[0-9]{1,40})?\s?%?(?!\w|\.\d)"
)
_HUNDRED = re.compile(
    r"\s{0,3}(?:\(\s?[*x×]\s?(?:100|const_100)\s?%?\s?\)|[*x×]\s?(?:100|const_100)\s?%?(?!\w|\.\d))", re.IGNORECASE
)
_COMMENT = re.compile(r"[^\S\n]{0,10}#[^\S\n][^\n]*+")
_OPERATOR = re.compile(rf"[^\S\n]{{0,3}}(?:[-+*/×÷^=≈x]\s{{0,3}}[0-9(#$.]|[-+*/×÷^=≈]\s{{0,3}}{_AHEAD})")
_EMPTY_LINE = re.compile(r"\n[^\S\n]*+\n")
_TAILS = (
    (_HUNDRED, "percentages are written as ratios"),
    (_RESULT, "results are not written"),
    (_COMMENT, "a program has no comments"),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no program, or no value, in words for its author."""

    words: str


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with its two arguments as text: numbers, constants, references.

    The arguments of a table operation are the row's name and "none".
    """

    operation: str
    arguments: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.operation}({', '.join(self.arguments)})"


@dataclass(frozen=True, slots=True)
class Program:
    """One to `MAX_STEPS` steps; the last one gives the result. `str` gives the benchmark's own form."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))


def parse(text: str) -> Program | Problem:
    """Read the whole of `text` as a program.

    >>> str(parse("divide(subtract(5829, 5735), 5735)"))
    'subtract(5829, 5735), divide(#0, 5735)'
    """
    reading = Reading(text, 0)
    program = reading.program()
    rest = text[reading.at :].strip()
    if isinstance(program, Program) and rest:
        return Problem(f"{rest[:40]!r} stands behind the program; a program is nothing but steps such as {EXAMPLE}")
    return program


class _TextError(Exception):
    """A `Problem` within nested reading."""


class _OpenCall:
    """A call that is not closed yet: its operation and its arguments."""

    __slots__ = ("arguments", "operation")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.arguments: list[str] = []


class Reading:
    """Reads one program from `start` on, as far as it goes. Afterwards `at` is its end.

    Args:
        blank_lines: whether empty lines may separate steps.
    """

    def __init__(self, text: str, start: int, blank_lines: bool = True) -> None:
        self.text, self.at, self._blank_lines = text, start, blank_lines
        self._steps: list[Step] = []
        self._results: list[int] = []  # for each step as written (with nested calls), the index of its result

    def program(self) -> Program | Problem:
        """Read the steps, or the first problem in them. Text that does not look like a step is left unread."""
        try:
            self._step()
            while self._further():
                self._step()
        except _TextError as error:
            return Problem(str(error))
        return Program(tuple(self._steps))

    def step_start(self) -> int | None:
        """Return where the operation of a step starts; None if there is none here."""
        at = self._prefix(_skip(_BLANK, self.text, self.at))
        return at if CALL.match(self.text, at) else None

    def _further(self) -> bool:
        """Return whether another step follows; if so, `at` is its start.

        Raises:
            _TextError: if arithmetic follows, or something stands between two steps.
        """
        self._refuse_tail()
        text, end = self.text, self.at
        if _OPERATOR.match(text, end):
            excerpt = text[end : end + 30].strip()
            raise _TextError(f"{excerpt!r} stands behind a step; write every operation as a call")
        start = _skip(_JOINS, text, end)
        separated = not self._blank_lines and _EMPTY_LINE.search(text, end, start)
        if separated or not CALL.match(text, self._prefix(start)):
            return False
        if _skip(_BETWEEN, text, end) != start:
            raise _TextError(f"{text[end:start].strip()!r:.40} stands between steps; commas part them")
        self.at = start
        return True

    def _refuse_tail(self) -> None:
        """Raise `_TextError` for what people write behind a step: times a hundred, its result, a comment."""
        for pattern, reason in _TAILS:
            if match := pattern.match(self.text, self.at):
                raise _TextError(f"{match[0].strip()!r:.60} stands behind a step; {reason}")

    def _prefix(self, at: int) -> int:
        """Return the start of the operation after numbering and a name."""
        at = _skip(_NUMBERING, self.text, at)
        match = _NAMED_STEP.match(self.text, at)
        return match.end() if match else at

    def _step(self) -> None:
        """Read one step as written, with its nested calls."""
        start = _skip(_BLANK, self.text, self.at)
        begin = self._prefix(start)
        if begin > start:
            prefix = self.text[start:begin].strip()
            raise _TextError(f"{prefix!r} stands before a step; write the operation alone")
        self.at = begin
        call = CALL.match(self.text, begin)
        if call is None:
            excerpt = self.text[begin : begin + 30]
            raise _TextError(f"there is no operation at {excerpt!r}")
        self._results.append(self._call(call))

    def _call(self, first: re.Match[str]) -> int:
        """Read a call and its nested calls, without recursion; return the index of its step."""
        open_calls: list[_OpenCall] = []
        call: re.Match[str] | None = first
        while True:
            if call is None:
                closed = open_calls.pop()
                result = self._add(Step(closed.operation, self._two(closed)))
            else:
                operation = self._operation(call[1])
                self.at = call.end()
                if operation not in TABLE:
                    open_calls.append(_OpenCall(operation))
                    if len(open_calls) + len(self._steps) > MAX_STEPS:
                        raise _TextError(f"the program has more than {MAX_STEPS} steps")
                    call = self._argument(open_calls[-1]) or self._rest(open_calls[-1])
                    continue
                result = self._add(Step(operation, (self._row(operation), "none")))
            if not open_calls:
                return result
            open_calls[-1].arguments.append(f"#{result}")
            call = self._rest(open_calls[-1])

    def _argument(self, inner: _OpenCall) -> re.Match[str] | None:
        """Read one argument; if it is a call, return it unread."""
        self.at = _skip(_BLANK, self.text, self.at)
        if call := CALL.match(self.text, self.at):
            return call
        inner.arguments.append(self._value(inner.operation))
        return None

    def _rest(self, inner: _OpenCall) -> re.Match[str] | None:
        """After an argument, read up to the next nested call, and return it, or over the closing bracket: None."""
        while True:
            self.at = _skip(_BLANK, self.text, self.at)
            mark = self.text[self.at : self.at + 1]
            if mark == ")":
                self.at += 1
                return None
            if mark != ",":
                problem = f"{self.text[self.at : self.at + 30]!r} follows" if mark else "the text ends"
                raise _TextError(f"in {inner.operation}(…), {problem} where a comma or a closing bracket must stand")
            if len(inner.arguments) > 16:
                raise _TextError(f"{inner.operation} takes two arguments; there are many more")
            self.at += 1
            if call := self._argument(inner):
                return call

    def _value(self, operation: str) -> str:
        """Read a number, a constant, a reference or a name."""
        text, at = self.text, self.at
        if literal := _LITERAL.match(text, at):
            self.at = literal.end()
            return _short(literal[1] + (literal[2] or ""))
        if constant := _CONSTANT.match(text, at):
            self.at = constant.end()
            return constant[0]
        if reference := _REFERENCE.match(text, at):
            number = int(reference[0][1:])
            if number >= len(self._results):
                raise _TextError(f"{reference[0]} is not an earlier step; #0 is the first")
            self.at = reference.end()
            return f"#{self._results[number]}"
        if number_text := _FORMATTED_NUMBER.match(text, at):
            raise _TextError(
                f"{number_text[0].strip()!r} is not written as a number; write digits and a point only, like -5829.5"
            )
        excerpt = re.split(r"[,)\n]", text[at : at + 40])[0].strip()
        raise _TextError(
            f"in {operation}(…), {excerpt!r} is no argument; one is a number, a constant such as const_100, "
            "or an earlier step such as #0"
        )

    def _row(self, operation: str) -> str:
        """Read a row's name, which may have commas and pairs of brackets, and `none`."""
        depth, start = 1, self.at
        at = start
        for at in range(start, min(len(self.text), start + MAX_ROW + 10)):
            mark = self.text[at]
            depth += (mark == "(") - (mark == ")")
            if depth and mark != "\n":
                continue
            if depth:
                break
            self.at = at + 1
            name, comma, last = self.text[start:at].rpartition(",")
            if not comma or last.strip() != "none":
                raise _TextError(f"{operation} takes a row's name and none: {operation}(net income, none)")
            return " ".join(name.encode("utf-8", "replace").decode().split()) or _raise(
                f"{operation} has no row's name"
            )
        self.at = at  # later reading starts here, not at the beginning of the name
        raise _TextError(f"the bracket of {operation}(…) is not closed, or the row's name is too long")

    def _operation(self, name: str) -> str:
        if name in OPERATIONS:
            return name
        if name.casefold() in OPERATIONS:
            raise _TextError(f"{name} is written in small letters: {name.casefold()}")
        raise _TextError(f"there is no operation {name}. {near(name.casefold(), OPERATIONS)}")

    def _two(self, call: _OpenCall) -> tuple[str, str]:
        arguments = call.arguments
        if len(arguments) != 2:
            raise _TextError(f"{call.operation} takes two arguments, not {len(arguments)}: {', '.join(arguments)[:60]}")
        return _short(arguments[0]), _short(arguments[1])

    def _add(self, step: Step) -> int:
        if len(self._steps) >= MAX_STEPS:
            raise _TextError(f"the program has more than {MAX_STEPS} steps")
        self._steps.append(step)
        return len(self._steps) - 1


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _short(literal: str) -> str:
    return literal if len(literal) <= MAX_LITERAL else _raise(f"a number has more than {MAX_LITERAL} characters")


def _raise(words: str) -> NoReturn:
    raise _TextError(words)
