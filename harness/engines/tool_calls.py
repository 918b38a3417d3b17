"""Tools and calls of tools in the form of OpenAI's chat API, read leniently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness.api import Facts
from harness.api.errors import ContextLengthError, EngineError

# vLLM: "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"; llama.cpp: "tools
# param requires --jinja flag"; Ollama: "… does not support tools"; OpenRouter: "No endpoints found that support tool
# use"; others: "tools are not supported", "Unrecognized request argument supplied: tools".
_REFUSAL = re.compile(
    r"\b(tools?|tool[ _](choice|use|calls?|calling)|function calling)\b.{0,60}?"
    r"\b(requires?|(is|are)? ?not (supported|allowed|permitted|available|enabled)|unsupported|extra inputs)"
    r"|\b(support|allow|unrecognized|unknown|unexpected)\w*\b.{0,60}?\b(tools?\b|tool[ _]|function calling)",
    re.IGNORECASE | re.DOTALL,
)

REMEDY = "vllm serve wants --enable-auto-tool-choice --tool-call-parser …, llama-server --jinja; or say reply_via: text"


def offered(tools: Sequence[Facts]) -> list[dict[str, Any]]:
    """Tools as requests and chat templates take them."""
    return [{"type": "function", "function": dict(tool)} for tool in tools]


def takes_no_tools(error: Exception, kind: type[EngineError] | None) -> bool:
    """Whether an HTTP error says that the server, or its model, takes no tools; `kind`: what it is otherwise."""
    about_others = kind is ContextLengthError or getattr(error, "status_code", 0) in (401, 402, 403, 429)
    return not about_others and bool(_REFUSAL.search(f"{error} {getattr(error, 'body', '')}"[:10_000]))


def calls_of(calls: Any) -> list[dict[str, str]] | None:
    """A message's `tool_calls` as those of a `Completion`; None if there are none. What is not a call is left out."""
    found = list(filter(None, map(_call, calls))) if isinstance(calls, list) else []
    return found or None


def _call(call: Any) -> dict[str, str] | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return None
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(arguments, str):  # some servers give the object itself
        arguments = "" if arguments is None else json.dumps(arguments)
    texts = {"id": call.get("id"), "name": name, "arguments": arguments}
    return {key: storable(text) if isinstance(text, str) else "" for key, text in texts.items()}


def storable(text: str) -> str:
    """The text with "?" for lone surrogates: JSON may carry them (`"\\ud800"`), UTF-8 files and sockets may not."""
    return text.encode(errors="replace").decode()


def with_objects(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A conversation whose calls have their arguments as objects, as chat templates want them."""
    return [
        {**message, "tool_calls": [_opened(call) for call in message["tool_calls"]]}
        if "tool_calls" in message
        else message
        for message in messages
    ]


def _opened(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
