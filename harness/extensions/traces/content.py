"""What models read and wrote, as attributes of spans have it: JSON texts by the conventions, bounded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from harness.api import Completion
from harness.api.printable import cut, utf8

MAX_CHARS: Final = 32_768
"""Characters of messages in one attribute."""
Message = Mapping[str, Any]
Json = dict[str, Any]


class Conversation:
    """What an agent's model had read at each of the attempts of a turn.

    Args:
        messages: the conversation, as `harness.api.Thread` has it; it may grow while this is used.
        length: how many of them there were when the turn was over.
        attempts: how many replies the turn has.
    """

    def __init__(self, messages: Sequence[Message], length: int, attempts: int) -> None:
        self._messages = messages
        ends: list[int] = []
        at = length
        while at and len(ends) < attempts:
            at -= 1
            if messages[at].get("role") == "assistant":
                ends.append(at)
        self._ends = ends[::-1]

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
        return as_json(kept[::-1]), as_json(head) if head else "", at - first


def written(call: Completion) -> str:
    """What a model wrote."""
    parts = [{"type": "reasoning", "content": cut(call.reasoning, MAX_CHARS)}] if call.reasoning else []
    left = MAX_CHARS - len(call.reasoning or "")
    if call.text or not call.tool_calls:
        parts.append(_text(call.text, max(0, left)))
    parts += _calls(call.tool_calls or (), MAX_CHARS)
    message = {"role": "assistant", "parts": parts}
    return as_json([message if call.finish_reason is None else {**message, "finish_reason": call.finish_reason}])


def as_json(value: Any) -> str:
    """The value as a JSON text that every reader of UTF-8 takes."""
    return utf8(json.dumps(value, ensure_ascii=False, default=str))


def _message(message: Message, most: int) -> tuple[Json, int]:
    """A message with at most so many characters of text, and how many are left."""
    role, text = str(message.get("role", "")), str(message.get("content") or "")
    if role == "tool":
        answer = {"type": "tool_call_response", "id": str(message.get("tool_call_id", "")), "response": cut(text, most)}
        return {"role": role, "parts": [answer]}, most - len(text)
    parts = [_text(text, most)] if text else []
    calls = [{"id": one.get("id"), **(one.get("function") or {})} for one in message.get("tool_calls") or ()]
    parts += _calls(calls, max(0, most - len(text)))
    return {"role": role, "parts": parts}, most - len(text) - sum(len(str(one.get("arguments"))) for one in calls)


def _text(text: str, most: int) -> Json:
    return {"type": "text", "content": cut(text, most) if most > 0 else ""}


def _calls(calls: Iterable[Mapping[str, Any]], most: int) -> list[Json]:
    found: list[Json] = []
    for call in calls:
        arguments = cut(str(call.get("arguments", "")), most) if most > 0 else ""
        most -= len(arguments)
        found.append({"type": "tool_call", "id": call.get("id"), "name": call.get("name"), "arguments": arguments})
    return found
