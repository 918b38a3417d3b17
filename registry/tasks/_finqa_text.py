"""FinQA's program language as text: ten operations, literals, references (Chen et al. 2021, section 3.2).

    subtract(5829, 5735), divide(#0, 5735)

An argument is a number as in the report (`5829`, `-2.5`, `.5`, `12.5%`), a constant (`const_100`, `const_m1`), or the
result of an earlier step (`#0` is the first). A table operation takes a row's name and `none`.

Reading takes one pass over the text and never raises. It always accepts steps separated by commas or line breaks, and
nested calls, `divide(subtract(5829, 5735), 5735)`, which become steps of their own. Only with `repair=True` it accepts
what the benchmark does not read although the meaning is clear:

- names: `change = subtract(5829, 5735)`, `#0: subtract(…)`, used in later steps as an argument;
- numbering and bullets before a step: `1.`, `Step 2:`, `-`;
- `;`, `|`, an arrow, quotes, "and", "then" between steps;
- the result after a step: `= 94`; a comment to the end of its line: `# the change`;
- a last `* 100` (also in brackets, with x or ×), which is dropped because percentages are ratios here;
- numbers as people write them: `$ 5,829`, `(35)` for -35, the minus sign −;
- operations in capitals, and a table operation without its `none`.

Everything else is an error: arithmetic in signs (`5829 - 5735`), unknown operations, missing arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from harness.errors import near

ARITHMETIC = ("add", "subtract", "multiply", "divide", "exp", "greater")
TABLE = ("table_max", "table_min", "table_sum", "table_average")
OPERATIONS = (*ARITHMETIC, *TABLE)
MAX_STEPS = 20
"""Steps of a program; the longest of the data set has fewer than ten."""
MAX_LITERAL = 40
"""Characters of a number."""
MAX_ROW = 200
"""Characters of a row's name."""
EXAMPLE = "subtract(5829, 5735), divide(#0, 5735)"

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
_NAME = re.compile(r"#[0-9]{1,3}(?!\w)|[A-Za-z_]\w{0,40}(?![\w(])")
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


def parse(text: str, repair: bool = False) -> Program | Problem:
    """Read the whole of `text` as a program.

    >>> str(parse("divide(subtract(5829, 5735), 5735)"))
    'subtract(5829, 5735), divide(#0, 5735)'
    """
    reading = Reading(text, 0, repair)
    program = reading.program()
    rest = text[reading.at :].strip()
    if isinstance(program, Program) and rest:
        return Problem(f"{rest[:40]!r} stands behind the program; a program is nothing but steps such as {EXAMPLE}")
    return program


class _TextError(Exception):
    """A `Problem` within nested reading."""


class _OpenCall:
    """A call that is not closed yet: its operation, its arguments, and for each whether blanks precede it."""

    __slots__ = ("arguments", "operation", "separated")

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.arguments: list[str] = []
        self.separated: list[bool] = []


class Reading:
    """Reads one program from `start` on, as far as it goes. Afterwards `at` is its end.

    Args:
        blank_lines: whether empty lines may separate steps.
    """

    def __init__(self, text: str, start: int, repair: bool, blank_lines: bool = True) -> None:
        self.text, self.at, self._repair, self._blank_lines = text, start, repair, blank_lines
        self._steps: list[Step] = []
        self._results: list[int] = []  # for each step as written (with nested calls), the index of its result
        self._names: dict[str, int] = {}

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
        """Return where the operation of a step starts, repaired or not; None if there is none here."""
        at = self._prefix(_skip(_BLANK, self.text, self.at))[0]
        return at if CALL.match(self.text, at) else None

    def _further(self) -> bool:
        """Return whether another step follows; if so, `at` is its start.

        Raises:
            _TextError: if arithmetic follows, or a step that needs repair without `repair`.
        """
        text, end = self.text, self._tail(self.at)
        if _OPERATOR.match(text, end):
            excerpt = text[end : end + 30].strip()
            raise _TextError(f"{excerpt!r} stands behind a step; write every operation as a call")
        start = _skip(_JOINS, text, end)
        separated = not self._blank_lines and _EMPTY_LINE.search(text, end, start)
        if separated or not CALL.match(text, self._prefix(start)[0]):
            self.at = end
            return False
        if _skip(_BETWEEN, text, end) != start:
            self._require_repair(f"{text[end:start].strip()!r:.40} stands between steps; commas part them")
        self.at = start
        return True

    def _tail(self, at: int) -> int:
        """Skip what may follow a step: times a hundred, its result, a comment."""
        for pattern, reason in _TAILS:
            if match := pattern.match(self.text, at):
                self._require_repair(f"{match[0].strip()!r:.60} stands behind a step; {reason}")
                if pattern is _HUNDRED and CALL.match(self.text, _skip(_JOINS, self.text, match.end())):
                    raise _TextError(f"{match[0].strip()!r} stands behind a step that is not the last")
                at = match.end()
        return at

    def _prefix(self, at: int) -> tuple[int, str | None]:
        """Return the start of the operation after numbering and a name, and the name."""
        at = _skip(_NUMBERING, self.text, at)
        match = _NAMED_STEP.match(self.text, at)
        return (match.end(), match[1] or match[2]) if match else (at, None)

    def _step(self) -> None:
        """Read one step as written, with its nested calls."""
        start = _skip(_BLANK, self.text, self.at)
        begin, name = self._prefix(start)
        if begin > start:
            prefix = self.text[start:begin].strip()
            self._require_repair(f"{prefix!r} stands before a step; write the operation alone")
        self.at = begin
        call = CALL.match(self.text, begin)
        if call is None:
            excerpt = self.text[begin : begin + 30]
            raise _TextError(f"there is no operation at {excerpt!r}")
        result = self._call(call)
        self._results.append(result)
        if name:
            self._names[name.casefold()] = result

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
        before, self.at = self.at, _skip(_BLANK, self.text, self.at)
        inner.separated.append(self.at > before)
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
            if len(inner.arguments) > 16:  # no two numbers have so many groups of thousands
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
        name = _NAME.match(text, at)
        if name and name[0].casefold() in self._names:
            self.at = name.end()
            return f"#{self._names[name[0].casefold()]}"
        if reference := _REFERENCE.match(text, at):
            number = int(reference[0][1:])
            if number >= len(self._results):
                raise _TextError(f"{reference[0]} is not an earlier step; #0 is the first")
            self.at = reference.end()
            return f"#{self._results[number]}"
        if number_text := _FORMATTED_NUMBER.match(text, at):
            self._require_repair(
                f"{number_text[0].strip()!r} is not written as a number; write digits and a point only, like -5829.5"
            )
            self.at = number_text.end()
            negative = "-" if any(number_text.group(1, 2, 3)) else ""
            return _short(negative + number_text[4].replace(",", "") + number_text[5])
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
                self._require_repair(f"{operation} takes a row's name and none: {operation}(net income, none)")
                name = name if last.strip().casefold() == "none" else self.text[start:at]
            return " ".join(name.encode("utf-8", "replace").decode().split()) or _raise(
                f"{operation} has no row's name"
            )
        self.at = at  # later reading starts here, not at the beginning of the name
        raise _TextError(f"the bracket of {operation}(…) is not closed, or the row's name is too long")

    def _operation(self, name: str) -> str:
        if name in OPERATIONS:
            return name
        if name.casefold() in OPERATIONS:
            self._require_repair(f"{name} is written in small letters: {name.casefold()}")
            return name.casefold()
        raise _TextError(f"there is no operation {name}. {near(name.casefold(), OPERATIONS)}")

    def _two(self, call: _OpenCall) -> tuple[str, str]:
        """Return the two arguments. Further arguments are groups of thousands, if no blank separates them."""
        arguments = _thousands(call) if self._repair and len(call.arguments) > 2 else call.arguments
        if len(arguments) != 2:
            raise _TextError(f"{call.operation} takes two arguments, not {len(arguments)}: {', '.join(arguments)[:60]}")
        return _short(arguments[0]), _short(arguments[1])

    def _add(self, step: Step) -> int:
        if len(self._steps) >= MAX_STEPS:
            raise _TextError(f"the program has more than {MAX_STEPS} steps")
        self._steps.append(step)
        return len(self._steps) - 1

    def _require_repair(self, words: str) -> None:
        if not self._repair:
            raise _TextError(words)


def _thousands(call: _OpenCall) -> list[str]:
    """Return the arguments with groups of thousands joined: 1 | 234 | 5 in `add(1,234, 5)` are 1234 and 5."""
    joined: list[str] = []
    continues = False  # whether a group of thousands may follow the last number
    for value, separated in zip(call.arguments, call.separated, strict=True):
        if continues and not separated and re.fullmatch(r"[0-9]{3}(?:\.[0-9]*)?%?", value):
            joined[-1] += value
            continues = len(value) == 3
        else:
            joined.append(value)
            continues = re.fullmatch(r"[+-]?[0-9]{1,3}", value) is not None
    return joined


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _short(literal: str) -> str:
    return literal if len(literal) <= MAX_LITERAL else _raise(f"a number has more than {MAX_LITERAL} characters")


def _raise(words: str) -> NoReturn:
    raise _TextError(words)
