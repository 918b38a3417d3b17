"""What crosses between the program and its checker: plain data, in frames of bounded length.

An object of the program never reaches the checker, only what it holds: a lying `__eq__` stays behind. Loaded by the
confined processes too, so it imports little.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

DETAIL = 2000
"""Characters of a message."""


class TooLongError(Exception):
    """A frame is longer than allowed."""


class GoneError(Exception):
    """The other side closed its end, or does not keep to the form."""


class Opaque:
    """What stands for a result that is not plain data: equal to nothing but itself."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __repr__(self) -> str:
        return f"<{self._kind} object>"


def encode(value: Any, strict: bool = False) -> Any:
    """`value` as JSON. A subclass becomes its base, which it equals; what is not plain data becomes its type's name.

    Raises:
        TypeError: with `strict`, if it is not plain data.
        RecursionError: if it is nested too deeply, or holds itself.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        plain = int(value)
        return plain if -(1 << 63) <= plain < 1 << 63 else {"int": hex(plain)}
    if isinstance(value, list):
        return [encode(item, strict) for item in value]
    for kind, name in _SEQUENCES:
        if isinstance(value, kind):
            return {name: [encode(item, strict) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key, strict), encode(item, strict)] for key, item in value.items()]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, bytes | bytearray):
        return {"bytes" if isinstance(value, bytes) else "bytearray": value.hex()}
    if isinstance(value, range):
        return {"range": [encode(part) for part in (value.start, value.stop, value.step)]}
    whole = f"{type(value).__module__}.{type(value).__qualname__}"
    if whole == "fractions.Fraction":
        return {"fraction": [encode(value.numerator), encode(value.denominator)]}
    if whole == "decimal.Decimal":
        return {"decimal": str(value)}
    if strict:
        raise TypeError(f"{type(value).__name__} is not plain data")
    return {"opaque": type(value).__name__[:100]}


# The views of a dict equal sets, and nothing else.
_SEQUENCES: tuple[tuple[Any, str], ...] = (
    (tuple, "tuple"), (set, "set"), (frozenset, "frozenset"), (type({}.keys()), "set"), (type({}.items()), "set"),
)  # fmt: skip


def decode(data: Any) -> Any:
    """What `encode` made `data` of.

    Raises:
        ValueError, TypeError, KeyError, ArithmeticError, RecursionError: if it was not made by `encode`.
    """
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, inner),) = data.items()
    return _DECODERS[kind](inner)


def _fraction(data: Any) -> Any:
    from fractions import Fraction

    return Fraction(*map(decode, data))


def _decimal(data: Any) -> Any:
    from decimal import Decimal

    return Decimal(data)


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda data: int(data, 16),
    "tuple": lambda data: tuple(map(decode, data)),
    "set": lambda data: set(map(decode, data)),
    "frozenset": lambda data: frozenset(map(decode, data)),
    "dict": lambda data: {decode(key): decode(item) for key, item in data},
    "complex": lambda data: complex(*data),
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "range": lambda data: range(*map(decode, data)),
    "fraction": _fraction,
    "decimal": _decimal,
    "opaque": lambda data: Opaque(str(data)),
}


def describe(error: BaseException) -> str:
    """Class and message, bounded; asking a program's own exception for it may itself go wrong."""
    try:
        return f"{type(error).__name__}: {error}"[:DETAIL]
    except BaseException:
        return "an exception that cannot be shown"


def module(name: str) -> dict[str, Any]:
    """The namespace of a new module, which dataclasses and pickles look for in `sys.modules`."""
    sys.modules[name] = types.ModuleType(name)
    return vars(sys.modules[name])


def send(fd: int, data: Any, longest: int) -> None:
    """Write one frame: four bytes of length, then JSON.

    Raises:
        TooLongError: if it has more than `longest` bytes; nothing is written then.
        OSError: if the other end is closed.
    """
    text = json.dumps(data).encode()
    if len(text) > longest:
        raise TooLongError
    rest = memoryview(len(text).to_bytes(4, "big") + text)
    while rest:
        rest = rest[os.write(fd, rest) :]


def receive(fd: int, longest: int) -> Any:
    """Read one frame.

    Raises:
        TooLongError: if it announces more than `longest` bytes.
        GoneError: at the end of the stream, or if it is not JSON.
    """
    length = int.from_bytes(_read_exactly(fd, 4), "big")
    if length > longest:
        raise TooLongError
    text = _read_exactly(fd, length)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise GoneError from None


def _read_exactly(fd: int, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = os.read(fd, min(1 << 20, size - len(received)))
        if not piece:
            raise GoneError
        received += piece
    return bytes(received)
