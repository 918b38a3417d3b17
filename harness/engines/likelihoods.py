"""Turns that ask how likely given texts are to a model, instead of for a reply: the form of the reply (`Likelihoods`),
the request that it makes, and what an engine must be to answer it (`ComputesLikelihoods`)."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from harness.api import Ability, Action, Completion, Engine, Facts, Parsed, Reply, Request, derive_seed
from harness.api.errors import EngineFatalError
from harness.replies import WrappedReply


@dataclass(frozen=True, slots=True)
class Continuation:
    """A text whose log-likelihood the harness needs.

    Attributes:
        text: the text.
        context: what comes before it. None: the conversation of the turn, as the prompt set renders it. A text: only
            this text, with no chat template. Messages, each {"role", "content"}: these, in the model's chat template;
            if the last one is the assistant's, `text` continues it.
    """

    text: str
    context: str | tuple[Mapping[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class LikelihoodRequest(Request):
    """One question about the log-likelihood of texts. Nothing is drawn, so it has neither sampling nor seed.

    Attributes:
        id: as in a `Request`.
        thread: the conversation before texts that have no context. The engine does not change it.
        prefill: the beginning of the model's message, after `thread`.
        continuations: the texts.
        rolling: each text is scored by itself, without context, in windows as long as the model takes.
    """

    sampling: Facts = field(default_factory=dict)
    seed: int = 0
    continuations: tuple[Continuation, ...] = ()
    rolling: bool = False

    def send(self, engine: Engine) -> Awaitable[Completion]:
        """Ask an engine. Raises `EngineFatalError` if it computes no log-likelihoods."""
        if isinstance(engine, ComputesLikelihoods):
            return engine.loglikelihood(self)
        if engine.any_request:
            return engine.complete(self)
        raise EngineFatalError(f"the engine of {engine.model} {ComputesLikelihoods.lack}")

    def mock_answer(self, text: str) -> Completion:
        """Numbers that depend only on each text and on what comes before it; words count as tokens."""
        asked = "" if self.rolling else self.thread.text + self.prefill
        pairs = [(asked if one.context is None else str(one.context), one.text) for one in self.continuations]
        tokens = sum(len(words.split()) for words in chain.from_iterable(pairs))
        return Completion("", input_tokens=tokens, output_tokens=0, likelihoods=[_mock_score(*pair) for pair in pairs])

    @property
    def key(self) -> list[Any]:
        """What decides the answer besides the conversation."""
        return ["loglikelihood", [(one.text, one.context) for one in self.continuations], self.rolling]

    @property
    def log_fields(self) -> dict[str, Any]:
        """The texts; `rolling` only if it is true."""
        texts: dict[str, Any] = {"continuations": [asdict(one) for one in self.continuations]}
        return {**texts, "rolling": True} if self.rolling else texts


class ComputesLikelihoods(Ability):
    """An engine that also computes how likely texts are."""

    need = "is scored by log-likelihoods"
    lack = "computes no log-likelihoods"

    @abstractmethod
    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        """Score texts. Called many times concurrently; raises as `Engine.complete`.

        The completion has no text. Its `likelihoods` are one `[sum, is_greedy]` for each continuation, in order: the
        sum of the natural logarithms of the probabilities of the text's tokens, and whether each of these tokens is
        the most likely one. `input_tokens` counts the tokens of all texts and of what precedes each.
        """


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


def _mock_score(context: str, text: str) -> list[float | bool]:
    """Numbers of about the size that a model gives."""
    draw = derive_seed(context, text)
    return [-len(text) * (draw % 1_000_003) / 1_000_003, draw % 4 == 0]
