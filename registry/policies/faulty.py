"""Another policy with one planted fault, for what looks for faults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from harness.api import Action, Policy, PolicyWrapper, Range, Turn, plugin

_DIGIT = re.compile(r"\d")


@plugin
class Faulty(PolicyWrapper):
    """Plays as another policy does, but for one turn, in which it errs.

    Attributes:
        of: the policy.
        at: the agent's own turn in which it errs, from 0.
        fault: "wrong": another legal option, or every digit of its texts is another one (a text without digits is
            written backwards). "silent": it does nothing, so that what it would have said is lost. "late": it does
            nothing, and what it would have done then in its next turn. "none": it does not err.
        every: whether it errs in all its turns from `at` on.
    """

    of: Policy
    at: Annotated[int, Range(ge=0)] = 0
    fault: Literal["wrong", "silent", "late", "none"] = "wrong"
    every: bool = False

    def __post_init__(self) -> None:
        self.wrap(self.of)
        self._held = list[Action]()

    def instead(self, turn: Turn, action: Action, now: int) -> Action:
        """Return the other policy's action, or the fault."""
        if self._held and turn.reply.allows(self._held[0]):
            return self._held.pop()
        if self.fault == "none" or not (now >= self.at if self.every else now == self.at):
            return action
        if self.fault == "late":
            self._held = [action]
        other = turn.reply.noop if self.fault in ("silent", "late") else self._wrong(turn, action)
        return other if other == turn.reply.noop or turn.reply.allows(other) else turn.reply.noop

    def _wrong(self, turn: Turn, action: Action) -> Action:
        options = turn.reply.options
        if not options:
            return _garbled(action)
        at = options.index(action) if action in options else -1
        return options[(at + 1) % len(options)]


def _garbled(value: Any, key: str = "") -> Any:
    """A value whose texts and numbers are others; names of calls and of those whom they reach stay."""
    if isinstance(value, Mapping):
        return {name: _garbled(one, str(name)) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_garbled(one) for one in value]
    if isinstance(value, str) and key not in ("call", "target_id", "path", "action"):
        other = _DIGIT.sub(lambda match: str((int(match[0]) + 1) % 10), value)
        return other if other != value else value[::-1]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value + 1
    return value
