"""Requests that programs send, read field by field: what is wrong is said, and nothing that matters is passed over."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api.errors import SetupError, near
from harness.engines.sampling import normalize

MAX_DEPTH = 100
"""How deep the JSON of a request may be nested."""
SAMPLING = {
    name: name
    for name in (
        "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty",
        "max_tokens", "min_tokens", "stop",
    )
}  # fmt: skip
"""Fields of a request that are sampling → the harness's words."""
_SHOWN_CHARS = 200
_MAX_NUMBER = 2**31 - 1
"""What engines can count."""


class ProblemError(Exception):
    """Why a request gets no answer, before it has the shape of an API.

    Args:
        status: of HTTP.
        message: what is wrong, and what to do.
        code: OpenAI's word for it.
        param: the field.
        kind: OpenAI's type; by default that of the status.
    """

    def __init__(
        self, status: int, message: str, *, code: str | None = None, param: str | None = None, kind: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.param, self.kind = status, message, code, param, kind


def bad(message: str, param: str | None = None, code: str | None = None) -> ProblemError:
    """A request that is wrong: status 400."""
    return ProblemError(400, message, code=code, param=param)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object of a request.

    Attributes:
        where: what stands before their names in errors, such as "messages[2]."
        read: those that count.
        ignored: those that cannot change what is meant, or that the run decides.
        refused: those that would change what is meant → what is said of them. The values that change nothing (null,
            false, "", 0, an empty list) are allowed.
    """

    read: frozenset[str]
    ignored: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)

    def look(self, body: Mapping[str, Any], where: str = "") -> None:
        """Raise `ProblemError` for a field that is refused or unknown."""
        for name in body.keys() - self.read - self.ignored:
            if (why := self.refused.get(name)) is not None:
                if body[name]:
                    raise bad(f"{where}{name} is not supported: {why}", where + name, "unsupported_parameter")
            elif body[name] is not None:
                known = near(name, self.read | self.ignored)
                raise bad(f"unknown field {where}{shown(name)}. {known}", where + name[:100], "unknown_parameter")


def shown(value: Any) -> str:
    """A value as errors show it."""
    try:
        text = json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


_KINDS = {str: "a text", bool: "true or false", int: "a whole number", list: "a list", dict: "an object"}


def typed(body: Mapping[str, Any], name: str, kind: type, where: str = "", required: bool = False) -> Any:
    """The value of a field; None if it is not there. Raises `ProblemError` for one of another type."""
    value = body.get(name)
    if value is None:
        if required:
            raise bad(f"{where}{name} is missing: it is {_KINDS[kind]}", where + name, "missing_required_parameter")
        return None
    if not isinstance(value, kind) or (kind is int and value is True):
        raise bad(f"{where}{name} must be {_KINDS[kind]}, not {shown(value)}", where + name, "invalid_type")
    return value


def objects(body: Mapping[str, Any], name: str, where: str = "", required: bool = False) -> Sequence[dict[str, Any]]:
    """A list of objects; empty if the field is not there."""
    items = typed(body, name, list, where, required) or ()
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            place = f"{where}{name}[{number}]"
            raise bad(f"{place} must be an object, not {shown(item)}", place, "invalid_type")
    return items


def read_json(data: bytes) -> dict[str, Any]:
    """The body of a request. Raises `ProblemError` if it is not an object of JSON in UTF-8."""
    try:
        body = _DECODER.decode(data.decode())
        if _SURROGATE.search(data):
            body = json.loads(json.dumps(body, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        raise bad("the JSON of the request is nested too deeply") from None
    except UnicodeDecodeError:
        raise bad("the request is not UTF-8") from None
    except ValueError as error:
        raise bad(f"the request is not JSON: {str(error)[:_SHOWN_CHARS]}") from None
    if not isinstance(body, dict):
        raise bad(f"the request must be an object of JSON, not {shown(body)}")
    return body


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half of a character outside of Unicode's first plane: alone, no file and no tokenizer takes it."""


def check_depth(value: Any, where: str) -> None:
    """Raise `ProblemError` if a value is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise bad(f"{where} is nested deeper than {MAX_DEPTH} levels", where)


def sampling_of(body: Mapping[str, Any], names: Mapping[str, str] = SAMPLING) -> dict[str, Any]:
    """The sampling of a request in the harness's words. Raises `ProblemError` for values out of bounds."""
    said: dict[str, Any] = {}
    for name, ours in names.items():
        value = body.get(name)
        if value is None:
            continue
        if said.get(ours, value) != value:
            raise bad(f"{name} and {ours} mean the same but differ: say one", name, "invalid_value")
        if isinstance(value, int) and abs(value) > _MAX_NUMBER:
            raise bad(f"{name} must be at most {_MAX_NUMBER}", name, "invalid_value")
        said[ours] = value
    try:
        return normalize(said) if said else said
    except SetupError as error:
        raise bad(error.message.removeprefix("generation_kwargs: "), code="invalid_value") from None


class Tools:
    """Tools of requests. A program sends the same ones with every call; they are read once.

    Args:
        read: one tool, and what stands before its fields in errors → the tools as the harness has them.
    """

    def __init__(self, read: Callable[[dict[str, Any], str], Iterable[dict[str, Any]]]) -> None:
        self._one = read
        self._sent: Any = ()
        self._read: tuple[dict[str, Any], ...] = ()

    def of(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """The tools of a request. Raises `ProblemError`."""
        sent = typed(body, "tools", list)
        if not sent:
            return ()
        if sent != self._sent:
            found = [one for n, tool in enumerate(objects(body, "tools")) for one in self._one(tool, f"tools[{n}].")]
            self._sent, self._read = sent, tuple(found)
        return self._read


def one_of(value: Any, choices: Collection[str], where: str) -> str:
    """A word. Raises `ProblemError` with near matches for one that is not among `choices`."""
    if not isinstance(value, str) or value not in choices:
        hint = near(value[:100], choices) if isinstance(value, str) else f"Available: {', '.join(sorted(choices))}."
        raise bad(f"{where} cannot be {shown(value)}. {hint}", where, "invalid_value")
    return value
