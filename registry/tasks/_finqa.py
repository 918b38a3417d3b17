"""FinQA's programs: execution and equality (Chen et al. 2021, sections 3.2 and 5).

Execution accuracy compares results: floats rounded to five decimals, no tolerance. Program accuracy compares the
formulas: every distinct literal of the gold program is a symbol, and a program with any other literal is wrong, so
`40.0` is not `40` and `const_100` is not `100`.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ._finqa_reply import ProgramReply
from ._finqa_text import ARITHMETIC, EXAMPLE, OPERATIONS, TABLE, Problem, Program, Step, parse

__all__ = [
    "ARITHMETIC",
    "EXAMPLE",
    "OPERATIONS",
    "TABLE",
    "Problem",
    "Program",
    "ProgramReply",
    "Step",
    "Value",
    "execute",
    "execution_equal",
    "parse",
    "program_equal",
]

Value = float | Literal["yes", "no"]
"""The result of a program."""
Table = Sequence[Sequence[str]]
"""Rows of cells as in the data set; the first cell of a row is its name."""

DECIMALS = 5
_PRIME = 2**127 - 1
_CELL = re.compile(r"\s*+([-−]?)\s*+[$€£¥]?\s*+([-−]?)\s*+([0-9][0-9,]{0,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})\s*+(%?)")


def execute(program: Program, table: Table | None = None) -> Value | Problem:
    """Return the last step's result, rounded to five decimals, or why a step has none. Never raises.

    Computes with floats, as the benchmark does, because its gold values are floats and compared exactly.
    """
    results: list[Value] = []
    for step in program.steps:
        try:
            result = _table(step, table) if step.operation in TABLE else _arithmetic(step, results)
        except OverflowError:
            return Problem(f"{step} has no result: the number is too large")
        except ValueError as error:
            return Problem(f"{step} has no result: {error}")
        results.append(result)
    last = results[-1]
    return last if isinstance(last, str) else round(last, DECIMALS)


def execution_equal(value: Value | Problem, gold: Any) -> bool:
    """Return whether a result is the gold one: the same number to five decimals, or the same word.

    False for a `Problem`, truth values and numbers that are not finite. Never raises.
    """
    if isinstance(value, str) or isinstance(gold, str):
        return isinstance(value, str) and value in ("yes", "no") and value == gold
    numbers = [n for n in (value, gold) if isinstance(n, (int, float)) and not isinstance(n, bool)]
    if len(numbers) != 2 or not all(abs(n) < 1e308 for n in numbers):
        return False
    return round(float(numbers[0]), DECIMALS) == round(float(numbers[1]), DECIMALS)


def program_equal(program: Program, gold: Program) -> bool:
    """Return whether `program` is the gold program up to algebra, with literals as symbols.

    Two programs are equal if their last steps are the same rational function of the literals. `exp`, `greater` and the
    table operations are uninterpreted functions. The result is False if any step of `program` has a literal or a row
    that the gold program lacks, or if either program divides by an expression that is always 0.

    Both are evaluated at one random point of a prime field (Schwartz 1980; Zippel 1979), in time linear in the steps.
    Twenty steps have degrees of at most 2**20, so different functions agree with a probability below 2**-100.
    """
    if not _symbols(program) <= _symbols(gold):
        return False
    point, gold_point = _residue(program), _residue(gold)
    return point is not None and point == gold_point


def _arithmetic(step: Step, results: Sequence[Value]) -> Value:
    """Return the step's result.

    Raises:
        ValueError: where there is no finite real number, in words.
        OverflowError: likewise, in a power.
    """
    a, b = (_number(argument, results) for argument in step.arguments)
    if step.operation == "greater":
        return "yes" if a > b else "no"
    if step.operation == "divide" and b == 0:
        raise ValueError("it divides by 0")
    if step.operation == "exp":
        if a == 0 and b < 0:
            raise ValueError("it divides by 0")
        if a < 0 and not b.is_integer():
            raise ValueError("a negative number has no real root")
        return _finite(a**b)
    return _finite({"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / b if b else 0.0}[step.operation])


def _number(argument: str, results: Sequence[Value]) -> float:
    if argument.startswith("#"):
        value = results[int(argument[1:])]
        if isinstance(value, str):
            raise ValueError(f"{argument} is {value}, not a number")
        return value
    if argument == "const_m1":
        return -1.0
    plain = argument.removeprefix("const_")
    return _finite(float(plain[:-1]) / 100 if plain.endswith("%") else float(plain))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("the number is too large")
    return value


def _table(step: Step, table: Table | None) -> float:
    name = step.arguments[0]
    rows: Mapping[str, Sequence[str]] = {" ".join(str(row[0]).split()): row[1:] for row in table or () if row}
    if name not in rows:
        raise ValueError(f"the table has no row {name!r}" if rows else "there is no table")
    cells = [_cell(str(cell)) for cell in rows[name]]
    if not cells:
        raise ValueError(f"the row {name!r} is empty")
    total = _finite(sum(cells))
    kind = step.operation.removeprefix("table_")
    return {"max": max(cells), "min": min(cells), "sum": total, "average": total / len(cells)}[kind]


def _cell(cell: str) -> float:
    """Return a cell's number: `$ 5,829`, `12.5 %` (0.125), `-35 ( 35 )` and `( 35 )` (-35), `5829 ( 2 )` (5829).

    Raises:
        ValueError: if it has none.
    """
    text = cell.strip()
    in_brackets = text.startswith("(") and text.endswith(")")
    match = _CELL.match(text[1:-1] if in_brackets else text)
    rest = text[match.end() + in_brackets : len(text) - in_brackets].strip() if match else text
    if match is None or (rest and not rest.startswith("(")):
        raise ValueError(f"the cell {cell!r:.40} is no number")
    value = float(match[3].replace(",", "")) / (100 if match[4] else 1)
    return -value if in_brackets or match[1] or match[2] else value


def _symbols(program: Program) -> set[str]:
    """Return the literals of all steps, and the table operations as literals."""
    literals = {a for s in program.steps if s.operation in ARITHMETIC for a in s.arguments if not a.startswith("#")}
    return literals | {str(s) for s in program.steps if s.operation in TABLE}


def _residue(program: Program) -> int | None:
    """Return the last step's function at the random point; None if it is undefined everywhere."""
    results: list[int | None] = []
    for step in program.steps:
        if step.operation in TABLE:
            results.append(_point(str(step)))
            continue
        a, b = (results[int(x[1:])] if x.startswith("#") else _point(x) for x in step.arguments)
        results.append(None if a is None or b is None else _combine(step.operation, a, b))
    return results[-1]


def _combine(operation: str, a: int, b: int) -> int | None:
    match operation:
        case "add":
            return (a + b) % _PRIME
        case "subtract":
            return (a - b) % _PRIME
        case "multiply":
            return a * b % _PRIME
        case "divide":
            return a * pow(b, -1, _PRIME) % _PRIME if b else None
    return _point(f"{operation}({a}, {b})")


def _point(symbol: str) -> int:
    """Return a symbol's coordinate of the random point. The author of a program cannot predict it."""
    return int.from_bytes(hashlib.blake2b(symbol.encode("utf-8", "replace"), digest_size=32).digest(), "big") % _PRIME
