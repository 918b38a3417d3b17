"""What guarded expressions call in place of Python's own operators. Each takes the supply of steps first."""

from __future__ import annotations

import itertools
import math
import reprlib
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from harness.extensions.yaml_tasks.step_limits import LimitError, Supply, counted, room, take, weight

T = TypeVar("T")
MAX_SIZE: Final = 2_000_000
"""Characters and entries of a value."""
MAX_BITS: Final = 4_096
MAX_TUPLE: Final = 100_000
"""The same of a tuple: its hash is worked out again each time, and as often as it holds the same value."""
MAX_DEPTH: Final = 40
MAX_WHOLE: Final = 10 * MAX_SIZE
"""The weight of a value that an expression gives, with what it holds many times counted as often."""
_FEW: Final = 16
"""Scalars of a value that need no weighing."""
_LARGE: Final = 2**MAX_BITS
_PLAIN: Final = frozenset({int, float, bool, type(None)})
SCALAR: Final = _PLAIN | {str}
_UNORDERED: Final = frozenset({set, frozenset})
_HASHED: Final = frozenset({dict, set, frozenset})
_SIZED: Final = (str, list, tuple, dict, set, frozenset)
_MEASURED: Final = (list, tuple, set, frozenset, Mapping)


class UnfitValueError(Exception):
    """A value is not what an operator or function takes, in words for the expression's author."""


def _checked_number(value: Any) -> Any:
    """A number that was made, unless it is too large."""
    if type(value) is int and not -_LARGE < value < _LARGE:
        raise LimitError(f"a whole number of more than {MAX_BITS:,} bits")
    if type(value) is complex:
        raise UnfitValueError("a complex number")
    return value


def _joined(steps: Supply, a: Any, b: Any) -> None:
    if isinstance(a, _SIZED) and isinstance(b, _SIZED):
        room(len(a) + len(b), MAX_SIZE)
        take(steps, len(a) + len(b))


def _add(steps: Supply, a: Any, b: Any) -> Any:
    if type(a) not in _PLAIN:
        _joined(steps, a, b)
    return _tuple(steps, *(a + b)) if type(a) is tuple else _checked_number(a + b)


def _sub(steps: Supply, a: Any, b: Any) -> Any:
    if type(a) not in _PLAIN:
        _joined(steps, a, b)
    return _checked_number(a - b)


def _mult(steps: Supply, a: Any, b: Any) -> Any:
    if type(a) in _PLAIN and type(b) in _PLAIN:
        return _checked_number(a * b)
    for many, times in ((a, b), (b, a)):
        if isinstance(many, _SIZED) and isinstance(times, int):
            room(len(many) * max(times, 0), MAX_SIZE)
            take(steps, len(many) * max(times, 0))
    return [*a] * b if type(a) is tuple else a * [*b] if type(b) is tuple else _checked_number(a * b)


def _and(steps: Supply, a: Any, b: Any) -> Any:
    _joined(steps, a, b)
    return a & b


def _or(steps: Supply, a: Any, b: Any) -> Any:
    _joined(steps, a, b)
    return nested(steps, a | b)


def _xor(steps: Supply, a: Any, b: Any) -> Any:
    _joined(steps, a, b)
    return nested(steps, a ^ b)


def nested(steps: Supply, made: T) -> T:
    """A set that was made. Sets in sets take steps: comparing them goes through each as often as it is there."""
    if isinstance(made, frozenset) and any(type(one) is frozenset for one in made):
        take(steps, 1 + weight(made, MAX_SIZE) // 16)
    return made


def _pow(steps: Supply, a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and a.bit_length() * max(b, 0) > 2 * MAX_BITS:
        raise LimitError(f"a whole number of more than {MAX_BITS:,} bits")
    return _checked_number(a**b)


def _mod(steps: Supply, a: Any, b: Any) -> Any:
    if isinstance(a, str):
        raise UnfitValueError("% does not format texts: write str(x) + …")
    return a % b


def _sized(steps: Supply, value: Any) -> Any:
    """An operand of a comparison, which takes as many steps as it is large."""
    kind = type(value)
    if kind is str:
        if len(value) > 100:
            take(steps, len(value) // 16)
    elif kind not in _PLAIN and isinstance(value, _MEASURED):
        take(steps, 1 + weight(value, MAX_SIZE) // 16)
    elif kind is range:
        take(steps, 1 + len(value) // 16)
    return value


def _searched(steps: Supply, value: Any) -> Any:
    """What follows `in`: a mapping or a set finds an entry at once, and a few words take no longer."""
    if type(value) in _HASHED or (type(value) is list and len(value) <= 16 and SCALAR.issuperset(map(type, value))):
        return value
    return _sized(steps, value)


def _tuple(steps: Supply, *entries: Any) -> tuple[Any, ...]:
    if not SCALAR.issuperset(map(type, entries)):
        take(steps, 1 + weight(entries, MAX_TUPLE) // 16)
    return entries


def _tick(steps: Supply, price: int) -> None:
    deque(itertools.islice(steps, price), 0)  # `take`, without another call


def _slice(steps: Supply, value: Any, start: Any, end: Any, step: Any) -> Any:
    if not isinstance(value, (str, list, tuple)):
        raise UnfitValueError(f"{type(value).__name__} has no order to cut a piece from")
    part = value[start:end:step]
    take(steps, len(part))
    return part


def _field(steps: Supply, value: Any, name: str) -> Any:
    if type(value) is not dict and not isinstance(value, Mapping):
        raise UnfitValueError(f"no value has the field {name!r} here: it is {_kind(value)}")
    return value[name]


def _kind(value: Any) -> str:
    names = {str: "a text", int: "a number", float: "a number", list: "a list", tuple: "a list", type(None): "None"}
    return names.get(type(value), f"of type {type(value).__name__}")


def entries(steps: Supply, value: Any) -> Iterable[Any]:
    """The entries of a value in a fixed order: sets sorted, mappings' keys as they stand."""
    if isinstance(value, (set, frozenset)):
        take(steps, 4 * len(value))
        if not SCALAR.issuperset(map(type, value)):
            take(steps, weight(value, MAX_SIZE) // 16)
        return settled(value)
    if isinstance(value, (list, tuple, str, range, Mapping, Iterator)):
        return value
    raise UnfitValueError(f"there is nothing to go through: it is {_kind(value)}")


def ordered(values: Iterable[Any], reverse: bool = False) -> list[Any]:
    """Sorted, and where entries have no order of their own, by kind: None, numbers, texts, lists, sets, mappings."""
    try:
        return sorted(values, reverse=reverse)
    except TypeError:
        return sorted(values, key=_rank, reverse=reverse)


def settled(values: Iterable[Any]) -> list[Any]:
    """The entries of a set in an order that does not hang on the order in which Python has them.

    Sets among them, and NaN, have no order of their own, and Python would not say so.
    """
    kinds = {*map(type, values)}
    if tuple in kinds:
        kinds = kinds - {tuple} | {type(part) for one in values if type(one) is tuple for part in one}
    whole_or_text = kinds <= {int, bool, str, type(None)}
    if whole_or_text or (kinds <= {int, bool, float} and not any(map(math.isnan, values))):
        return ordered(values)
    return sorted(values, key=_rank)


def _rank(value: Any) -> tuple[Any, ...]:
    """A key that puts all values in one order, whatever order they come in."""
    if value is None:
        return (0,)
    if isinstance(value, (int, float)):
        return (1,) if math.isnan(value) else (2, value)  # NaN is neither above nor below a number
    if isinstance(value, str):
        return (3, value)
    if isinstance(value, (list, tuple, range)):
        return (4, [*map(_rank, value)])
    if isinstance(value, (set, frozenset)):
        return (5, sorted(map(_rank, value)))
    return (6, sorted((_rank(key), _rank(one)) for key, one in value.items()))


def charge(steps: Supply, values: list[Any], times: int = 1) -> None:
    """Take steps for comparing entries, which may be large, so many times each."""
    heavy = not _PLAIN.issuperset(map(type, values))
    take(steps, times * (1 + (weight(values, MAX_SIZE) if heavy else len(values)) // 16))


def _counted(steps: Supply, values: Any, price: int) -> Iterator[Any]:
    return counted(steps, entries(steps, values), price)


def short(value: Any) -> str:
    """A value in a message; however large it is, a small part is looked at."""
    shown = reprlib.Repr()
    shown.maxlevel = 3
    shown.maxstring = shown.maxother = 60
    return shown.repr(value)


def is_number(value: Any) -> bool:
    """Whether a value is a number that results can hold: finite, not too large a whole number, and no truth value."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def whole(value: Any, depth: int = 0, room_left: list[int] | None = None) -> Any:
    """The value of an expression as a JSON value: lists for what has entries in an order.

    What it holds many times is written as often, so that a small value can make a text without end.
    """
    kind = type(value)
    if kind in SCALAR:
        return value
    if kind in _UNORDERED:
        value = settled(value)
    mapping = kind is dict or isinstance(value, Mapping)
    kinds = {*map(type, value.values() if mapping else value)}
    scalars = SCALAR.issuperset(kinds)
    if not scalars or len(value) > _FEW or (depth and str in kinds):
        left = room_left or [MAX_WHOLE]
        left[0] -= 10 * (4 + len(value))
        if str in kinds:
            left[0] -= sum([len(one) for one in (value.values() if mapping else value) if type(one) is str])
        if left[0] <= 0:
            room(MAX_WHOLE + 1, MAX_WHOLE)
        if depth > MAX_DEPTH:
            raise LimitError(f"a value of lists in lists, more than {MAX_DEPTH} deep")
    if scalars:
        return dict(value) if mapping else value if kind is list else list(value)
    if mapping:
        return {key: whole(one, depth + 1, left) for key, one in value.items()}
    return [whole(one, depth + 1, left) for one in value]


GUARDS: Final = {
    guard.__name__: guard
    for guard in (
        _add,
        _sub,
        _mult,
        _pow,
        _mod,
        _and,
        _or,
        _xor,
        _sized,
        _searched,
        _tuple,
        _tick,
        _slice,
        _field,
        _counted,
    )
}
