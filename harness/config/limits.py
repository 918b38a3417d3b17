"""A spec's `limits:`: how many model calls and tokens an episode may take, and each agent in it.

They change what is played, so they are part of what a run is. What is spent by a run as a whole is a budget:
`harness.engines.budget`. Whether a call is allowed never depends on which answer comes first: what a batch of turns
may take is dealt out before any of them is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Final, TypedDict

from harness.api import Completion, Move, Range, Turn
from harness.errors import EngineFatalError

LIMITED: Final = "limit"
"""The `Move.error_kind` of a turn in which a limit allowed no further call."""
LARGEST: Final = 10**18 - 1
_Limit = Annotated[int | str, Range(ge=1, le=LARGEST)]


class LimitsEntry(TypedDict, total=False):
    """A spec's `limits:` in YAML."""

    calls_per_episode: Annotated[_Limit, "model calls of all agents, retries among them"]
    tokens_per_episode: Annotated[_Limit, "input and output tokens of all agents' calls"]
    calls_per_agent: Annotated[_Limit, "model calls of each agent in an episode"]
    tokens_per_agent: Annotated[_Limit, "input and output tokens of each agent's calls in an episode"]


@dataclass(frozen=True)
class Limits:
    """What an episode is allowed; None: as much as it takes. Calls and tokens are those of `Move.calls`."""

    calls_per_episode: int | None = None
    tokens_per_episode: int | None = None
    calls_per_agent: int | None = None
    tokens_per_agent: int | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) is not None for f in fields(self))


def read_limits(entry: Mapping[str, Any] | None) -> Limits:
    """The limits of a spec's `limits:`, with swept values inserted.

    Raises `ValueError(name, found)` for a value that is no whole number from 1 on.
    """
    for name, value in (entry or {}).items():
        if type(value) is not int or not 1 <= value <= LARGEST:
            raise ValueError(name, value)
    return Limits(**(entry or {}))


class TurnQuota:
    """What one turn may take.

    Args:
        calls: how many model calls.
        by: which limit it is that allows no more.
        tokens: name of a limit → how many tokens it leaves.
    """

    def __init__(self, calls: int, by: str, tokens: Mapping[str, int]) -> None:
        self.calls, self.by, self.tokens = calls, by, tokens

    def reached(self, made: Sequence[Completion]) -> str | None:
        """Which limit forbids another call after those of the turn, None if none does.

        Raises `EngineFatalError` where tokens are limited and a call does not say how many it took.
        """
        if len(made) >= self.calls:
            return self.by
        if not self.tokens:
            return None
        taken = sum(_tokens(call, self.tokens) for call in made)
        return next((name for name, left in self.tokens.items() if taken >= left), None)


class Meter:
    """What one episode has taken, of its limits; fed with every batch of moves, recorded or new."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.calls: dict[str, int] = {}
        self.tokens: dict[str, int] = {}

    def allocate(self, turns: Sequence[Turn]) -> dict[str, TurnQuota]:
        """Agent → what its turn of a batch may take.

        The calls that the episode has left go to the turns in their order: first one each, then, where some are left,
        one more each for a retry. What is not needed is there again for the next batch.
        """
        limits = self.limits
        wanted = [1 + turn.parse_retries for turn in turns]
        if limits.calls_per_agent is not None:
            own = [max(0, limits.calls_per_agent - self.calls.get(turn.agent, 0)) for turn in turns]
            wanted = list(map(min, wanted, own))
        dealt = wanted
        if limits.calls_per_episode is not None:
            dealt = _dealt(wanted, limits.calls_per_episode - sum(self.calls.values()))
        used = sum(self.tokens.values())
        return {
            turn.agent: TurnQuota(
                calls, "calls_per_episode" if calls < want else "calls_per_agent", self._left(turn.agent, used)
            )
            for turn, want, calls in zip(turns, wanted, dealt, strict=True)
        }

    def take(self, moves: Sequence[Move]) -> None:
        """Count a batch's moves. Raises `EngineFatalError` as `TurnQuota.reached`."""
        limits = self.limits
        named = [name for name in ("tokens_per_episode", "tokens_per_agent") if getattr(limits, name) is not None]
        for move in moves:
            self.calls[move.agent] = self.calls.get(move.agent, 0) + len(move.calls)
            if named:
                taken = sum(_tokens(call, named) for call in move.calls)
                self.tokens[move.agent] = self.tokens.get(move.agent, 0) + taken

    def _left(self, agent: str, used: int) -> dict[str, int]:
        left = {}
        if self.limits.tokens_per_agent is not None:
            left["tokens_per_agent"] = self.limits.tokens_per_agent - self.tokens.get(agent, 0)
        if self.limits.tokens_per_episode is not None:
            left["tokens_per_episode"] = self.limits.tokens_per_episode - used
        return left


def _dealt(wanted: Sequence[int], left: int) -> list[int]:
    """`left` dealt one by one, round after round, to those who still want one."""
    dealt = [0] * len(wanted)
    while left > 0 and (open_ := [i for i, want in enumerate(wanted) if dealt[i] < want]):
        rounds = max(1, left // len(open_))  # as many at once as there are for everybody
        for i in open_:
            given = min(rounds, wanted[i] - dealt[i], left)
            dealt[i], left = dealt[i] + given, left - given
    return dealt


def _tokens(call: Completion, limits: Sequence[str] | Mapping[str, int]) -> int:
    if call.input_tokens is None or call.output_tokens is None:
        names = " and ".join(limits)
        raise EngineFatalError(f"a model does not say how many tokens its calls take: {names} cannot be kept")
    return call.input_tokens + call.output_tokens
