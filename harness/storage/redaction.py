"""Keeps keys and passwords out of everything that is written or printed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

_HUMP = r"(?-i:(?<=[a-z0-9])(?:Token|Auth|Signature|Sig|Jwt|Pwd|Bearer))"
"""The last word of a name in camelCase: `sessionToken`. Not `maxTokens`."""
_JOINED = (
    r"(?:access|api|auth|bearer|bot|client|csrf|hub|id|oauth2?|refresh|secret|security|session|sso|user|xsrf)token"
)
"""Names of which people leave out the separator."""
_NAME = re.compile(
    r"key$|(?:access|private|signing|encryption)[_-]?key|secret|passw|pass[_-]?phrase|authori[sz]ation|credential|cookie|"
    rf"(?:^|[_.-])(?:token|auth|signature|sig|jwt|pwd|bearer)$|{_HUMP}$|{_JOINED}$",
    re.IGNORECASE,
)
_HEADERS = re.compile(r"headers$", re.IGNORECASE)
"""A key may be in a header of any name, so no value of a header is written down."""

# Inside a text: `api_key=x`, `"hf_token": "x"`, `Authorization: Basic x`, `https://x@host`, `default_headers={…}`;
# not `max_tokens=x`, not `api_key_env=x`. A value ends where its quotes do. One without ends at a comma (a command's
# word) or at a blank (prose), less the brackets that were open around it.
_BEFORE = (
    r"(?<![a-z0-9_.-])(?:[a-z0-9_.-]*(?:key|(?:access|private|signing|encryption)[_-]?key[a-z0-9_-]*(?<!_env)|secret|"
    rf"passw(?:or)?d|passwd|pass[_-]?phrase|credentials?|cookie|{_HUMP}|{_JOINED})|"
    r"(?:[a-z0-9_.-]*[_.-])?(?:token|auth|signature|sig|jwt|bearer)|(?:[a-z0-9_.-]*[_.-])?pwd|"
    r"[a-z_-]*authori[sz]ation)[\"']?\s*[=:]\s*"
)
_SCHEME = r"(?:(?:bearer|basic|digest|token|negotiate|apikey)\s+)?"
_QUOTED = r"\"(?:\\.|[^\"\\])*+\"?|'(?:\\.|[^'\\])*+'?"
_WORD = re.compile(rf"({_BEFORE})(?:{_QUOTED}|({_SCHEME})[^,\"'\s][^,]*?(?=[\"'}}\]\s]*(?:,|$)))", re.IGNORECASE)
_PROSE = re.compile(
    rf"({_BEFORE})(?:{_QUOTED}|({_SCHEME})[^,\"'\s][^,\s]*?(?=[\"'}}\]).;]*(?:[,\s]|$)))", re.IGNORECASE
)
_OF_HEADERS = re.compile(r"(headers[\"']?\s*[=:]\s*)\{[^{}]*\}?", re.IGNORECASE)
_USER = re.compile(r"(://)[^/?#\s\"'<>]+(?=@)")
# As providers write them: nothing else looks so, wherever it stands.
_KEYS = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[a-z]-[\w-]{10,}|"
    r"AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]+\.[\w-]+)"
)
_MIN_SECRET_CHARS = 4
"""Characters of a known secret: a shorter one would be taken out of ordinary words."""


def without_secrets(value: Any) -> Any:
    """The value with "…" for every text below it whose name, or the word before it, sounds like a secret's.

    For parameters of an engine and words of a command.

    >>> without_secrets({"api_key": "sk-1", "max_tokens": 3, "base_url": "https://me:P@SS@host/v1"})
    {'api_key': '…', 'max_tokens': 3, 'base_url': 'https://…@host/v1'}
    """
    if isinstance(value, Mapping):
        return {key: _below(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item) for item in value]
    return _taken_out(value, _WORD) if isinstance(value, str) else value


def _below(name: str, item: Any) -> Any:
    if _NAME.search(name) and item is not None:
        return "…"
    if _HEADERS.search(name) and isinstance(item, Mapping):
        return dict.fromkeys(item, "…")
    return without_secrets(item)


def redacted(text: str, secrets: Collection[str] = ()) -> str:
    """Prose (an error, a line of a log) with "…" for the `secrets` and for what looks like one.

    >>> redacted("401 for api_key=abc at https://tok@host: wrong key", ["tok"])
    '401 for api_key=… at https://…@host: wrong key'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_SECRET_CHARS:
            text = text.replace(secret, "…")
    return _taken_out(text, _PROSE)


def secrets_of(value: Any, secret: bool = False) -> Iterator[str]:
    """The texts that `without_secrets` takes out of a configuration, each one of the `secrets` of `redacted`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from secrets_of(item, secret or bool(_NAME.search(str(key)) or _HEADERS.search(str(key))))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from secrets_of(item, secret)
    elif isinstance(value, str):
        if secret:
            yield value
        for match in re.finditer(r"://([^/?#\s\"'<>]+)@", value):
            yield match[1]
            yield from match[1].split(":", 1)


def _taken_out(text: str, pattern: re.Pattern[str]) -> str:
    text = _USER.sub(r"\1…", text)
    text = _OF_HEADERS.sub(r"\1{…}", text)
    return _KEYS.sub("…", pattern.sub(_name_alone, text))


def _name_alone(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2] or ''}…"
