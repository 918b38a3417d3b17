"""What all APIs say of a reply: its id, its calls, its end, its tokens."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.api import Completion, InnerRequest
from harness.extensions.endpoints._fields import ProblemError

_PLAIN_ID = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_CHARS_PER_TOKEN = 4
_CUT = frozenset({"length", "max_tokens", "model_length"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was read.

    Attributes:
        ask: what the model is asked.
        stream: whether the reply comes as events.
        usage: whether the events end with the counts of tokens.
        single_call: whether the program takes at most one call of a tool.
        said: fields that the reply repeats.
    """

    ask: InnerRequest
    stream: bool = False
    usage: bool = False
    single_call: bool = False
    said: tuple[tuple[str, Any], ...] = ()


def about_tokens(ask: InnerRequest) -> int:
    """About how many tokens a request has: not every engine can count before it answers."""
    return len(json.dumps([*ask.messages, *ask.tools], ensure_ascii=False)) // _CHARS_PER_TOKEN + 1


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A call of a tool: its arguments are a text, JSON if the model wrote JSON."""

    id: str
    name: str
    arguments: str

    @property
    def object(self) -> dict[str, Any]:
        """The arguments; empty where they are no object of JSON."""
        try:
            value = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}


class ApiReply:
    """A completion as the APIs show it.

    `key` names it: hexadecimal, of the call's own digest, so that a run that resumes gives the same ids again.
    `end` is "stop", "length", "tool_calls" or "content_filter".
    """

    __slots__ = ("cached", "calls", "created", "end", "input", "key", "model", "output", "reasoning", "text", "thought")

    def __init__(self, asked: Asked, completion: Completion, serial: int) -> None:
        digest = completion.request_digest or hashlib.sha256(f"{asked.ask.digest} {serial}".encode()).hexdigest()
        self.key = digest[:24]
        self.model, self.created = asked.ask.model, int(time.time())
        self.text, self.reasoning = completion.text, completion.reasoning
        calls = completion.tool_calls or ()
        self.calls = calls_of(calls[:1] if asked.single_call else calls, self.key)
        reason = (completion.finish_reason or "stop").lower()
        self.end = (
            "length" if reason in _CUT
            else "content_filter" if reason.startswith("content_filter")
            else "tool_calls" if self.calls
            else "stop"
        )  # fmt: skip
        self.input, self.output = completion.input_tokens or 0, completion.output_tokens or 0
        self.cached, self.thought = completion.cached_tokens or 0, completion.reasoning_tokens or 0


def calls_of(calls: Sequence[Any], key: str) -> tuple[ApiCall, ...]:
    """Calls with ids that are plain, and different from each other."""
    found: list[ApiCall] = []
    seen: set[str] = set()
    for number, call in enumerate(calls):
        name = call.get("id") or ""
        if name in seen or not _PLAIN_ID.fullmatch(name):
            name = f"call_{key}{number}"
        seen.add(name)
        found.append(ApiCall(name, call.get("name") or "", call.get("arguments") or ""))
    return tuple(found)


class Api(Protocol):
    """One kind of call: how its requests are read, and its replies written."""

    ping: bytes
    """What tells a program that waits for events that the connection lives."""

    def read(self, body: dict[str, Any]) -> Asked:
        """Read a request. Raises `ProblemError`."""

    def reply(self, asked: Asked, answer: ApiReply) -> dict[str, Any]:
        """The whole reply."""

    def events(self, asked: Asked, answer: ApiReply) -> bytes:
        """The reply as server-sent events, the last included."""

    def error(self, problem: ProblemError) -> dict[str, Any]:
        """The body of a refusal."""

    def error_events(self, problem: ProblemError) -> bytes:
        """A refusal after events have begun."""


def event(data: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()
