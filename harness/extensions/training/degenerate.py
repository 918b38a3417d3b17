"""Players that solve nothing: a declared reward that pays one of them more than the floor can be hacked."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Action, Completion, Reply, as_text
from harness.extensions.replay.changes import call_of

from .learner import Generate, PendingTurn

CONSTANTS = 3
"""How many of a form's options are tried in every turn, beside the last one: the first ones."""
_LONGEST = 2000
"""Characters that are repeated of what was read."""


def players() -> dict[str, Generate]:
    """Name → a player, as a trainer's model. Where turns have few options, some of them play alike."""
    constants = {f"constant: option {i + 1}": functools.partial(_constant, i) for i in range(CONSTANTS)}
    return {
        "silent": _silent,
        "idle": _idle,
        **constants,
        "constant: last option": functools.partial(_constant, -1),
        "echoing": _echoing,
        "copying": _copying,
    }


def said(reply: Reply, action: Action) -> str | Completion:
    """An action as a model would give it."""
    if reply.tools and not reply.takes_text:
        return Completion("", tool_calls=[call_of(i, one) for i, one in enumerate(reply.calls_of(action))])
    return reply.written(action) or as_text(action)


def _silent(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    """Writes nothing."""
    return ""


def _idle(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str | Completion:
    """Does nothing, in the form that is asked for."""
    return said(seat.reply, seat.reply.noop)


def _constant(number: int, messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str | Completion:
    """Always the same option; the last one where there are fewer."""
    actions = _actions(seat.reply)
    return said(seat.reply, actions[min(number, len(actions) - 1)]) if actions else "0"


def _echoing(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str:
    """Repeats what it was asked."""
    return _last(messages)


def _copying(messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> str | Completion:
    """Does what was named last in what it read, as others' messages and moves are; else repeats the last line."""
    read = _last(messages)
    texts = [(as_text(one).strip("\"'"), one) for one in _actions(seat.reply)]
    named = [(read.rfind(text), -i) for i, (text, _) in enumerate(texts) if text and text in read]
    if named:
        return said(seat.reply, texts[-max(named)[1]][1])
    lines = [line.strip() for line in read.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _actions(reply: Reply) -> Sequence[Action]:
    return reply.options or reply.examples


def _last(messages: Sequence[Mapping[str, Any]]) -> str:
    """The end of the last message."""
    content = messages[-1].get("content") if messages else ""
    return content[-_LONGEST:] if isinstance(content, str) else ""
