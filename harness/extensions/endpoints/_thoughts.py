"""What a model's provider wants back with its calls of tools: programs send it calls alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness.api import Completion, InnerRequest
from harness.extensions.endpoints._answers import ApiReply
from harness.runtime.call_messages import extended

_KEPT = 1000
"""Replies of a seat whose thoughts are kept."""


class Thoughts:
    """`Completion.provider_fields` of a seat's replies with calls, by the ids of the calls.

    DeepSeek and Kimi refuse a conversation in which a call stands without the thought that it came with, Gemini one
    without the call's signature.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[int, Completion]] = OrderedDict()

    def keep(self, completion: Completion, reply: ApiReply) -> None:
        """Keep what belongs to a reply."""
        if completion.provider_fields and reply.calls:
            self._kept[reply.calls[0].id] = len(reply.calls), completion
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)

    def added(self, ask: InnerRequest) -> InnerRequest:
        """The request with what belongs to the calls in its messages."""
        if not self._kept:
            return ask
        messages = [self._with_thought(message) for message in ask.messages]
        return replace(ask, messages=messages)

    def _with_thought(self, message: Any) -> Any:
        calls: Sequence[Any] = message.get("tool_calls", ())
        count, completion = self._kept.get(calls[0]["id"], (0, None)) if calls else (0, None)
        if completion is None or completion.provider_fields is None or count != len(calls):
            return message
        return extended(message, completion, None, completion.provider_fields["model"])
