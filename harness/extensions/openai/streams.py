"""Answers in server-sent events, which some servers send where none was asked for: joined to one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_END = "[DONE]"


def is_stream(text: str) -> bool:
    """Whether a response's text is in server-sent events."""
    head = text[:200].lstrip()
    return head.startswith(("data:", "event:", "id:", "retry:", ":"))


def joined(text: str) -> Any:
    """The answer of a stream, as the server would have sent it in one piece.

    An answer that was cut (no `finish_reason`, no `[DONE]`), or of which an event is damaged, has no choices, so that
    it is no completion. An error in the stream is that of the answer.
    """
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    ended = False
    for event in _events(text):
        if event == _END:
            ended = True
            continue
        if not isinstance(event, dict):
            return {**whole, "choices": []}
        if event.get("error"):
            return {"error": event["error"]}
        whole |= {key: value for key, value in event.items() if key != "choices" and value is not None}
        chunks = event.get("choices")
        for chunk in chunks if isinstance(chunks, list) else ():
            if isinstance(chunk, dict):
                index = chunk.get("index")
                _add(choices.setdefault(index if type(index) is int else 0, {}), chunk)
    ended = ended or (bool(choices) and all(one.get("finish_reason") for one in choices.values()))
    return {**whole, "choices": [_closed(choices[index]) for index in sorted(choices)] if ended else []}


def _events(text: str) -> Iterator[Any]:
    """What each event has as JSON; `[DONE]` as it is; None for a damaged one."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if name.strip() != "data" or not colon:
            continue
        value = value.strip()
        if value == _END:
            yield _END
            continue
        try:
            yield json.loads(value)
        except (ValueError, RecursionError):
            yield None


def _add(choice: dict[str, Any], chunk: dict[str, Any]) -> None:
    """Put what a chunk adds to its choice there; texts are kept in lists, so that the time is linear."""
    for key, value in chunk.items():
        if key in ("delta", "message"):
            if isinstance(value, dict):
                _grow(choice.setdefault("message", {}), value)
        elif key == "text" and isinstance(value, str):
            choice.setdefault("text", []).append(value)
        elif value is not None:
            choice[key] = value


def _grow(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key == "role":
            message[key] = value
        elif key == "tool_calls":
            calls = message.setdefault(key, {})
            for place, call in enumerate(value if isinstance(value, list) else ()):
                if isinstance(call, dict):
                    index = call.get("index")
                    _grow_call(calls.setdefault(index if type(index) is int else place, {}), call)
        elif isinstance(value, str):
            parts = message.setdefault(key, [])
            if isinstance(parts, list):
                parts.append(value)
        elif value is not None:
            message[key] = value


def _grow_call(call: dict[str, Any], delta: dict[str, Any]) -> None:
    function = delta.get("function")
    call |= {key: value for key, value in delta.items() if key not in ("function", "index") and value is not None}
    for key, value in (function if isinstance(function, dict) else {}).items():
        if isinstance(value, str):
            call.setdefault("function", {}).setdefault(key, []).append(value)


def _closed(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice with its texts in one piece each."""
    closed = {key: "".join(value) if key == "text" else value for key, value in choice.items() if key != "message"}
    if (message := choice.get("message")) is None:
        return closed
    said = {key: "".join(value) if _is_text(value) else value for key, value in message.items() if key != "tool_calls"}
    if isinstance(calls := message.get("tool_calls"), dict):
        said["tool_calls"] = [_closed_call(calls[index]) for index in sorted(calls)]
    return {**closed, "message": {"content": None, **said}}


def _closed_call(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "function": {key: "".join(parts) for key, parts in call.get("function", {}).items()}}


def _is_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)
