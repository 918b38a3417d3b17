"""What OpenAI-compatible servers send, read leniently: completions and what they say of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from harness.api import Completion
from harness.api.errors import RefusedError
from harness.engines.reasoning import split_reasoning
from harness.engines.tool_calls import calls_of, storable
from harness.extensions.openai.returned import Sends, returned, thought_of


class GarbledError(Exception):
    """The server said 200 and something that is not an answer of its model; asking again may help."""


ID_HEADER = "X-Request-Id"
"""Names a request, by a UUID: llama-cpp-python's server takes no other. vLLM names its answer by it, and gateways give
it back."""


def check_id(sent: str, said: Any) -> None:
    """Raise `GarbledError` where an answer names another request of this engine than the one that was `sent`: what
    stands before the number of both, twelve hexadecimal digits, is the same."""
    own, _, number = sent.rpartition("-")
    if own and isinstance(said, str) and f"{own}-" in said:
        other = re.match(r"[0-9a-f]{12}", said[said.index(f"{own}-") + len(own) + 1 :])
        if other is not None and other[0] != number:
            which = int(number, 16), int(other[0], 16)
            raise GarbledError("the server answers request {} with the reply to request {}".format(*which))


REASONS = frozenset(
    {
        "stop", "length", "tool_calls", "function_call", "content_filter", "end_turn", "eos", "stop_sequence",
        "eos_token", "max_tokens", "model_length", "tool_use", "repetition", "",
    }
)  # fmt: skip
"""How a model ends a reply: OpenAI's words, Anthropic's (`end_turn`, `stop_sequence`, `max_tokens`, `tool_use`), TGI's
(`eos_token`), Mistral's (`model_length`), vLLM's (`repetition`), and what gateways make of them. Any other word is of a
server that could not go on: `error`, `abort`, `insufficient_system_resource`, …"""


def unwritable(body: Mapping[str, Any]) -> RefusedError | None:
    """The error of a request that cannot be sent: its text is not Unicode, or its parameters are not JSON."""
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        return RefusedError(f"the request cannot be written as JSON: {type(error).__name__}: {error}"[:500])
    return None


_PAGE = re.compile(r"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html|head)\b", re.IGNORECASE | re.DOTALL)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)


def web_page(data: Any) -> str | None:
    """What is said of a web page that came in place of JSON, such as one to log in; None for anything else."""
    if not isinstance(data, str) or _PAGE.match(data) is None:
        return None
    title = _TITLE.search(data[:20_000])
    named = f" ({' '.join(title[1].split())!r})" if title else ""
    return f"the server answers with a web page{named} in place of JSON"


def _garbled(what: str, data: Any) -> GarbledError:
    return GarbledError(web_page(data) or f"the server's reply is not {what}: {str(data)[:200]!r}")


def read_completion(
    data: Any,
    latency: float,
    constrained: bool = False,
    with_tools: bool = False,
    sends: Sends = "never",
    model: str = "",
) -> Completion:
    """A chat completion's JSON as a Completion.

    Args:
        data: the JSON.
        latency: seconds it took.
        constrained: the reply was held to a form from its first token, or counts as it is written, so tags of reasoning
            in it are its content.
        with_tools: the model could call tools; else no call of it counts.
        sends: the thoughts of which replies go back to the server (`returned`).
        model: the engine's name for the model to which they go back.

    Raises:
        GarbledError: if there is no choice with a message in it, or it is the failure of a server and no answer.
    """
    try:
        choice = _choice(data)
        message = choice["message"]
        content = message.get("content")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _garbled("a chat completion", data) from error
    text = _text(content)
    if not text and isinstance(message.get("refusal"), str):
        text = message["refusal"]
    reasoning = thought_of(message)
    if reasoning is None:
        reasoning, text = (None, text) if constrained else split_reasoning(text)
    text, reasoning = storable(text), storable(reasoning) if reasoning else None
    calls = calls_of(message.get("tool_calls")) if with_tools else None
    fields = returned(message, sends, reasoning, text) if calls or sends == "always" else None
    fields = {"model": model, **fields} if fields else None
    return _answer(
        data, choice, text=text, reasoning=reasoning, latency=latency, tool_calls=calls, provider_fields=fields
    )


def read_text(data: Any, latency: float) -> Completion:
    """The JSON of `/v1/completions` as a Completion, its text as the model wrote it. Raises `GarbledError`."""
    try:
        choice = _choice(data)
        text = choice["text"]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _garbled("a completion", data) from error
    if not isinstance(text, str):
        raise GarbledError(f"the server's completion is not text: {str(text)[:200]!r}")
    return _answer(data, choice, text=storable(text), latency=latency)


def _choice(data: Any) -> dict[str, Any]:
    """The choice of a response. Raises `GarbledError` where it holds the error of a server behind this one, and what
    indexing raises where there is none."""
    _raise_error(data)
    choice: dict[str, Any] = data["choices"][0]
    _raise_error(choice)  # OpenRouter: in the choice, with the finish_reason "error"
    return choice


def _raise_error(place: Any) -> None:
    if isinstance(place, dict) and place.get("error"):
        raise GarbledError(f"an error behind HTTP 200: {str(place['error'])[:2000]}")


def _answer(data: Any, choice: Mapping[str, Any], **said: Any) -> Completion:
    """A completion. Raises `GarbledError` where the server could not go on, and what it says is not the model's."""
    reason = choice.get("finish_reason")
    reason = reason if isinstance(reason, str) else None
    if reason is not None and reason.lower() not in REASONS and not reason.lower().startswith("content_filter"):
        raise GarbledError(f"the server ended the reply with finish_reason {reason[:100]!r}")
    usage = data.get("usage")
    answer = Completion(finish_reason=reason, cost=cost_of(usage), **said, **read_usage(usage))
    spoke = answer.text or answer.reasoning or choice.get("message", {}).get("tool_calls")
    if not spoke and answer.output_tokens == 0 and not (reason or "").lower().startswith("content_filter"):
        raise GarbledError("the server's reply is empty, of 0 tokens: its model has not answered")
    return answer


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
    """Counts of tokens, as they are billed; None for what the server does not say.

    Some count reasoning beside the reply (Gemini and gateways before it): then `total_tokens` is more than the sum, and
    output is all that is not prompt. Cached tokens are part of the input.
    """

    def count(*places: tuple[Any, str]) -> int | None:
        numbers = (count_of(part.get(name)) for part, name in places if isinstance(part, dict))
        return next((n for n in numbers if n is not None), None)

    details = usage if isinstance(usage, dict) else {}
    prompt, completion = details.get("prompt_tokens_details"), details.get("completion_tokens_details")
    read, written = (
        count((usage, "prompt_tokens"), (usage, "input_tokens")),
        count((usage, "completion_tokens"), (usage, "output_tokens")),
    )
    total = count((usage, "total_tokens"))
    if total is not None and read is not None and total >= read + (written or 0):
        written = total - read
    return {
        "input_tokens": read,
        "output_tokens": written,
        "cached_tokens": count(
            (prompt, "cached_tokens"), (usage, "prompt_cache_hit_tokens"), (usage, "cached_tokens"),
            (usage, "cache_read_input_tokens"),
        ),
        "reasoning_tokens": count((completion, "reasoning_tokens"), (usage, "reasoning_tokens")),
    }  # fmt: skip


def cost_of(usage: Any) -> float | None:
    """USD that a server says a reply cost: OpenRouter as `cost`, Perplexity as `cost.total_cost`. None where it says
    nothing; nor does 0, which gateways write that do not know it, or the fee on top of the user's own key (`is_byok`).
    """
    if not isinstance(usage, dict) or usage.get("is_byok"):
        return None
    said = usage.get("cost")
    usd: Any = said.get("total_cost") if isinstance(said, dict) else said
    return float(usd) if type(usd) in (int, float) and 0 < usd < 1e6 else None


def count_of(number: Any) -> int | None:
    """A count as servers write it: 7, 7.0, "7"."""
    if isinstance(number, str) and number.isdecimal() and len(number) < 16:
        return int(number)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if type(number) is int and 0 <= number < 10**15 else None
