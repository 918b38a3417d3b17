"""Messages to neighbors as a JSON object (AgentsNet, Algorithm 1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from json import JSONDecodeError
from typing import Any

from harness.api import Parsed, Reply

from ._text import BLANK, Parsing, end_of, valid

MAX_TEXT = 400_000
"""Characters of a reply that are searched for messages: the last ones, where they should be."""
MAX_DEPTH = 64
"""Objects nested deeper than this are refused; any interpreter's own limit is far above."""

_OPENING = re.compile(r'\{[ \t\r\n]*["}]')  # nothing else can begin a JSON object
_FENCE = " \t\r\n`"
_LOOSE = json.JSONDecoder(strict=False, parse_int=lambda digits: int(digits) if len(digits) < 400 else digits)
_STRICT = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Messages(Reply):
    """A flat JSON object: neighbor → message. A neighbor without a key gets no message; `{}` is silence.

    The tolerant mode takes every object in the text that has a neighbor's name among its keys, also in lists and other
    objects. Objects to different neighbors form one set of messages. An object that writes to the same neighbor again
    starts a new set, and the last set counts. An empty object is silence if there is no other, or if it stands alone at
    the end. Raw and escaped line breaks and trailing commas are allowed, other keys are left out, `null` is no message,
    and any other value that is not a string becomes its JSON text. Case and outer blanks of a name do not matter.

    Attributes:
        to: the neighbors, in order.
        max_chars: longer messages are cut to this many characters; None for no limit.
        parsing: "reference" first turns every backslash-n into a line break (so JSON with an escaped line break is
            refused), then takes the first object that reaches from a brace to the last closing brace, has no key
            outside `known`, and strings only.
        known: the names that the reference mode accepts as keys; those that are not in `to` get nothing.
    """

    to: tuple[str, ...]
    max_chars: int | None = None
    parsing: Parsing = "tolerant"
    known: tuple[str, ...] = ()

    @property
    def noop(self) -> dict[str, str]:
        """Silence."""
        return {}

    def parse(self, text: str) -> Parsed:
        """The messages in `text`: a dict whose keys are in `to`, in the order in which they were written."""
        text = text[-MAX_TEXT:]
        messages = self._exact(text) if self.parsing == "reference" else _sets(self.to, text)[0]
        if messages is None:
            return Parsed(error=self._complaint())
        return Parsed({name: valid(message)[: self.max_chars] for name, message in messages.items()})

    def dropped(self, text: str) -> int:
        """How many messages in `text` the tolerant mode does not send.

        These are messages of earlier sets, and those to unknown names. 0 for the reference mode, which takes one object
        or none.
        """
        return 0 if self.parsing == "reference" else _sets(self.to, text[-MAX_TEXT:])[1]

    def constraint(self) -> Mapping[str, Any]:
        """A JSON schema: one optional string per neighbor and nothing else."""
        limit = {} if self.max_chars is None else {"maxLength": self.max_chars}
        properties = {name: {"type": "string", **limit} for name in self.to}
        return {"json": {"type": "object", "properties": properties, "additionalProperties": False}}

    def _exact(self, text: str) -> dict[str, str] | None:
        text = text.replace("\\n", "\n")
        end = text.rfind("}") + 1
        known = {*self.known, *self.to}
        budget, at = _budget(text), 0
        while budget > 0 and (brace := _OPENING.search(text, at, end)):
            value = None
            try:
                value, stop = _STRICT.raw_decode(text, brace.start())
            except (ValueError, RecursionError) as error:
                stop = _reach(error, text)
            if value is not None and stop == end and known.issuperset(value) and _all_strings(value):
                return {name: value[name] for name in value if name in self.to}
            budget, at = budget - _cost(brace.start(), stop), brace.start() + 1
        return None

    def _complaint(self) -> str:
        listed = ", ".join(self.to[:20]) + (f", … ({len(self.to)} in all)" if len(self.to) > 20 else "")
        return f"no JSON object with messages was found; its keys must be names of your neighbors: {listed}"


@lru_cache(maxsize=256)
def _sets(to: tuple[str, ...], text: str) -> tuple[Mapping[str, str] | None, int]:
    """The last set of messages, and how many others there are. Remembered: a reply is first read, then counted."""
    known = {name.casefold(): name for name in to} | {name: name for name in to}
    messages: dict[str, str] | None = None
    names: set[str] = set()  # to which the set has written, or said that it does not
    dropped = 0
    for outer, alone in _objects(text):
        if not outer and (alone or messages is None):
            dropped, messages, names = dropped + len(messages or ()), {}, set()
        stack: list[Any] = [outer]
        while stack:  # an object without a neighbor's name may hold one that has
            value = stack.pop()
            named = {key: known.get(key) or known.get(key.strip().casefold()) for key in _keys(value)}
            if not any(named.values()):
                stack.extend(reversed(_children(value)))
                continue
            addressed = {name for name in named.values() if name}
            if not names.isdisjoint(addressed):
                dropped, messages, names = dropped + len(messages or ()), None, set()
            names |= addressed
            sent = {name: _as_text(value[key]) for key, name in named.items() if name and value[key] is not None}
            messages = {**(messages or {}), **sent}
            dropped += sum(name is None and value[key] is not None for key, name in named.items())
    return messages, dropped


def _objects(text: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """The outermost JSON objects in `text`, from left to right, trailing commas forgiven; and whether each stands alone
    at the end: on a line of its own, with nothing below it but the end of a fence.

    Linear: decoded objects do not overlap, and the characters that failed attempts go over are paid from a
    budget proportional to the length of `text`; when it is used up, the search ends.
    """
    budget, at, end = _budget(text), 0, len(text.rstrip(_FENCE))
    while budget > 0 and (brace := _OPENING.search(text, at)):
        start = brace.start()
        try:
            value, at = _LOOSE.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            budget, at = budget - _cost(start, _reach(error, text)), start + 1
            comma = _trailing_comma(text, error)
            if comma is not None:
                text, at = f"{text[:comma]} {text[comma + 1 :]}", start
        else:
            if not _too_deep(value):
                yield value, at == end and not text[text.rfind("\n", 0, start) + 1 : start].strip(_FENCE)


def _budget(text: str) -> int:
    return 16 * len(text) + 4096


def _cost(start: int, reach: int) -> int:
    """What an attempt from `start` to `reach` takes: the decoding, and the counting of line breaks and
    copying of the text that come with an error, which are 64 times as fast or more."""
    return 1 + max(reach - start, 0) + reach // 64


def _reach(error: Exception, text: str) -> int:
    """How far a failed attempt may have read."""
    exact = isinstance(error, JSONDecodeError) and not error.msg.startswith("Unterminated string")
    return error.pos if isinstance(error, JSONDecodeError) and exact else len(text)


def _trailing_comma(text: str, error: Exception) -> int | None:
    """Where the comma stands that `error` is about: before (Python 3.13: at) the place of the error."""
    if not isinstance(error, JSONDecodeError) or error.pos >= len(text):
        return None
    at = error.pos
    if text[at] == ",":
        after = end_of(BLANK, text, at + 1)
        return at if text[after : after + 1] in ("}", "]") else None
    if text[at] not in "}]":
        return None
    while at and text[at - 1] in " \t\r\n":
        at -= 1
    return at - 1 if at and text[at - 1] == "," else None


def _keys(value: Any) -> Iterable[str]:
    return value if isinstance(value, dict) else ()


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return False
    return True


def _all_strings(value: dict[str, Any]) -> bool:
    return all(isinstance(item, str) for item in value.values())


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
