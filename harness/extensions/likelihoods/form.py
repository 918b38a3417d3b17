"""Turns that are scored instead of answered: how likely given texts are to the model."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.api import Action, Completion, Parsed, Reply
from harness.engine_api import Request
from harness.replies import WrappedReply

from .engine import ComputesLikelihoods, Continuation, LikelihoodRequest


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

    @property
    def ability(self) -> type[ComputesLikelihoods]:
        """The engine's, which scores the texts."""
        return ComputesLikelihoods

    @property
    def extras(self) -> tuple[tuple[str, str], ...]:
        """The texts, one per line, each with its context if that is not the conversation."""
        return ((f"scored · {len(self.continuations)} texts", "\n".join(self._lines())),)

    def request_for(self, asked: Request) -> LikelihoodRequest:
        """The texts' request."""
        return LikelihoodRequest(
            asked.id,
            asked.thread,
            prefill=asked.prefill,
            reply=asked.reply,
            continuations=self.continuations,
            rolling=self.rolling,
        )

    def parse_completion(self, completion: Completion) -> Parsed:
        """The engine's numbers, if they are one pair for each text."""
        values = completion.likelihoods
        if values is not None and self.allows(values):
            return Parsed(values)
        found = "none" if values is None else f"{values!r:.200}"
        texts = len(self.continuations)
        return Parsed(error=f"log-likelihoods of {texts} texts were asked for; the engine gives {found}")

    def message_of(self, completion: Completion) -> str:
        """The likeliest text; nothing after texts that stand for themselves."""
        if self.rolling:
            return completion.text
        pairs = zip(completion.likelihoods or (), self.continuations, strict=False)
        best = max(pairs, key=lambda pair: pair[0][0], default=None)
        return best[1].text if best is not None else ""

    def _lines(self) -> Iterator[str]:
        for one in self.continuations:
            yield json.dumps(one.text, ensure_ascii=False)
            if one.context is not None and not self.rolling:
                behind = one.context if isinstance(one.context, str) else list(one.context)
                yield f"  behind {json.dumps(behind, ensure_ascii=False)}"


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
