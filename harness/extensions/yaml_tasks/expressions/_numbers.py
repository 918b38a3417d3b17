"""Functions of expressions: of numbers, and of many values that give one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any, Final

from harness.extensions.yaml_tasks.step_limits import Supply, room, take

from ._guards import MAX_BITS, UnfitValueError, charge
from ._guards import _add as plus
from ._guards import _mult as times
from ._registered import as_text, function, gone_through

_NOTHING: Final = object()
_NUMBERS: Final = frozenset({int, float, bool})
_SMALL: Final = 2**1_000
"""Below it whole numbers are so small that no sum of a list of them is too large."""


# ---------------------------------------------------------------------------------------- numbers


@function
def abs_(steps: Supply, x: Any) -> Any:
    """The distance from 0."""
    return abs(x)


@function
def round_(steps: Supply, x: Any, digits: int | None = None) -> Any:
    """The nearest number with so many decimals; without `digits` a whole number. Halves go to the even one."""
    return round(x, digits if digits is None else max(digits, -MAX_BITS))  # Python works out 10 ** -digits


@function
def floor(steps: Supply, x: float) -> int:
    """The largest whole number that is not above x."""
    return math.floor(x)


@function
def ceil(steps: Supply, x: float) -> int:
    """The smallest whole number that is not below x."""
    return math.ceil(x)


@function
def sqrt(steps: Supply, x: Any) -> float:
    """The square root."""
    return math.sqrt(x)


@function
def exp(steps: Supply, x: Any) -> float:
    """e to the power of x."""
    return math.exp(x)


@function
def log(steps: Supply, x: Any, base: Any = math.e) -> float:
    """The logarithm; natural unless a base is given."""
    return math.log(x) if base == math.e else math.log(x, base)


@function
def gcd(steps: Supply, a: int, b: int) -> int:
    """The greatest common divisor of two whole numbers."""
    return math.gcd(a, b)


@function
def int_(steps: Supply, x: Any) -> int:
    """A whole number: the text read, or the decimals of a number dropped."""
    if isinstance(x, str):
        room(len(x), 1_000)
    return int(x)


@function
def float_(steps: Supply, x: Any) -> float:
    """A number with decimals."""
    return float(x)


# ------------------------------------------------------------------------------------ of many one


@function
def len_(steps: Supply, values: Any) -> int:
    """How many entries, or characters."""
    return len(values)


@function
def sum_(steps: Supply, values: Any, start: Any = 0) -> Any:
    """The sum of numbers."""
    many = list(gone_through(steps, values))
    if _NUMBERS.issuperset(map(type, many)) and (not many or (min(many) > -_SMALL and max(many) < _SMALL)):
        return sum(many, start)
    total = start
    for one in many:
        total = plus(steps, total, one)
    return total


@function
def prod(steps: Supply, values: Any) -> Any:
    """The product of numbers."""
    product = 1
    for one in gone_through(steps, values):
        product = times(steps, product, one)
    return product


def _extreme(choose: Callable[..., Any], steps: Supply, values: tuple[Any, ...], key: Any, default: Any) -> Any:
    if len(values) == 2 and key is None and type(values[0]) in _NUMBERS and type(values[1]) in _NUMBERS:
        return choose(values)
    many = list(gone_through(steps, values[0] if len(values) == 1 else values))
    if not many:
        if default is _NOTHING:
            raise UnfitValueError("there are no values; give a default=")
        return default
    keys = many if key is None else [key(one) for one in many]
    charge(steps, keys)
    if key is None:
        return choose(many)
    return many[choose(range(len(many)), key=keys.__getitem__)]


@function
def min_(steps: Supply, *values: Any, key: Any = None, default: Any = _NOTHING) -> Any:
    """The smallest of a list, or of several values; `key=lambda x: …` compares by something else."""
    return _extreme(min, steps, values, key, default)


@function
def max_(steps: Supply, *values: Any, key: Any = None, default: Any = _NOTHING) -> Any:
    """The largest of a list, or of several values; `key=lambda x: …` compares by something else."""
    return _extreme(max, steps, values, key, default)


@function
def mean(steps: Supply, values: Any) -> float:
    """The mean of numbers."""
    return statistics.fmean(gone_through(steps, values))


@function
def median(steps: Supply, values: Any) -> Any:
    """The median of numbers; of an even number of them the mean of the two in the middle."""
    many = list(gone_through(steps, values))
    charge(steps, many, len(many).bit_length())
    return statistics.median(many)


@function
def pstdev(steps: Supply, values: Any) -> float:
    """The standard deviation of numbers, divided by n."""
    many = [float(one) for one in gone_through(steps, values)]
    middle = math.fsum(many) / len(many)
    return math.sqrt(math.fsum((one - middle) ** 2 for one in many) / len(many))


@function
def any_(steps: Supply, values: Any) -> bool:
    """Whether one of the values holds."""
    return any(gone_through(steps, values))


@function
def all_(steps: Supply, values: Any) -> bool:
    """Whether all of the values hold; of no values, yes."""
    return all(gone_through(steps, values))


@function
def count(steps: Supply, values: Any, value: Any) -> int:
    """How many entries equal a value; in a text, how often a part occurs without overlaps."""
    if isinstance(values, str):
        take(steps, len(values))
        return values.count(as_text(value))
    many = list(gone_through(steps, values))
    charge(steps, many)
    return many.count(value)


@function
def index(steps: Supply, values: Any, value: Any) -> int | None:
    """The position of the first entry that equals a value, or of a part in a text; None if there is none."""
    if isinstance(values, str):
        take(steps, len(values))
        return None if (at := values.find(as_text(value))) < 0 else at
    many = list(gone_through(steps, values))
    charge(steps, many)
    return many.index(value) if value in many else None


@function
def reduce(steps: Supply, function: Any, values: Any, start: Any) -> Any:
    """The result of `function(so_far, value)` over all values, beginning with `start`."""
    result = start
    for one in gone_through(steps, values):
        result = function(result, one)
    return result
