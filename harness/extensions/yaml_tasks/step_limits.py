"""Limits on the steps, the time and the size of templates and expressions that a stranger wrote.

A supply of steps is an iterator, so that a turn of a loop costs no Python call: `counted` zips it with the values.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
Supply = Iterator[bool]
_CLOCK_STEPS = 256
_ENTRY = 10
"""How many characters an entry of a list counts as."""


_FLAT = frozenset({str, int, float, bool, type(None)})


class LimitError(Exception):
    """Something takes more steps, time or space than it may."""


def supply(count: int, seconds: float) -> Supply:
    """Return `count` steps for the work of one thread.

    They raise `LimitError` after the last, or after `seconds` of CPU time from the 256th step on.
    """
    return itertools.chain.from_iterable(_rations(count, seconds))


def _rations(count: int, seconds: float) -> Iterator[Iterator[bool]]:
    deadline = float("inf")
    for _ in range(count // _CLOCK_STEPS):
        yield itertools.repeat(True, _CLOCK_STEPS)
        now = time.thread_time()
        if now > deadline:
            yield _Spent(f"it takes more than {seconds:g} s")
        deadline = min(deadline, now + seconds)
    yield _Spent(f"it takes more than {count:,} steps")


class _Spent:
    """What follows the last step: an error each time, also for a caller that continues after the first."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __iter__(self) -> Iterator[bool]:
        return self

    def __next__(self) -> bool:
        raise LimitError(self.message)


def take(steps: Supply, count: int) -> None:
    """Take `count` steps at once. Raises `LimitError`."""
    deque(itertools.islice(steps, count), 0)


def counted(steps: Supply, values: Iterable[T], price: int = 1) -> Iterator[T]:
    """Return the same values; each takes `price` steps."""
    return itertools.compress(values, itertools.islice(steps, 0, None, price))


def weight(value: Any, most: int) -> int:
    """Return the number of characters and entries of a value and of everything in it, with repetitions.

    Raises:
        LimitError: if they are more than `most`.
    """
    if isinstance(value, (str, bytes)):
        return len(value)
    parts: tuple[Iterable[Any], ...] = (value.keys(), value.values()) if type(value) is dict else (value,)
    if type(value) in (dict, list, tuple) and all(map(_FLAT.issuperset, (map(type, part) for part in parts))):
        total = _ENTRY * (1 + len(value) * len(parts))
        total += sum(len(one) for part in parts for one in part if type(one) is str)
        room(total, most)
        return total
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, Mapping):
            waiting += itertools.chain(one.keys(), one.values())
        elif isinstance(one, (list, tuple, set, frozenset, range)):
            room(total + _ENTRY * len(one), most)
            waiting += one
        total += _ENTRY
        room(total + _ENTRY * len(waiting), most)
    return total


def room(length: int, most: int) -> None:
    """Raise `LimitError` for a value of more than `most` characters or entries."""
    if length > most:
        raise LimitError(f"a value of more than {most:,} characters or entries")
