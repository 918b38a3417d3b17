"""Turns that are scored instead of answered: how likely given texts are to the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.api import Action, Parsed, Reply
from harness.engine_api import Continuation

from .wrapped import WrappedReply

__all__ = ["Continuation", "Likelihoods", "likelihoods_of", "shares", "sums"]


@dataclass(frozen=True, slots=True)
class Likelihoods(Reply):
    """The log-likelihoods of given texts. The model writes nothing.

    The action is a list with one `[log-likelihood, is_greedy]` for each continuation: the sum of the natural logarithms
    of its tokens' probabilities, and whether each token is the most likely one there.

    Attributes:
        continuations: the texts, each after the conversation or after a context of its own.
        rolling: each text stands for itself, with no context. One that is longer than the model takes is scored in
            windows that follow one another without overlap.
    """

    continuations: tuple[Continuation, ...]
    rolling: bool = False

    def allows(self, action: Action) -> bool:
        """Whether it is one pair of a number, not NaN, and a truth value for each continuation."""
        return (
            isinstance(action, Sequence)
            and not isinstance(action, str)
            and len(action) == len(self.continuations)
            and all(map(_is_pair, action))
        )

    def parse(self, text: str) -> Parsed:
        """An error: no text gives log-likelihoods."""
        return Parsed(error="this turn asks for log-likelihoods, which no text gives")


def likelihoods_of(reply: Reply) -> Likelihoods | None:
    """The form of a scored turn, even if other forms wrap it; None if the model writes a reply."""
    while isinstance(reply, WrappedReply):
        reply = reply.inner
    return reply if isinstance(reply, Likelihoods) else None


def _is_pair(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return False
    number, greedy = value
    return type(number) in (int, float) and not math.isnan(number) and type(greedy) is bool


def shares(action: Action) -> list[float] | None:
    """The probabilities of the texts if one of them it is: the softmax of an action's log-likelihoods.

    None if the action is not a list of log-likelihoods, or every text is impossible.
    """
    values = sums(action)
    top = max(values, default=-math.inf)
    if not math.isfinite(top):
        return None
    weights = [math.exp(value - top) for value in values]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def sums(action: Action) -> list[float]:
    """The log-likelihoods of an action; [] if it is not a list of log-likelihoods."""
    is_list = isinstance(action, Sequence) and not isinstance(action, str) and all(map(_is_pair, action))
    return [float(number) for number, _ in action] if is_list else []
