"""What of a reply its server wants back with it in the next turn: its thought, and what belongs to its calls.

DeepSeek and Kimi refuse a conversation in which a call stands without the thought that it came with, Gemini one without
the call's `extra_content.google.thought_signature`, and providers behind OpenRouter want `reasoning_details`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from harness.engines.tool_calls import calls_of, storable

Sends = Literal["tools", "always", "never"]
MAX_DEPTH = 50
"""How deep the values of a field may be nested; what is deeper is left out."""
_FIELDS = re.compile(r"reasoning|thinking|thought|encrypted_|signature|extra_content|provider_specific_fields")
"""How the names of a message's fields begin that go back. vLLM, DeepSeek, Kimi, Qwen: `reasoning_content`; newer vLLM,
Groq, Cerebras: `reasoning`; OpenRouter, MiniMax: `reasoning_details`; LiteLLM: `thinking_blocks` and
`provider_specific_fields`; Gemini: `extra_content`."""
_OF_MESSAGE = frozenset({"role", "content", "tool_calls"})
_OF_CALL = frozenset({"id", "type", "index", "function"})
_OF_FUNCTION = frozenset({"name", "arguments"})


def thought_of(message: Mapping[str, Any]) -> str | None:
    """The thought that a server keeps apart from a message's text, as a text; None if there is none."""
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    details, parts = message.get("reasoning_details"), message.get("content")
    texts = [_text_of(one) for one in details] if isinstance(details, list) else []
    if isinstance(parts, list):  # Mistral: parts of the content
        texts += [_text_of(one) for one in parts if isinstance(one, dict) and one.get("type") == "thinking"]
    return "".join(texts) or None


def _text_of(part: Any) -> str:
    found = part if isinstance(part, dict) else {}
    value = next((found[name] for name in ("text", "summary", "thinking") if found.get(name)), "")
    if isinstance(value, list):
        value = "".join(str(one["text"]) for one in value if isinstance(one, dict) and isinstance(one.get("text"), str))
    return value if isinstance(value, str) else ""


def returned(message: Mapping[str, Any], sends: Sends, reasoning: str | None, text: str) -> dict[str, Any] | None:
    """What goes back of a message, as `Completion.provider_fields` has it without its `model`; None if nothing does.

    Args:
        message: as the server sent it.
        sends: of which replies the thought goes back: of those that call tools, of all, or of none.
        reasoning: what was read as the thought.
        text: what was read as the text; where the thought stands in the content itself, all of the content goes back.
    """
    calls = message.get("tool_calls")
    of_calls = [_of_call(call) for call in calls if calls_of([call])] if isinstance(calls, list) else []
    own: dict[str, Any] = {}
    if sends == "always" or (sends == "tools" and of_calls):
        own = {name: value for name, value in message.items() if value is not None and _FIELDS.match(name)}
        content = message.get("content")
        if reasoning is not None and (isinstance(content, list) or (isinstance(content, str) and content != text)):
            own["content"] = content
    own = {name: None if value == reasoning else value for name, value in _plain_fields(own).items()}
    found: dict[str, Any] = {"message": own} if own else {}
    return {**found, "tool_calls": of_calls} if any(of_calls) else found or None


def _of_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """What a call has beside its id, name and arguments."""
    of_function = _plain_fields({k: v for k, v in call["function"].items() if k not in _OF_FUNCTION})
    own = _plain_fields({name: value for name, value in call.items() if name not in _OF_CALL})
    return {**own, "function": of_function} if of_function else own


def own_fields(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """Names of what stands in messages of an assistant, and in its calls, beside what all servers know."""
    names: set[str] = set()
    for message in messages:
        if message["role"] == "assistant":
            names |= message.keys() - _OF_MESSAGE
            for call in message.get("tool_calls", ()):
                names |= (call.keys() - _OF_CALL) | (call["function"].keys() - _OF_FUNCTION)
    return names


def without(message: Mapping[str, Any], names: frozenset[str]) -> Mapping[str, Any]:
    """An assistant's message without these fields of its own and of its calls."""
    kept = {name: value for name, value in message.items() if name not in names}
    if "tool_calls" in kept:
        kept["tool_calls"] = [
            {
                **{name: value for name, value in call.items() if name not in names},
                "function": {name: value for name, value in call["function"].items() if name not in names},
            }
            for call in kept["tool_calls"]
        ]
    return kept


def _plain_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that can be stored and sent again."""
    kept = {}
    for name, value in fields.items():
        if value is not None and (plain := _plain(value)) is not None:
            kept[storable(name)] = plain
    return kept


def _plain(value: Any, depth: int = 0) -> Any:
    """A value of JSON as files and sockets take it; None if it is too deep or holds what JSON does not know."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, dict):
        return {storable(name): _plain(one, depth + 1) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
