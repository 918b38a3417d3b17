"""How long a server asks to wait, in every form that servers have for it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# OpenAI: "Please try again in 20s", "in 6ms", "in 1m30s", "in 7m12s"; Azure: "Please retry after 33 seconds"; Gemini:
# "Please retry in 41.2s.", "retryDelay': '41s'".
_IN_WORDS = re.compile(
    r"(?:try again|retry(?:ing)?) (?:in|after) (?P<span>(?:\d+(?:\.\d+)?(?:ms|s|m|h|d)(?![a-z]))+)"
    r"|(?:try again|retry(?:ing)?) (?:in|after) (?P<number>\d+(?:\.\d+)?) ?"
    r"(?P<unit>milliseconds?|seconds?|minutes?|hours?)"
    r"|retryDelay\W{1,4}(?P<delay>\d+(?:\.\d+)?s)",
    re.IGNORECASE,
)
_WORDS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_PREFIXES = ("x-ratelimit", "anthropic-ratelimit", "ratelimit")


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


def limited_for(headers: Mapping[str, str], text: str = "") -> float:
    """The seconds until a server that limits rates takes more: 0 where it says nothing of it.

    `Retry-After` comes first, then `x-ratelimit-reset-*` of what is used up, then the words of the error.

    Args:
        headers: of the response.
        text: the error's.
    """
    return retry_after(headers) or _until_reset(headers) or _in_words(text)


def headers_and_text(error: Exception) -> tuple[Mapping[str, str], str]:
    """What a client's error has of them."""
    return getattr(getattr(error, "response", None), "headers", {}), f"{error} {getattr(error, 'body', '')}"[:10_000]


def _until_reset(headers: Mapping[str, str]) -> float:
    """By OpenAI's `x-ratelimit-reset-requests: 6m0s` and its kin: the longest of those of which nothing remains, of all
    where no header says what remains."""
    known = {name.lower(): value for name, value in headers.items()}
    spans, empty = [], []
    for name, value in known.items():
        prefix = next((one for one in _PREFIXES if name.startswith(one)), None)
        if prefix is None or "reset" not in name:
            continue
        seconds = _span(value.strip())
        spans.append(seconds)
        if known.get(name.replace("reset", "remaining"), "").strip() == "0":
            empty.append(seconds)
    return max(empty or spans, default=0.0)


def _span(value: str) -> float:
    """Seconds of `6m0s`, `20ms`, `7`, a date, or a time since 1970 in seconds or milliseconds (OpenRouter)."""
    with contextlib.suppress(ValueError):
        number = float(value)
        if number > 1e11:
            number /= 1000
        return max(0.0, number - time.time()) if number > 1e9 else max(0.0, number)
    if parts := _SPAN.findall(value):
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    with contextlib.suppress(ValueError):
        return max(0.0, datetime.fromisoformat(value).timestamp() - time.time())
    return 0.0


def _in_words(text: str) -> float:
    found = _IN_WORDS.search(text[:10_000])
    if found is None:
        return 0.0
    if found["number"]:
        return float(found["number"]) * _WORDS[found["unit"].lower().rstrip("s")]
    return _span((found["span"] or found["delay"]).lower())
