"""What the engine `openai` has for the likelihoods of texts, and of each token of a reply.

llama.cpp's server scores no prompts. It gives the log-probabilities of what it generates, before the form to which the
reply is held: so the reply's own tokens, as `/tokenize` names them, are the form.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from harness.api import Completion, Engine, Request
from harness.api.errors import EngineFatalError
from harness.engines.likelihoods import ComputesLikelihoods, Continuation, LikelihoodRequest
from harness.engines.reply_likelihoods import TOP, ReplyLikelihoodRequest, ScoresReplies
from harness.extensions.openai import prompt_logprobs
from harness.extensions.openai.replicas import Replicas
from harness.extensions.openai.wire import GarbledError

T = TypeVar("T")


class ServerScoring(Engine, ComputesLikelihoods, ScoresReplies):
    """An engine that scores texts with servers."""

    model: str
    structured: Any
    extra_body: dict[str, Any]

    _replicas: Replicas
    _requests: int
    _scores: prompt_logprobs.ScoringServer
    _body: Callable[[Request], dict[str, Any]]
    _answer: Callable[..., Any]

    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        """Score texts: those of one question in one request where the server takes several prompts.

        Raises:
            ContextLengthError, RefusedError, RequestError: as for `Engine`.
            EngineFatalError: also if the server gives no log-probabilities of prompts.
            SetupError: the texts can be scored with a tokenizer only.
        """
        self._requests += 1

        async def ask(path: str, body: dict[str, Any], read: Callable[[Any, float], T]) -> T:
            answer: T = await self._answer(request, path, {"model": self.model, **body, **self.extra_body}, read)
            return answer

        start = time.perf_counter()
        limit = next((one.limits[self.model] for one in self._replicas.all if self.model in one.limits), None)
        try:
            scores, usage = await self._scores.score(request, limit, ask)
        except EngineFatalError as error:
            self.stop_retrying(error)
            raise
        return Completion("", latency=time.perf_counter() - start, likelihoods=scores, **usage)

    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        """Score a reply's tokens, at llama.cpp's server up to a letter of several tokens.

        Raises:
            ContextLengthError, RefusedError, RequestError: as for `Engine`.
            EngineFatalError: also if the server gives no log-probabilities.
        """
        if not request.text:
            return Completion("", likelihoods=[])
        self._requests += 1
        start = time.perf_counter()
        rows = await (self._forced(request) if self.structured == "llama.cpp" else self._echoed(request))
        return Completion("", latency=time.perf_counter() - start, likelihoods=rows)

    async def _forced(self, request: ReplyLikelihoodRequest) -> list[list[float]]:
        address = str(self._replicas.all[0].client.base_url).rstrip("/").removesuffix("/v1")
        asked = {"content": request.text, "add_special": False, "with_pieces": True}
        ids = await self._answer(request, f"{address}/tokenize", asked, _whole_letters)
        if not ids:
            return []
        body = self._body(request)
        body |= {"temperature": 0, "max_tokens": len(ids), "grammar": f"root ::= {' '.join(f'<[{i}]>' for i in ids)}"}
        is_chat = request.thread.chat
        body |= {"logprobs": True, "top_logprobs": TOP} if is_chat else {"logprobs": TOP}
        path = "/chat/completions" if is_chat else "/completions"
        rows: list[list[float]] = await self._answer(request, path, body, partial(_generated, ids))
        return rows

    async def _echoed(self, request: ReplyLikelihoodRequest) -> list[list[float]]:
        [part] = prompt_logprobs.parts_of(
            LikelihoodRequest(
                request.id, request.thread, prefill=request.prefill, continuations=(Continuation(request.text),)
            )
        )
        path, body = prompt_logprobs.body_of([part], TOP)
        if request.tools:
            body["tools"] = self._body(request)["tools"]
        sent = {"model": self.model, **body, **self.extra_body}
        rows: list[list[float]] = await self._answer(
            request, path, sent, lambda data, _: prompt_logprobs.read_rows(data, part)
        )
        return rows


def _whole_letters(data: Any, _: float) -> list[int]:
    """The ids that llama.cpp's server gives for a text, up to a letter of which a token is only a part."""
    tokens = data.get("tokens") if isinstance(data, dict) else None
    if not isinstance(tokens, list) or not all(
        isinstance(token, dict) and type(token.get("id")) is int for token in tokens
    ):
        raise GarbledError(f"/tokenize gives no tokens: {str(data)[:200]!r}")
    whole: list[int] = []
    for token in tokens:
        if not isinstance(token.get("piece"), str):  # a list of bytes
            break
        whole.append(token["id"])
    return whole


def _generated(ids: list[int], data: Any, _: float) -> list[list[float]]:
    """Rows of the tokens that the server was made to generate."""
    try:
        content = data["choices"][0]["logprobs"]["content"]
        found = [token["id"] for token in content[: len(ids)]]
        rows = [
            [token["logprob"], *sorted((best["logprob"] for best in token["top_logprobs"]), reverse=True)]
            for token in content[: len(ids)]
        ]
    except (KeyError, IndexError, TypeError) as error:
        raise prompt_logprobs.lacking("its answer has no logprobs") from error
    if found != ids:
        raise GarbledError("the server has not generated the tokens to which it was held")
    return [[prompt_logprobs.number(value) or 0.0 for value in row] for row in rows]
