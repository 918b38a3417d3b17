"""What the engine `vllm` has for the likelihoods of texts: how vLLM is asked, and what is read out of its answers."""

from __future__ import annotations

import asyncio
import functools
import itertools
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from harness.api import Completion, Engine, Request
from harness.api.errors import EngineFatalError, RequestError
from harness.engines.likelihoods import ComputesLikelihoods, LikelihoodRequest
from harness.engines.reply_likelihoods import TOP, ReplyLikelihoodRequest, ScoresReplies
from harness.engines.text_tokens import Pair


class Score(NamedTuple):
    """The log-likelihood of a text behind its context, and the prompt that it took."""

    logprob: float
    is_greedy: bool
    tokens: int
    cached_tokens: int


class VLLMScoring(Engine, ComputesLikelihoods, ScoresReplies):
    """An engine that scores texts with vLLM.

    Attributes:
        _engine: vLLM's; None while it is not started.
        _chat: the model's `ChatTokens`.
        _limit: tokens of its window.
        _counts: what was asked of it.
    """

    _engine: Any
    _chat: Any
    _limit: int
    _counts: Counter[str]

    @abstractmethod
    async def _generate(self, request: Request, ids: list[int], make_parameters: Callable[[], Any]) -> Any:
        """vLLM's final output for one prompt, when there is room for it."""

    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        """Score texts behind their contexts; each is a prompt, and those of a context share it in the prefix cache.

        Raises:
            ContextLengthError: if a text does not fit into the context window.
            RefusedError, RequestError, EngineFatalError, SetupError: as `complete`.
        """
        if self._engine is None:
            raise EngineFatalError("the engine is not started, or closed")
        start = time.perf_counter()
        texts: list[list[Pair]] = self._chat.pairs(request, self._limit)
        self._counts["requests"] += 1
        answer = await score_all(texts, lambda pair: self._score(request, pair))
        return replace(answer, latency=time.perf_counter() - start)

    async def _score(self, request: LikelihoodRequest, pair: Pair) -> Score:
        context, text = pair
        if not text:
            return Score(0.0, True, 0, 0)
        self._counts["scored_texts"] += 1
        ids = [*context, *text]
        output = await self._generate(request, ids, scoring)
        # Where the prefix cache held more than the context nothing was computed there: once more without it.
        found = likelihood(output, text)
        if found is None:
            output = await self._generate(request, ids, functools.partial(scoring, fresh=True))
            found = likelihood(output, text)
        if found is None:
            raise RequestError("vLLM gave no log-likelihoods of the prompt's last tokens")
        return Score(*found, len(ids), getattr(output, "num_cached_tokens", None) or 0)

    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        """Score a reply's tokens, as many as fit into the window.

        Raises:
            RefusedError, RequestError, EngineFatalError, SetupError: as `complete`.
        """
        if self._engine is None:
            raise EngineFatalError("the engine is not started, or closed")
        start = time.perf_counter()
        prompt = self._chat.prompt(request.thread, request.prefill, request.tools).ids
        text = self._chat.encode(request.text)[: max(self._limit - 1 - len(prompt), 0)]
        rows: list[list[float]] = []
        if text:
            self._counts["requests"] += 1
            self._counts["scored_texts"] += 1
            output = await self._generate(request, [*prompt, *text], functools.partial(scoring, fresh=True, top=TOP))
            rows = token_rows(output, len(text))
        return Completion(
            "", input_tokens=len(prompt) + len(text), likelihoods=rows, latency=time.perf_counter() - start
        )


def scoring(fresh: bool = False, top: int = 1) -> Any:
    """SamplingParams that score a prompt.

    Args:
        fresh: without reading the prefix cache.
        top: how many of the likeliest tokens each place lists beside its own.
    """
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    return SamplingParams(
        temperature=0.0,
        max_tokens=1,  # vLLM generates one at least
        prompt_logprobs=top,
        detokenize=False,
        flat_logprobs=True,
        skip_reading_prefix_cache=fresh,
        output_kind=RequestOutputKind.FINAL_ONLY,
        skip_clone=True,
    )


def likelihood(output: Any, ids: Sequence[int]) -> tuple[float, bool] | None:
    """(log-likelihood, is_greedy) of the last tokens of a prompt, which are `ids`.

    None if vLLM has not computed one of them: it took it from its prefix cache, which holds no logits. What it then
    gives for it, if anything, is left over in memory.
    """
    cached = getattr(output, "num_cached_tokens", None) or 0
    logprobs = output.prompt_logprobs
    if cached >= len(output.prompt_token_ids) - len(ids) or logprobs is None or len(logprobs.start_indices) <= len(ids):
        return None
    values: list[float] = []
    greedy = True
    # From the end: vLLM's newer runner gives no rows for cached tokens.
    for at, token in zip(range(-len(ids), 0), ids, strict=True):
        first = logprobs.start_indices[at]
        own, best = logprobs.logprobs[first], logprobs.logprobs[first + 1]
        if logprobs.token_ids[first] != token:
            return None
        values.append(own)
        greedy = greedy and own >= best
    return sum(values), greedy


def token_rows(output: Any, count: int) -> list[list[float]]:
    """For each of the last `count` tokens of a prompt its log-probability, then those of the likeliest tokens there."""
    logprobs = output.prompt_logprobs
    rows = []
    for at in range(-count, 0):
        own, *best = logprobs.logprobs[logprobs.start_indices[at] : logprobs.end_indices[at]]
        rows.append([own, *sorted(best, reverse=True)])
    return rows


async def score_all(texts: Sequence[Sequence[Pair]], score: Callable[[Pair], Awaitable[Score]]) -> Completion:
    """The log-likelihoods of texts, each the sum over its pairs; all are scored at once, so that they share prefixes.

    Raises what `score` raises first.
    """
    results = await asyncio.gather(*(score(pair) for pairs in texts for pair in pairs), return_exceptions=True)
    scores: list[Score] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        scores.append(result)
    values, each = [], iter(scores)
    for pairs in texts:
        parts = list(itertools.islice(each, len(pairs)))
        values.append([sum(part.logprob for part in parts), all(part.is_greedy for part in parts)])
    return Completion(
        text="",
        input_tokens=sum(score.tokens for score in scores),
        output_tokens=0,
        cached_tokens=sum(score.cached_tokens for score in scores),
        likelihoods=values,
    )
