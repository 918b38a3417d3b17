"""What OpenAI-compatible servers send, read leniently: completions, error texts, how long to wait."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from harness.api import Completion
from harness.api.errors import ContextLengthError, EngineError, EngineFatalError, RefusedError
from harness.engines.reasoning import split_reasoning
from harness.engines.tool_calls import calls_of, storable


class GarbledError(Exception):
    """The server said 200 and something that is not a chat completion; asking again may help."""


# OpenAI and vLLM: "maximum context length", "context_length_exceeded", "exceeds the context window"; vLLM also: "longer
# than the maximum model length"; llama.cpp: "exceed_context_size_error", "available context size"; SGLang: "longer
# than the model's context length", "exceeds the maximum allowed length"; gateways: "prompt is too long", "input token
# count".
_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size)|maximum (model|allowed|input) length|prompt is too long"
    r"|input token count|too many (input|prompt) tokens|trying to keep the first \d+ tokens",
    re.IGNORECASE,
)


def _parts(error: Exception) -> tuple[int, str]:
    """The HTTP status of an error and what the server says in it, bounded in length."""
    return getattr(error, "status_code", 200), f"{error} {getattr(error, 'body', '')}"[:10_000]


def overflows(error: Exception) -> bool:
    """Whether an error says that the prompt does not fit the context window.

    Credentials, unknown models and rate limits ("… tokens per minute") speak of other things.
    """
    status, text = _parts(error)
    return status not in (401, 403, 404, 429) and bool(_OVERFLOW.search(text))


# vLLM: "EngineCore encountered an issue", EngineDeadError; torch behind any server: "CUDA error: …". Memory that was
# short for once ("CUDA out of memory") is none of them.
_DEAD = re.compile(r"CUDA error|device-side assert|EngineDeadError|EngineCore encountered", re.IGNORECASE)
# Statuses that say nothing about the request, besides those from 500 on: a gateway's, or of a server that is busy.
_PASSING = {405, 408, 409, 421, 425, 426, 429, *range(500, 1000)}
# DeepSeek: "Model Not Exist"; OpenAI and others: "model_not_found", "The model `x` does not exist"; OpenRouter:
# "x is not a valid model ID".
_NO_MODEL = re.compile(r"\bmodel\b.{0,200}?\bnot[ _](exist|found)|model_not_found|not a valid model", re.IGNORECASE)
# OpenRouter: "requires moderation … was flagged"; Azure and others: "content policy", "content filter".
_FLAGGED = re.compile(r"moderation|flagged|content[ _-]?(policy|filter|management)", re.IGNORECASE)


def lacks_model(error: Exception) -> bool:
    """Whether a server says that it has no model of that name."""
    status, text = _parts(error)
    return status == 404 or (status in (400, 422) and bool(_NO_MODEL.search(text)))


def has_died(error: Exception) -> bool:
    """Whether a server says that its model is gone for good, so that no retry can help."""
    status, text = _parts(error)
    return status >= 500 and bool(_DEAD.search(text))


def refusal(error: Exception) -> type[EngineError] | None:
    """What an HTTP error is to a request; None if a retry, or another server, may help."""
    if overflows(error):
        return ContextLengthError
    status, text = _parts(error)
    if status == 429 and "insufficient_quota" in text:
        return EngineFatalError
    if status == 403 and _FLAGGED.search(text):  # its own fault, not the key's
        return RefusedError
    if status in (401, 402, 403, 404, 407):
        return EngineFatalError
    return RefusedError if status >= 400 and status not in _PASSING else None


def unwritable(body: Mapping[str, Any]) -> RefusedError | None:
    """The error of a request that cannot be sent: its text is not Unicode, or its parameters are not JSON."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return RefusedError(f"the request cannot be written as JSON: {type(error).__name__}: {error}"[:500])
    return None


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait; 0 where it asks for none.

    That is `retry-after-ms`, or `Retry-After` as seconds or a date.
    """
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with contextlib.suppress(KeyError, ValueError):
            return max(0.0, float(headers[name]) / unit)
    with contextlib.suppress(KeyError, ValueError, TypeError, OverflowError):
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    return 0.0


def read_completion(data: Any, latency: float, constrained: bool = False, with_tools: bool = False) -> Completion:
    """A chat completion's JSON as a Completion.

    Args:
        data: the JSON.
        latency: seconds it took.
        constrained: the reply was held to a form from its first token, or counts as it is written, so tags of reasoning
            in it are its content.
        with_tools: the model could call tools; else no call of it counts.

    Raises:
        GarbledError: if there is no choice with a message in it.
    """
    if isinstance(data, dict) and data.get("error"):  # gateways wrap the error of a server behind them
        raise GarbledError(f"an error behind HTTP 200: {str(data['error'])[:2000]}")
    try:
        choice = data["choices"][0]
        message = choice["message"]
        content = message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise GarbledError(f"the server's reply is not a chat completion: {str(data)[:200]!r}") from error
    text = _text(content)
    if not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if not isinstance(reasoning, str):
        reasoning, text = (None, text) if constrained else split_reasoning(text)
    reason = choice.get("finish_reason")
    return Completion(
        text=storable(text),
        reasoning=storable(reasoning) if reasoning else None,
        finish_reason=reason if isinstance(reason, str) else None,
        latency=latency,
        tool_calls=calls_of(message.get("tool_calls")) if with_tools else None,
        **read_usage(data.get("usage")),
    )


def read_text(data: Any, latency: float) -> Completion:
    """The JSON of `/v1/completions` as a Completion, its text as the model wrote it. Raises `GarbledError`."""
    if isinstance(data, dict) and data.get("error"):
        raise GarbledError(f"an error behind HTTP 200: {str(data['error'])[:2000]}")
    try:
        choice = data["choices"][0]
        text, reason = choice["text"], choice.get("finish_reason")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise GarbledError(f"the server's reply is not a completion: {str(data)[:200]!r}") from error
    if not isinstance(text, str):
        raise GarbledError(f"the server's completion is not text: {str(text)[:200]!r}")
    reason = reason if isinstance(reason, str) else None
    return Completion(text=storable(text), finish_reason=reason, latency=latency, **read_usage(data.get("usage")))


def _text(content: Any) -> str:
    """Content is a string, null, or a list of parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        parts = (p.get("text") for p in content if isinstance(p, dict) and p.get("type", "text") == "text")
        return "".join(p for p in parts if isinstance(p, str))
    raise GarbledError(f"the server's message content is neither text nor parts: {str(content)[:200]!r}")


def read_usage(usage: Any) -> dict[str, Any]:
    def count(*places: tuple[Any, str]) -> int | None:
        numbers = (count_of(part.get(name)) for part, name in places if isinstance(part, dict))
        return next((n for n in numbers if n is not None), None)

    details = usage if isinstance(usage, dict) else {}
    prompt, completion = details.get("prompt_tokens_details"), details.get("completion_tokens_details")
    return {
        "input_tokens": count((usage, "prompt_tokens"), (usage, "input_tokens")),
        "output_tokens": count((usage, "completion_tokens"), (usage, "output_tokens")),
        "cached_tokens": count((prompt, "cached_tokens"), (usage, "prompt_cache_hit_tokens")),
        "reasoning_tokens": count((completion, "reasoning_tokens"), (usage, "reasoning_tokens")),
    }


def count_of(number: Any) -> int | None:
    """A count as servers write it: 7, 7.0, "7"."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 16:
        return int(number)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if type(number) is int and 0 <= number < 10**15 else None
