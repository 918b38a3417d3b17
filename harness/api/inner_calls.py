"""Model calls that an agent program makes while it plays a seat: what it asks, in which turn, and how it is answered.

An engine whose replies come from such programs is a `CallsModels`.
"""

from __future__ import annotations

import hashlib
import json
import typing
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from .engine import Engine
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
        messages: in the shape of a chat, each with `role` and `content` (text), and maybe `tool_calls`, `tool_call_id`.
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


@dataclass(frozen=True, slots=True)
class InnerUsage:
    """What an agent program has asked its model in a turn, in all attempts together.

    Attributes:
        calls: how many were answered, or failed.
        input_tokens, output_tokens, cached_tokens, reasoning_tokens: of the answers, also of those that were dropped:
            they were paid for; counts that an engine does not report are left out.
        cost: USD that engines report; None if none does.
        unpriced_input_tokens, unpriced_output_tokens, unpriced_cached_tokens: those of answers that say how many,
            and not what they cost.
        priced: how many answers say what they cost.
        uncounted: how many answers say neither that nor how many tokens they took.
        refused: how many a limit did not allow.
        failed: how many of `calls` failed.
        dropped: how many that are recorded the program did not make again after a resume: it went another way.
        seconds: how long the seat had its turn.
        limited: whether the turn ended without a reply, and a limit had refused a call.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost: float | None = None
    unpriced_input_tokens: int = 0
    unpriced_output_tokens: int = 0
    unpriced_cached_tokens: int = 0
    priced: int = 0
    uncounted: int = 0
    refused: int = 0
    failed: int = 0
    dropped: int = 0
    seconds: float = 0.0
    limited: bool = False

    def as_json(self) -> dict[str, Any]:
        """What of it says something."""
        return {name: value for name in self.__slots__ if (value := getattr(self, name))}


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


class CallsModels(Engine):
    """An engine whose replies come from programs that may call a model of the run: another of its engines, the *inner
    engine*, answers them, through its own gate. The run counts and records these calls apart from the replies, and
    answers recorded ones from its journal when it is resumed. A reply's tokens and cost are then those of its calls.

    Attributes:
        inner_kwargs: sampling of calls that do not say it themselves; `max_tokens` is also the most that a call gets.
        inner_limits: what a `turn` and a `seat` may use: {"turn": {"calls", "tokens", "cost", "seconds"}, "seat": …}.
        waits_for_turn: whether a call between two turns waits for the next one, in place of being refused.
    """

    calls_models: ClassVar[bool] = True
    inner_kwargs: Facts = MappingProxyType({})
    inner_limits: Mapping[str, Mapping[str, float]] = MappingProxyType({})
    waits_for_turn: bool = False
    _inner: Engine | None = None

    @property
    def inner_engine(self) -> str | Mapping[str, Any] | Engine | None:
        """A name under `models:` of the spec, or of an engine; {use: its name, …} with its fields; or an engine. None:
        its programs call no model of the run."""
        return None

    def put_before(self, inner: Engine) -> None:
        """Learn which engine answers: its description is part of this one's."""
        self._inner = inner

    def connect(self, calls: InnerDoor) -> None:
        """Get the door to the inner engine, before `start`."""


class RepeatsPrograms(CallsModels):
    """An engine that stands for such an engine of a recorded run: it repeats the replies, and no program runs. Its
    inner engine is not asked, and takes part in the run for its name in tables alone."""

    @abstractmethod
    def inner_usage(self, episode: str, agent: str, index: int) -> InnerUsage | None:
        """What was asked in a turn of the recorded run; None if its program was not asked for a reply."""
