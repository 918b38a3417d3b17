"""What models read and wrote, as attributes of spans have it: JSON texts by the conventions, bounded."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.api import Completion
from harness.api.printable import clean_name, cut, utf8

MAX_CHARS: Final = 32_768
"""Characters of messages in one attribute, about: each message counts as `_LEAST` at least."""
MAX_TOOLS: Final = 256
"""Calls of tools of one reply that are shown."""
_LEAST, _NAME = 64, 200
Message = Mapping[str, Any]
Json = dict[str, Any]


class ReadMessages:
    """What an agent's model had read at each of the attempts of a turn.

    Args:
        messages: the conversation, as `harness.api.Thread` has it; it may grow while this is used.
        length: how many of them there were when the turn was over.
        attempts: how many replies the turn has.
        skipped: how many are missing after the system prompt (`recent`).
    """

    def __init__(self, messages: Sequence[Message], length: int, attempts: int, skipped: int = 0) -> None:
        self._messages, self._skipped = messages, skipped
        self._ends = _ends(messages, length, attempts)

    def read(self, attempt: int) -> tuple[str, str, int]:
        """(what the model had read before it replied, its instructions, how many messages are left out).

        The last messages are there, up to `MAX_CHARS` characters. No work is proportional to the conversation.
        """
        end = self._ends[attempt] if attempt < len(self._ends) else 0
        first = 1 if end and self._messages[0].get("role") == "system" else 0
        left, at, kept = MAX_CHARS, end, list[Json]()
        while at > first and left > 0:
            at -= 1
            message, left = _message(self._messages[at], left)
            kept.append(message)
        head = [_text(str(self._messages[0].get("content") or ""), MAX_CHARS)] if first else []
        return as_json(kept[::-1]), as_json(head) if head else "", at - first + self._skipped


def recent(messages: Sequence[Message], attempts: int) -> tuple[list[Message], int]:
    """The messages that a turn shows which has just ended, and how many are missing after the system prompt.

    No work is proportional to the conversation.
    """
    ends = _ends(messages, len(messages), attempts)
    if not ends:
        return [], 0
    at, left = ends[0], MAX_CHARS
    head = [*messages[:1]] if at and messages[0].get("role") == "system" else []
    while at > len(head) and left > 0:
        at -= 1
        left -= size_of(messages[at])
    return [*head, *messages[at:]], at - len(head)


def size_of(message: Message) -> int:
    """Characters of a message, at least `_LEAST` for it and for each call of a tool."""
    calls = [one.get("function") or one for one in message.get("tool_calls") or ()]
    size = len(str(message.get("content") or "")) + sum(max(_LEAST, len(str(one.get("arguments")))) for one in calls)
    return max(_LEAST, size)


def _ends(messages: Sequence[Message], length: int, attempts: int) -> list[int]:
    """Where the last replies of the model are among the first `length` messages."""
    ends: list[int] = []
    at = length
    while at and len(ends) < attempts:
        at -= 1
        if messages[at].get("role") == "assistant":
            ends.append(at)
    return ends[::-1]


def written(call: Completion) -> str:
    """What a model wrote."""
    parts: list[Json] = []
    if call.reasoning:
        parts.append({"type": "reasoning", "content": cut(call.reasoning, MAX_CHARS)})
    left = MAX_CHARS - len(call.reasoning or "")
    if call.text or not call.tool_calls:
        parts.append(_text(call.text, max(0, left)))
    parts += _calls(call.tool_calls or (), MAX_CHARS)
    message: Json = {"role": "assistant", "parts": parts}
    if call.finish_reason is not None:
        message["finish_reason"] = name_of(call.finish_reason)
    return as_json([message])


def name_of(text: object) -> str:
    """A name that a model wrote, of `_NAME` characters at most before what is invisible is written out."""
    return clean_name(cut(str(text), _NAME))


def as_json(value: Any) -> str:
    """The value as a JSON text that every reader of UTF-8 takes."""
    return utf8(json.dumps(value, ensure_ascii=False, default=str))


def _message(message: Message, most: int) -> tuple[Json, int]:
    """A message with at most so many characters of text, and how many are left."""
    role, text = str(message.get("role", "")), str(message.get("content") or "")
    if role == "tool":
        id = name_of(message.get("tool_call_id", ""))
        answer = {"type": "tool_call_response", "id": id, "response": cut(text, most)}
        return {"role": role, "parts": [answer]}, most - max(_LEAST, len(text))
    parts = [_text(text, most)] if text else []
    calls = [{"id": one.get("id"), **(one.get("function") or {})} for one in message.get("tool_calls") or ()]
    parts += _calls(calls, max(0, most - len(text)))
    size = len(text) + sum(max(_LEAST, len(str(one.get("arguments")))) for one in calls)
    return {"role": role, "parts": parts}, most - max(_LEAST, size)


def _text(text: str, most: int) -> Json:
    return {"type": "text", "content": cut(text, most) if most > 0 else ""}


def _calls(calls: Iterable[Mapping[str, Any]], most: int) -> list[Json]:
    found: list[Json] = []
    for call in itertools.islice(calls, MAX_TOOLS):
        arguments = cut(str(call.get("arguments", "")), most) if most > 0 else ""
        most -= len(arguments)
        names = {key: name_of(call.get(key, "")) for key in ("id", "name")}
        found.append({"type": "tool_call", **names, "arguments": arguments})
    return found
