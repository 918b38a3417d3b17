"""What an engine is asked about the log-likelihood of texts, and what it must be to answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import Any

from harness.api import Completion, Facts, derive_seed
from harness.engine_api import Ability, Engine, Request
from harness.errors import EngineFatalError


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


def mock_scores(
    score: Callable[[LikelihoodRequest], Sequence[Sequence[float | bool]]],
    reply: Callable[[Request], Any] = lambda request: "",
) -> Callable[[Request], Any]:
    """A function for the engine `mock`: `score` gives the numbers of texts, `reply` answers all other requests."""

    def answer(request: Request) -> Any:
        if not isinstance(request, LikelihoodRequest):
            return reply(request)
        return replace(request.mock_answer(""), likelihoods=score(request))

    return answer


def _mock_score(context: str, text: str) -> list[float | bool]:
    """Numbers of about the size that a model gives."""
    draw = derive_seed(context, text)
    return [-len(text) * (draw % 1_000_003) / 1_000_003, draw % 4 == 0]
