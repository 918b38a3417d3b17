"""How likely each token of a given reply is to a model: the question (`ReplyLikelihoodRequest`), and what an engine
must be to answer it (`ScoresReplies`). `Likelihoods` of `likelihoods.py` ask for sums over texts instead."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final

from harness.api import Ability, Completion, Engine, Facts, Request
from harness.api.errors import EngineFatalError

TOP: Final = 20
"""How many of the likeliest tokens are asked for: as many as most servers give at most by default."""


@dataclass(frozen=True, slots=True)
class ReplyLikelihoodRequest(Request):
    """One question about the tokens of a reply. Nothing is drawn, so it has neither sampling nor seed.

    Attributes:
        thread: the conversation before the reply, which begins after `prefill`.
        text: the reply.
    """

    sampling: Facts = field(default_factory=dict)
    seed: int = 0
    text: str = ""

    def send(self, engine: Engine) -> Awaitable[Completion]:
        """Ask an engine. Raises `EngineFatalError` if it does not score replies."""
        if isinstance(engine, ScoresReplies):
            return engine.score_reply(self)
        if engine.any_request:
            return engine.complete(self)
        raise EngineFatalError(f"the engine of {engine.model} {ScoresReplies.lack}")

    def mock_answer(self, text: str) -> Completion:
        """Each word is a token that the model always gives."""
        return Completion("", likelihoods=[[0.0, 0.0] for _ in self.text.split()])


class ScoresReplies(Ability):
    """An engine that also says how likely each token of a reply is."""

    need = "asks for the likelihood of each token of a reply"
    lack = "gives no likelihoods of a reply's tokens"

    @abstractmethod
    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        """Score a reply. Called many times concurrently; raises as `Engine.complete`.

        The completion has no text. Its `likelihoods` have a row for each token of the text, in order: the natural
        logarithm of the token's probability, then those of the `TOP` likeliest tokens in that place, the likeliest
        first. They are those of the model itself, before temperature, top_p and the like. Tokens that cannot be scored
        (a text longer than the window, for example) are left out from the first one on.
        """
