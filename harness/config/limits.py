"""The key `limits:` of a spec: what one episode has taken of its limits, and what each turn may take.

Whether a call is allowed never depends on which answer comes first: what a batch of turns may take is allocated before
any of them is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harness.api import Completion, Move, Range, Turn
from harness.api.errors import EngineFatalError, SpecError
from harness.config.keys import SpecKey
from harness.engines.usage import MAX_BUDGET

if TYPE_CHECKING:
    from harness.config.plan import Condition

_Limit = Annotated[int | str, Range(ge=1, le=MAX_BUDGET)]  # or the ${variable} that the matrix turns into one


class LimitsEntry(TypedDict, total=False):
    """A spec's `limits:` in YAML."""

    calls_per_episode: Annotated[_Limit, "model calls of all agents, retries among them"]
    tokens_per_episode: Annotated[_Limit, "input and output tokens of all agents' calls"]
    calls_per_agent: Annotated[_Limit, "model calls of each agent in an episode"]
    tokens_per_agent: Annotated[_Limit, "input and output tokens of each agent's calls in an episode"]


class LimitsKey(SpecKey):
    """`limits:` of a spec."""

    entry = Annotated[LimitsEntry, "what an episode may take; an agent that reaches a limit is asked no more"]

    @classmethod
    def measured(cls, value: Mapping[str, Any]) -> dict[str, Any]:
        """The limits, whose order does not count."""
        return dict(sorted(value.items()))

    def conditions(self, whole: Condition, before: int) -> Iterable[Condition]:
        """The condition within the limits. Raises `SpecError` for a value of the matrix that is no limit."""
        for name, value in self.value.items():
            if type(value) is not int or not 1 <= value <= MAX_BUDGET:
                message = f"{name} must be a whole number from 1 to 10^18 − 1, found {value!r:.40}"
                raise SpecError(message, place=self.place(name))
        return (replace(whole, limits=EpisodeLimits(**self.value)) if self.value else whole,)


@dataclass(frozen=True)
class EpisodeLimits:
    """What an episode is allowed; None: as much as it takes. Calls are those of `Move.calls`, tokens `Move.used`.

    Limits are part of what a run is. What a run as a whole may spend is a budget (`harness.engines.usage`).
    """

    calls_per_episode: int | None = None
    tokens_per_episode: int | None = None
    calls_per_agent: int | None = None
    tokens_per_agent: int | None = None

    def meter(self) -> Meter:
        """A meter for one episode, at zero."""
        return Meter(self)

    def within(self, turns: Sequence[Turn], demands: Sequence[int]) -> tuple[list[Turn], int]:
        """The turns that the limits leave where no agent is asked again, and the most calls that they allow.

        Tokens do not count. `demands`: how many calls each turn takes at most.
        """
        agent, episode = self.calls_per_agent or MAX_BUDGET, self.calls_per_episode or MAX_BUDGET
        demand: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        allowed: list[Turn] = []
        for turn, most in zip(turns, demands, strict=True):
            demand[turn.agent] += most
            if calls[turn.agent] < agent and len(allowed) < episode:
                calls[turn.agent] += 1
                allowed.append(turn)
        return allowed, min(episode, sum(min(agent, most) for most in demand.values()))


class TurnQuota:
    """What one turn may take.

    Args:
        calls: how many model calls.
        by: which limit it is that allows no more.
        tokens: name of a limit → how many tokens it leaves.
    """

    def __init__(self, calls: int, by: str, tokens: Mapping[str, int]) -> None:
        self.calls, self.by, self.tokens = calls, by, tokens

    def reached(self, calls: Sequence[Completion]) -> str | None:
        """The limit that forbids another call after those of the turn; None if none does.

        Raises `EngineFatalError` if tokens are limited and a call does not report its tokens.
        """
        if len(calls) >= self.calls:
            return self.by
        if not self.tokens:
            return None
        used = sum(_tokens(call, self.tokens) for call in calls)
        return next((name for name, left in self.tokens.items() if used >= left), None)


class Meter:
    """Counts what an episode has used of its limits. It receives every batch of moves, recorded or new."""

    def __init__(self, limits: EpisodeLimits) -> None:
        self.limits = limits
        self.calls: dict[str, int] = {}
        self.tokens: dict[str, int] = {}

    def allocate(self, turns: Sequence[Turn]) -> dict[str, TurnQuota]:
        """Agent → what its turn of a batch may take.

        The calls that the episode has left go to the turns in their order: first one each, then, where some are left,
        one more each for a retry. What is not needed is there again for the next batch.
        """
        limits = self.limits
        demands = [1 + turn.parse_retries for turn in turns]
        if limits.calls_per_agent is not None:
            own = [max(0, limits.calls_per_agent - self.calls.get(turn.agent, 0)) for turn in turns]
            demands = list(map(min, demands, own))
        quotas = demands
        if limits.calls_per_episode is not None:
            quotas = _allocate(demands, limits.calls_per_episode - sum(self.calls.values()))
        used = sum(self.tokens.values())
        return {
            turn.agent: TurnQuota(
                calls, "calls_per_episode" if calls < demand else "calls_per_agent", self._remaining(turn.agent, used)
            )
            for turn, demand, calls in zip(turns, demands, quotas, strict=True)
        }

    def take(self, moves: Sequence[Move]) -> None:
        """Count a batch's moves. Raises `EngineFatalError` as `TurnQuota.reached`."""
        limits = self.limits
        named = [name for name in ("tokens_per_episode", "tokens_per_agent") if getattr(limits, name) is not None]
        for move in moves:
            self.calls[move.agent] = self.calls.get(move.agent, 0) + len(move.calls)
            if named:
                for call in move.calls:
                    _tokens(call, named)
                used = move.used("input_tokens", "output_tokens") or 0
                self.tokens[move.agent] = self.tokens.get(move.agent, 0) + used

    def _remaining(self, agent: str, used: int) -> dict[str, int]:
        left = {}
        if self.limits.tokens_per_agent is not None:
            left["tokens_per_agent"] = self.limits.tokens_per_agent - self.tokens.get(agent, 0)
        if self.limits.tokens_per_episode is not None:
            left["tokens_per_episode"] = self.limits.tokens_per_episode - used
        return left


def _allocate(demands: Sequence[int], left: int) -> list[int]:
    """Allocate `left` one by one, round after round, to those with demands left."""
    allocated = [0] * len(demands)
    while left > 0 and (waiting := [i for i, want in enumerate(demands) if allocated[i] < want]):
        rounds = max(1, left // len(waiting))  # as many at once as there are for all that wait
        for i in waiting:
            share = min(rounds, demands[i] - allocated[i], left)
            allocated[i], left = allocated[i] + share, left - share
    return allocated


def _tokens(call: Completion, limits: Sequence[str] | Mapping[str, int]) -> int:
    if call.input_tokens is None or call.output_tokens is None:
        names = " and ".join(limits)
        raise EngineFatalError(f"a model does not say how many tokens its calls take: {names} cannot be kept")
    return call.input_tokens + call.output_tokens
