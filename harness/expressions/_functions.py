"""The functions of expressions: pure, and bounded by the supply of steps, which each takes first.

The first line of a docstring is the function's line in the documentation (docs/reference/expressions.md).
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from harness.steps import Supply, counted, room, take, weight

from ._guards import MAX_BITS, MAX_SIZE, UnfitValueError, charge, entries, nested, ordered, short
from ._guards import _add as plus
from ._guards import _mult as times

FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
_NOTHING: Final = object()
_NUMBERS: Final = frozenset({int, float, bool})
_SMALL: Final = 2**1_000
"""Below it whole numbers are so small that no sum of a list of them is too large."""


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a function under its name, without the `_` that keeps it apart from Python's own."""
    FUNCTIONS[function.__name__.rstrip("_")] = function
    return function


def _items(steps: Supply, values: Any) -> Any:
    """What a function goes through, a step an entry."""
    return counted(steps, entries(steps, values))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UnfitValueError(f"it takes a text, not {short(value):.40}")
    return value


# ---------------------------------------------------------------------------------------- numbers


@_function
def abs_(steps: Supply, x: Any) -> Any:
    """The distance from 0."""
    return abs(x)


@_function
def round_(steps: Supply, x: Any, digits: int | None = None) -> Any:
    """The nearest number with so many decimals; without `digits` a whole number. Halves go to the even one."""
    return round(x, digits if digits is None else max(digits, -MAX_BITS))  # Python works out 10 ** -digits


@_function
def floor(steps: Supply, x: float) -> int:
    """The largest whole number that is not above x."""
    return math.floor(x)


@_function
def ceil(steps: Supply, x: float) -> int:
    """The smallest whole number that is not below x."""
    return math.ceil(x)


@_function
def sqrt(steps: Supply, x: Any) -> float:
    """The square root."""
    return math.sqrt(x)


@_function
def exp(steps: Supply, x: Any) -> float:
    """e to the power of x."""
    return math.exp(x)


@_function
def log(steps: Supply, x: Any, base: Any = math.e) -> float:
    """The logarithm; natural unless a base is given."""
    return math.log(x) if base == math.e else math.log(x, base)


@_function
def gcd(steps: Supply, a: int, b: int) -> int:
    """The greatest common divisor of two whole numbers."""
    return math.gcd(a, b)


@_function
def int_(steps: Supply, x: Any) -> int:
    """A whole number: the text read, or the decimals of a number dropped."""
    if isinstance(x, str):
        room(len(x), 1_000)
    return int(x)


@_function
def float_(steps: Supply, x: Any) -> float:
    """A number with decimals."""
    return float(x)


# ------------------------------------------------------------------------------------ of many one


@_function
def len_(steps: Supply, values: Any) -> int:
    """How many entries, or characters."""
    return len(values)


@_function
def sum_(steps: Supply, values: Any, start: Any = 0) -> Any:
    """The sum of numbers."""
    many = list(_items(steps, values))
    if _NUMBERS.issuperset(map(type, many)) and (not many or (min(many) > -_SMALL and max(many) < _SMALL)):
        return sum(many, start)
    total = start
    for one in many:
        total = plus(steps, total, one)
    return total


@_function
def prod(steps: Supply, values: Any) -> Any:
    """The product of numbers."""
    product = 1
    for one in _items(steps, values):
        product = times(steps, product, one)
    return product


def _extreme(choose: Callable[..., Any], steps: Supply, values: tuple[Any, ...], key: Any, default: Any) -> Any:
    if len(values) == 2 and key is None and type(values[0]) in _NUMBERS and type(values[1]) in _NUMBERS:
        return choose(values)
    many = list(_items(steps, values[0] if len(values) == 1 else values))
    if not many:
        if default is _NOTHING:
            raise UnfitValueError("there are no values; give a default=")
        return default
    keys = many if key is None else [key(one) for one in many]
    charge(steps, keys)
    if key is None:
        return choose(many)
    return many[choose(range(len(many)), key=keys.__getitem__)]


@_function
def min_(steps: Supply, *values: Any, key: Any = None, default: Any = _NOTHING) -> Any:
    """The smallest of a list, or of several values; `key=lambda x: …` compares by something else."""
    return _extreme(min, steps, values, key, default)


@_function
def max_(steps: Supply, *values: Any, key: Any = None, default: Any = _NOTHING) -> Any:
    """The largest of a list, or of several values; `key=lambda x: …` compares by something else."""
    return _extreme(max, steps, values, key, default)


@_function
def mean(steps: Supply, values: Any) -> float:
    """The mean of numbers."""
    return statistics.fmean(_items(steps, values))


@_function
def median(steps: Supply, values: Any) -> Any:
    """The median of numbers; of an even number of them the mean of the two in the middle."""
    many = list(_items(steps, values))
    charge(steps, many, len(many).bit_length())
    return statistics.median(many)


@_function
def pstdev(steps: Supply, values: Any) -> float:
    """The standard deviation of numbers, divided by n."""
    many = [float(one) for one in _items(steps, values)]
    middle = math.fsum(many) / len(many)
    return math.sqrt(math.fsum((one - middle) ** 2 for one in many) / len(many))


@_function
def any_(steps: Supply, values: Any) -> bool:
    """Whether one of the values holds."""
    return any(_items(steps, values))


@_function
def all_(steps: Supply, values: Any) -> bool:
    """Whether all of the values hold; of no values, yes."""
    return all(_items(steps, values))


@_function
def count(steps: Supply, values: Any, value: Any) -> int:
    """How many entries equal a value; in a text, how often a part occurs without overlaps."""
    if isinstance(values, str):
        take(steps, len(values))
        return values.count(_text(value))
    many = list(_items(steps, values))
    charge(steps, many)
    return many.count(value)


@_function
def index(steps: Supply, values: Any, value: Any) -> int | None:
    """The position of the first entry that equals a value, or of a part in a text; None if there is none."""
    if isinstance(values, str):
        take(steps, len(values))
        return None if (at := values.find(_text(value))) < 0 else at
    many = list(_items(steps, values))
    charge(steps, many)
    return many.index(value) if value in many else None


@_function
def reduce(steps: Supply, function: Any, values: Any, start: Any) -> Any:
    """What `function(so_far, value)` makes of all values, from `start` on."""
    result = start
    for one in _items(steps, values):
        result = function(result, one)
    return result


# ----------------------------------------------------------------------------------- of many many


@_function
def range_(steps: Supply, *ends: int) -> range:
    """The whole numbers from 0, or from a start, to before an end; a third number is the step."""
    numbers = range(*ends)
    room(len(numbers), MAX_SIZE)
    return numbers


@_function
def list_(steps: Supply, values: Any = ()) -> list[Any]:
    """The entries as a list; the characters of a text."""
    return list(_items(steps, values))


@_function
def set_(steps: Supply, values: Any = ()) -> frozenset[Any]:
    """The distinct entries. Going through a set gives them in ascending order."""
    return nested(steps, frozenset(_items(steps, values)))


@_function
def dict_(steps: Supply, pairs: Any = ()) -> dict[Any, Any]:
    """A mapping of [key, value] pairs; later ones win."""
    return dict(_items(steps, pairs))


@_function
def merge(steps: Supply, *mappings: Mapping[Any, Any]) -> dict[Any, Any]:
    """One mapping of several; later entries win."""
    merged: dict[Any, Any] = {}
    for mapping in mappings:
        take(steps, len(mapping))
        merged |= mapping
    return merged


@_function
def sorted_(steps: Supply, values: Any, key: Any = None, reverse: bool = False) -> list[Any]:
    """The entries in ascending order; `key=lambda x: …` compares by something else. Equal ones keep their order."""
    many = list(_items(steps, values))
    keys = many if key is None else [key(one) for one in many]
    charge(steps, keys, len(many).bit_length())
    if key is None:
        return ordered(many, reverse)
    order = sorted(range(len(many)), key=keys.__getitem__, reverse=reverse)
    return [many[i] for i in order]


@_function
def reversed_(steps: Supply, values: Any) -> Any:
    """The entries, or the text, from the last to the first."""
    if isinstance(values, str):
        take(steps, len(values))
        return values[::-1]
    return list(_items(steps, values))[::-1]


@_function
def unique(steps: Supply, values: Any) -> list[Any]:
    """The distinct entries, in the order in which they come first."""
    return list(dict.fromkeys(_items(steps, values)))


@_function
def enumerate_(steps: Supply, values: Any, start: int = 0) -> list[tuple[int, Any]]:
    """Pairs of position and entry."""
    return list(enumerate(_items(steps, values), start))


@_function
def zip_(steps: Supply, *many: Any) -> list[tuple[Any, ...]]:
    """Entries at the same position of several lists together, as far as the shortest goes."""
    return list(zip(*(_items(steps, values) for values in many), strict=False))


@_function
def flatten(steps: Supply, values: Any) -> list[Any]:
    """The entries of a list of lists in one list."""
    return [one for inner in _items(steps, values) for one in _items(steps, inner)]


@_function
def chunks(steps: Supply, values: Any, size: int) -> list[Any]:
    """Consecutive pieces of a list or text, each of `size` entries but the last, which may be shorter."""
    if not isinstance(size, int) or size < 1:
        raise UnfitValueError(f"pieces need a size of at least 1, not {short(size)}")
    many = values if isinstance(values, str) else list(_items(steps, values))
    take(steps, len(many))
    return [many[i : i + size] for i in range(0, len(many), size)]


@_function
def windows(steps: Supply, values: Any, size: int) -> list[Any]:
    """All pieces of `size` neighboring entries of a list or text."""
    if not isinstance(size, int) or size < 1:
        raise UnfitValueError(f"pieces need a size of at least 1, not {short(size)}")
    many = values if isinstance(values, str) else list(_items(steps, values))
    number = max(0, len(many) - size + 1)
    room(number * size, MAX_SIZE)
    take(steps, number * (1 + size // 4))
    return [many[i : i + size] for i in range(number)]


@_function
def pairs(steps: Supply, values: Any) -> list[tuple[Any, Any]]:
    """All pairs of two entries at different positions, each once."""
    many = list(_items(steps, values))
    room(len(many) * len(many), MAX_SIZE)
    return list(counted(steps, itertools.combinations(many, 2)))


@_function
def accumulate(steps: Supply, values: Any, function: Any = None) -> list[Any]:
    """The running totals, or what `function(so_far, value)` makes of each value and all before it."""
    add = (lambda so_far, one: plus(steps, so_far, one)) if function is None else function
    return list(itertools.accumulate(_items(steps, values), add))


@_function
def counts(steps: Supply, values: Any) -> dict[Any, int]:
    """How often each entry occurs, in the order in which they come first."""
    return dict(Counter(_items(steps, values)))


@_function
def group(steps: Supply, values: Any, key: Any) -> dict[Any, list[Any]]:
    """A mapping of `key(entry)` to the entries that have it."""
    groups: dict[Any, list[Any]] = {}
    for one in _items(steps, values):
        groups.setdefault(key(one), []).append(one)
    return groups


@_function
def keys(steps: Supply, mapping: Mapping[Any, Any]) -> list[Any]:
    """The keys of a mapping."""
    return list(_items(steps, mapping if isinstance(mapping, Mapping) else _no_mapping(mapping)))


@_function
def values(steps: Supply, mapping: Mapping[Any, Any]) -> list[Any]:
    """The values of a mapping."""
    return [mapping[key] for key in keys(steps, mapping)]


@_function
def items(steps: Supply, mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Pairs of key and value of a mapping."""
    return [(key, mapping[key]) for key in keys(steps, mapping)]


@_function
def put(steps: Supply, values: Any, key: Any, value: Any) -> Any:
    """The same mapping, or list, with another entry at a key, or position."""
    take(steps, len(values))
    if isinstance(values, Mapping):
        return {**values, key: value}
    if not isinstance(values, (list, tuple)):
        raise UnfitValueError(f"it takes a mapping or a list, not {values!r:.40}")
    many = list(values)
    many[key] = value
    return many


@_function
def get(steps: Supply, mapping: Any, key: Any, default: Any = None) -> Any:
    """The entry of a mapping or list; the default, None, if there is none."""
    try:
        return mapping[key]
    except (KeyError, IndexError, TypeError):
        return default


def _no_mapping(value: Any) -> Any:
    raise UnfitValueError(f"it takes a mapping, not {short(value):.40}")


# ----------------------------------------------------------------------------------------- graphs


def _neighbors(steps: Supply, edges: Any) -> dict[Any, list[Any]]:
    near: dict[Any, list[Any]] = {}
    for edge in _items(steps, edges):
        if not isinstance(edge, (list, tuple)) or len(edge) < 2:
            raise UnfitValueError(f"an edge is a list of two nodes, not {short(edge):.40}")
        near.setdefault(edge[0], []).append(edge[1])
        near.setdefault(edge[1], []).append(edge[0])
    return near


def _reached(steps: Supply, near: Mapping[Any, list[Any]], start: Any) -> dict[Any, int]:
    far, ring = {start: 0}, [start]
    for hops in itertools.count(1):
        ring = list(dict.fromkeys(b for a in ring for b in counted(steps, near.get(a, ())) if b not in far))
        if not ring:
            break
        far.update(dict.fromkeys(ring, hops))
    return far


@_function
def distances(steps: Supply, edges: Any, start: Any) -> dict[Any, int]:
    """A mapping of every node that paths of edges join to a start to the least number of edges between them."""
    return _reached(steps, _neighbors(steps, edges), start)


@_function
def components(steps: Supply, edges: Any, nodes: Any = ()) -> list[list[Any]]:
    """The lists of nodes that paths of edges join; `nodes=` adds those without an edge."""
    near, seen, parts = _neighbors(steps, edges), set[Any](), []
    for node in (*_items(steps, nodes), *near):
        if node not in seen:
            parts.append(list(_reached(steps, near, node)))
            seen.update(parts[-1])
    return parts


# ------------------------------------------------------------------------------------------ texts


@_function
def str_(steps: Supply, x: Any) -> str:
    """The value as text."""
    take(steps, weight(x, MAX_SIZE))
    if not isinstance(x, str) and _has_sets(x):
        raise UnfitValueError("a set has no order to write it in: write str(list(x))")
    return str(x)


def _has_sets(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_sets, value)) or any(map(_has_sets, value.values()))
    return isinstance(value, (set, frozenset)) or (isinstance(value, (list, tuple)) and any(map(_has_sets, value)))


@_function
def join(steps: Supply, separator: str, values: Any) -> str:
    """The texts one after another, with a separator between them."""
    parts = [_text(one) for one in _items(steps, values)]
    length = sum(map(len, parts)) + len(_text(separator)) * len(parts)
    room(length, MAX_SIZE)
    take(steps, length // 16)
    return separator.join(parts)


@_function
def split(steps: Supply, text: str, separator: str | None = None) -> list[str]:
    """The parts of a text between separators; without one, its words."""
    take(steps, len(_text(text)))
    return text.split(separator)


@_function
def lower(steps: Supply, text: str) -> str:
    """The text in small letters."""
    take(steps, len(_text(text)) // 16)
    return text.lower()


@_function
def upper(steps: Supply, text: str) -> str:
    """The text in capitals."""
    take(steps, len(_text(text)) // 16)
    return text.upper()


@_function
def strip(steps: Supply, text: str) -> str:
    """The text without spaces and line ends around it."""
    take(steps, len(_text(text)) // 16)
    return text.strip()


@_function
def startswith(steps: Supply, text: str, start: str) -> bool:
    """Whether a text starts with another."""
    return _text(text).startswith(_text(start))


@_function
def endswith(steps: Supply, text: str, end: str) -> bool:
    """Whether a text ends with another."""
    return _text(text).endswith(_text(end))


@_function
def ord_(steps: Supply, character: str) -> int:
    """The number of a character."""
    return ord(character)


@_function
def chr_(steps: Supply, number: int) -> str:
    """The character of a number."""
    if 0xD800 <= number <= 0xDFFF:
        raise UnfitValueError("half a character: no file can hold it")
    return chr(number)
