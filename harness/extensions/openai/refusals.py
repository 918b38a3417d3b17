"""What servers refuse, in the words of each: what an error means to a request, and how many tokens would have fit."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from harness.api.errors import ContextLengthError, EngineError, EngineFatalError, RefusedError
from harness.extensions.openai.wire import GarbledError
from harness.storage.redaction import redacted

# OpenAI and vLLM: "maximum context length", "context_length_exceeded", "exceeds the context window"; vLLM also: "longer
# than the maximum model length"; llama.cpp: "exceed_context_size_error", "available context size"; SGLang: "longer
# than the model's context length", "exceeds the maximum allowed length"; gateways: "prompt is too long", "input token
# count"; TGI and Together: "`inputs` tokens + `max_new_tokens` must be <= 4096", "`inputs` must have less than 1024
# tokens"; Bedrock: "Input is too long for requested model"; Cohere: "too many tokens: size limit exceeded"; Groq:
# "Please reduce the length of the messages or completion"; xAI: "maximum prompt length is 131072 but the request
# contains …"; Moonshot: "exceeded model token limit"; Zhipu: "Prompt exceeds max length"; DashScope: "Range of input
# length should be [1, 30720]".
_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size)|maximum (model|allowed|input|prompt) length|(prompt|input) is too long"
    r"|input token count|too many (input|prompt) tokens|trying to keep the first \d+ tokens"
    r"|inputs\W{1,3}(tokens \+|must have less than)|too many tokens: size limit|reduce the length of"
    r"|exceeded model token limit|prompt exceeds max(imum)? length|range of input length",
    re.IGNORECASE,
)


def _parts(error: Exception) -> tuple[int, str]:
    """The HTTP status of an error and what the server says in it, bounded in length."""
    return getattr(error, "status_code", 200), f"{error} {getattr(error, 'body', '')}"[:10_000]


def in_one_line(error: Exception, secrets: Collection[str]) -> str:
    """An error with its cause, without these texts."""
    text = f"{type(error).__name__}: {error}"
    if error.__cause__ is not None and not hasattr(error, "status_code") and not isinstance(error, GarbledError):
        # The transport's own words: the package calls a refused connection a timeout.
        text = f"{str(error.__cause__) or type(error.__cause__).__name__} ({type(error).__name__})"
    if hasattr(error, "status_code") and getattr(error, "body", None) == "":
        text += " with an empty body"
    return " ".join(redacted(text[:10_000], {*secrets}).split())[:500]


def server_words(error: Exception, secrets: Collection[str]) -> str:
    """What a server says in a refusal, without these texts; of other errors as `in_one_line`."""
    body, status = getattr(error, "body", None), getattr(error, "status_code", None)
    message = body.get("message") if isinstance(body, dict) else None
    if status is None or not isinstance(message, str):
        return in_one_line(error, secrets)
    return f"HTTP {status}: {' '.join(redacted(message[:10_000], {*secrets}).split())[:300]}"


# OpenAI (429) and Groq (413): "Request too large for gpt-4o … on tokens per min (TPM): Limit 30000, Requested 61000":
# it never fits a limit of the rate.
_TOO_LARGE = re.compile(r"request too large for", re.IGNORECASE)


def overflows(error: Exception) -> bool:
    """Whether an error says that the prompt does not fit the context window.

    Credentials, unknown models and rate limits ("… tokens per minute") speak of other things. HTTP 413 means it without
    a word, unless it speaks of such a limit (Groq).
    """
    status, text = _parts(error)
    if status == 413:
        return not _TOO_LARGE.search(text)
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


# Gateways say HTTP 200, or 503, and the provider's 429 within.
_LIMITED = re.compile(r"'code': '?429\b|rate[ _-]limit(?:ed|s)? (?:reached|exceeded)|too many requests", re.IGNORECASE)


def is_limit(error: Exception) -> bool:
    """Whether a server says that it is asked too often, for now: waiting helps."""
    status, text = _parts(error)
    if status == 429:
        return "insufficient_quota" not in text and not _TOO_LARGE.search(text)
    return status in (200, 503, 529) and not isinstance(error, EngineError) and bool(_LIMITED.search(text))


def refusal(error: Exception) -> type[EngineError] | None:
    """What an HTTP error is to a request; None if a retry, or another server, may help."""
    if overflows(error):
        return ContextLengthError
    status, text = _parts(error)
    if status == 429 and "insufficient_quota" in text:
        return EngineFatalError
    if status == 429 and _TOO_LARGE.search(text):
        return RefusedError
    if status == 403 and _FLAGGED.search(text):  # its own fault, not the key's
        return RefusedError
    if status in (401, 402, 403, 404, 407):
        return EngineFatalError
    return RefusedError if status >= 400 and status not in _PASSING else None


@dataclass(frozen=True, slots=True)
class TokensLeft:
    """What a refusal says of how long a reply may be.

    Attributes:
        tokens: that a reply may have, at least 1; 0: as many as are left, which the server did not count.
        window: tokens of prompt and reply together; None where the refusal does not say it.
    """

    tokens: int
    window: int | None = None


# Each has the window and the prompt's tokens. vLLM 0.5 to 0.9, OpenRouter: "maximum context length is 8192 tokens.
# However, you requested 9000 tokens (1000 in the messages, 8000 in the completion)"; vLLM: "maximum context length is
# 8192 tokens and your request has 500 input tokens"; SGLang: "maximum context length of 8192 tokens. You requested a
# total of 9000 tokens: 1000 tokens from the input messages and 8000 tokens for the completion"; Anthropic and
# gateways: "exceed context limit: 188240 + 21333 > 200000"; TGI: "`inputs` tokens + `max_new_tokens` must be <= 4096.
# Given: 4000 `inputs` tokens and 200 `max_new_tokens`".
_COUNTED = (
    re.compile(r"length is (?P<window>\d+) tokens.{0,200}?\b(?P<prompt>\d+) (?:in (?:the|your) [mp]|of text)"),
    re.compile(r"length (?:is|of) (?P<window>\d+) tokens.{0,200}?\bhas (?P<prompt>\d+) input tokens"),
    re.compile(r"length (?:is|of) (?P<window>\d+) tokens.{0,200}?\b(?P<prompt>\d+) tokens from the input"),
    re.compile(r"context limit: (?P<prompt>\d+) \+ \d+ > (?P<window>\d+)"),
    re.compile(r"max_new_tokens\W{0,3} must be <= (?P<window>\d+)\. Given: (?P<prompt>\d+) \W?inputs"),
)
# vLLM since 0.15 stops counting where the prompt is too long beside max_tokens: "maximum context length is 128000
# tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens".
_AT_LEAST = re.compile(
    r"length is (?P<window>\d+) tokens.{0,80}?requested \d+ output tokens.{0,80}?at least (?P<prompt>\d+) input"
)
# The model's own bound of a reply. OpenAI: "max_tokens is too large: 100000. This model supports at most 16384
# completion tokens"; Groq: "`max_tokens` must be less than or equal to `8192`"; DeepSeek: "the valid range of
# max_tokens is [1, 8192]".
_REPLY = re.compile(
    r"supports at most (\d+) completion tokens|max_(?:completion_)?tokens\W{0,3} must be less than or equal to \W?(\d+)"
    r"|valid range of max_tokens is \[1, ?(\d+)\]"
)


def tokens_left(error: Exception, sent: Mapping[str, Any], is_chat: bool) -> TokensLeft | None:
    """How long a reply a refused request could have had; None where the error does not say that a shorter one would do,
    as for a prompt that does not fit by itself.

    Args:
        error: the refusal.
        sent: the request's body.
        is_chat: it went to the chat endpoint, where replies without a bound take what is left.
    """
    status, text = _parts(error)
    asked = sent.get("max_tokens", sent.get("max_completion_tokens"))
    if status not in (400, 413, 422, 500) or type(asked) is not int:
        return None
    if (found := _REPLY.search(text)) is not None:
        most = int(next(filter(None, found.groups())))
        return TokensLeft(most) if 0 < most < asked else None
    for pattern in _COUNTED:
        if (found := pattern.search(text)) is not None:
            window = int(found["window"])
            left = window - int(found["prompt"])
            return TokensLeft(left, window) if 0 < left < asked else None
    if (found := _AT_LEAST.search(text)) is not None and int(found["prompt"]) < int(found["window"]):
        left = 0 if is_chat else asked // 2
        return TokensLeft(left, int(found["window"])) if left or is_chat else None
    return None
