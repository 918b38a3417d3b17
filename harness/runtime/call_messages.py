"""Calls of tools as messages of a conversation, so that every server and chat template takes it again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Completion

MAX_CALLS = 1000
"""Calls of one reply that are in its conversation."""
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MAX_ID_CHARS = 64
_PLAIN_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)


def messages_of(calls: Sequence[Mapping[str, str]], place: int) -> list[dict[str, Any]]:
    """The `tool_calls` of an assistant's message, in OpenAI's form.

    Servers refuse a conversation with a name that no function can have, with arguments that are not a JSON object, and
    with ids that are empty or stand twice. The model would never be heard again, so such parts are replaced, and calls
    beyond `MAX_CALLS` left out. What it wrote stays in its `Completion`.

    Args:
        calls: those of a completion.
        place: the message's index in its conversation, which makes ids unique.
    """
    messages: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, call in enumerate(calls[:MAX_CALLS]):
        name = call.get("id") or ""
        if name in seen or not _PLAIN_ID.fullmatch(name):
            name = f"c{place:05}{number:03}"  # nine letters and digits: Mistral's templates want them
        seen.add(name)
        function = {
            "name": _NAME.sub("_", call["name"])[:_MAX_ID_CHARS] or "unknown",
            "arguments": _json(call["arguments"]),
        }
        messages.append({"id": name, "type": "function", "function": function})
    return messages


def extended(message: dict[str, Any], call: Completion, place: int | None, model: str) -> dict[str, Any]:
    """An assistant's message with the calls of its completion, and with the `provider_fields` if they are this model's.

    No field of the harness's is replaced, but the content where the thought is a part of it.

    Args:
        message: its content.
        call: the completion.
        place: the message's index in its conversation; None: no call of it counts.
        model: the name of the engine that plays on.
    """
    if place is not None and call.tool_calls:
        message = {**message, "tool_calls": messages_of(call.tool_calls, place)}
    fields = call.provider_fields or {}
    if fields.get("model") != model:
        return message
    own = {name: call.reasoning if value is None else value for name, value in fields.get("message", {}).items()}
    merged = {**own, **message, "content": own.get("content", message["content"])}
    if "tool_calls" in message:
        extras = [*fields.get("tool_calls", ()), *({} for _ in message["tool_calls"])]
        merged["tool_calls"] = [
            {**extra, **one, "function": {**extra.get("function", {}), **one["function"]}}
            for one, extra in zip(message["tool_calls"], extras, strict=False)
        ]
    return merged


def _json(text: str) -> str:
    """`text` if it is a JSON object, without lone surrogates, which no tokenizer takes; else an empty one."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            return "{}"
        plain = "\\u" not in text
        return text if plain else json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    except (ValueError, RecursionError):
        return "{}"
