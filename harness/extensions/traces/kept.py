"""What is kept of what was heard until it is sent: no more than its spans say, with its size.

Nothing here holds a player, a condition or a conversation that goes on: a run would grow while its collector is away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from harness.api import Completion, Move
from harness.storage import Line
from harness.storage.inner_calls import InnerCall

from .content import Message, recent, size_of
from .episode_spans import PlayedTurn, has_failed

SIZE: Final = 1000
"""Characters of what spans say of a call, a turn or an episode, about, without content."""

Earlier = list[tuple[tuple[str, int, int], Completion]]
"""(agent, index, attempt), and of an inner call made for it `began` and `latency`."""


def kept_turn(turn: PlayedTurn, content: bool) -> tuple[PlayedTurn, int]:
    """A turn that has just ended, and how many characters it holds, about.

    Args:
        turn: with the whole conversation, if it has one.
        content: whether its spans will show what the model read and wrote.
    """
    move, calls = kept_move(turn.move, content), len(turn.move.calls)
    size = SIZE + sum(map(_size, move.calls))
    if not content:
        return replace(turn, move=move, messages=(), length=0), size
    messages, skipped = recent(turn.messages, calls + has_failed(move))
    size += len(str(move.action)) + len(move.error or "") + sum(map(size_of, messages))
    return replace(turn, move=move, messages=messages, length=len(messages), skipped=skipped), size


def kept_move(move: Move, content: bool) -> Move:
    """A move, without what its spans do not say."""
    calls = tuple(_kept(call, content) for call in move.calls)
    if content:
        return replace(move, calls=calls, dropped_fields=())
    return replace(move, action=None, error=None if move.error is None else "", calls=calls, dropped_fields=())


def kept_earlier(lines: Iterable[Line]) -> Earlier:
    """When the inner calls of these lines of a journal were, as far as a clock has said it."""
    found: Earlier = []
    for line in lines:
        answer = line.get("call") or {}
        if (began := answer.get("began")) is not None:
            call = Completion("", latency=answer.get("latency"), began=began)
            found.append(((line["s"], line["i"], line["r"]), call))
    return found


def kept_inner(call: InnerCall, content: bool) -> tuple[InnerCall, int]:
    """An inner call, without what its spans do not say, and how many characters it holds, about."""
    asked, answer = call.request, call.completion
    messages: list[Message] = [*asked.messages] if content else []
    text = None if asked.text is None else asked.text if content else ""
    error = None if call.error is None else call.error if content else ""
    request = replace(asked, messages=messages, text=text, tools=(), tool_choice=None, constraint=None)
    completion = None if answer is None else _kept(answer, content)
    size = SIZE + sum(map(size_of, messages)) + len(text or "") + len(error or "") + len(str(asked.sampling))
    size += 0 if completion is None else _size(completion)
    return replace(call, request=request, completion=completion, error=error), size


def _kept(call: Completion, content: bool) -> Completion:
    bare = replace(
        call,
        likelihoods=None if call.likelihoods is None else (),
        provider_fields=None,
        prompt_token_ids=None,
        token_ids=None,
        logprobs=None,
    )
    if content:
        return bare
    tools = call.tool_calls and [{key: one.get(key, "") for key in ("id", "name")} for one in call.tool_calls]
    return replace(bare, text="", reasoning=None, tool_calls=tools)


def _size(call: Completion) -> int:
    tools = sum(SIZE // 4 + sum(len(str(text)) for text in one.values()) for one in call.tool_calls or ())
    return SIZE + len(call.text) + len(call.reasoning or "") + len(str(call.finish_reason or "")) + tools
