"""The key `limits:` of a spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harness.api import Range
from harness.config.keys import SpecKey
from harness.engines.budget import LARGEST
from harness.errors import SpecError

from .meter import CallsAndTokens

if TYPE_CHECKING:
    from harness.config.plan import Condition

_Limit = Annotated[int | str, Range(ge=1, le=LARGEST)]  # or the ${variable} that the matrix turns into one


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
            if type(value) is not int or not 1 <= value <= LARGEST:
                message = f"{name} must be a whole number from 1 to 10^18 − 1, found {value!r:.40}"
                raise SpecError(message, place=self.place(name))
        return (replace(whole, limits=CallsAndTokens(**self.value)) if self.value else whole,)
