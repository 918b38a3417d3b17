"""Model calls that an agent program makes while it plays a seat: what it asks, in which turn, and how it is answered.

An engine whose replies come from such programs is a `CallsModels`.
"""

from __future__ import annotations

import hashlib
import json
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .episode import Completion
from .errors import EngineError
from .reply import Facts

DIGEST_CHARS = 32
"""Hexadecimal digits of an inner request's digest."""


class NoTurnError(EngineError):
    """An inner call at a time when its seat has no turn: before the first, after a reply, after the episode."""

    kind = "no_turn"


@dataclass(frozen=True, slots=True)
class TurnId:
    """One try of an agent's turn: the reply that a request with the id `episode/agent/index/attempt` asks for."""

    episode: str
    agent: str
    index: int
    attempt: int

    @classmethod
    def of(cls, request_id: str) -> TurnId:
        """From `Request.id`. Raises `ValueError` for another text."""
        episode, agent, index, attempt = request_id.rsplit("/", 3)
        return cls(episode, agent, int(index), int(attempt))

    def __str__(self) -> str:
        return f"{self.episode}/{self.agent}/{self.index}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class InnerRequest:
    """What an agent program asks its model, in the harness's words, whichever API it spoke.

    Attributes:
        api: "chat", "completions", "responses" or "messages".
        model: the name that the program wrote; it is recorded, and chooses nothing.
        messages: in OpenAI's chat shape, each with `role` and `content` (text), and maybe `tool_calls`, `tool_call_id`.
        text: of "completions": the text to continue, in place of messages; else None.
        tools: functions that the model may call, each {"name", "description", "parameters"}.
        tool_choice: None, "auto", "none", "required", or {"name": …}.
        sampling: in the words of `harness.engines.sampling`, as far as the program says them.
        constraint: as `Request.constraint`.
    """

    api: str
    model: str
    messages: Sequence[Facts] = ()
    text: str | None = None
    tools: Sequence[Facts] = ()
    tool_choice: str | Facts | None = None
    sampling: Facts = field(default_factory=dict)
    constraint: Facts | None = None
    digest: str = field(default="", init=False, compare=False)

    def __post_init__(self) -> None:
        parts = [getattr(self, name) for name in ("api", "model", "text", "tool_choice", "constraint")]
        whole = [*parts, list(self.messages), list(self.tools), dict(self.sampling)]
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"), default=_plain)
        object.__setattr__(self, "digest", hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS])


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, Sequence) else repr(value)


class SeatCalls(typing.Protocol):
    """The model behind one seat of an episode.

    Attributes:
        name: the inner engine's model, as its tables call it.
        replaying: (index, attempt) of an earlier turn that the program plays again, so that it has its memory back:
            calls are then answered by what is recorded of that turn. None: calls belong to the present turn.
    """

    name: str
    replaying: tuple[int, int] | None

    async def complete(self, ask: InnerRequest) -> Completion:
        """Answer an inner call of the seat's present turn.

        Raises:
            NoTurnError: the seat has none.
            LimitReachedError: a limit of the seat or the turn allows no further call.
            EngineError: as the inner engine raises; BudgetSpentError, EngineFatalError: the run stops.
        """

    def when_over(self, then: Callable[[], None]) -> None:
        """Call `then` once the episode is over."""


class InnerDoor(typing.Protocol):
    """What an engine that `CallsModels` gets from a run, before it starts."""

    def seat(self, episode: str, agent: str) -> SeatCalls:
        """The model behind a seat; the same object for the same seat as long as its episode is open."""
