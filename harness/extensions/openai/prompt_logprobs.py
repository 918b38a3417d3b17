"""Log-likelihoods by OpenAI-compatible servers: the requests, and how to read the answers.

`ScoringServer` asks, the functions below it make requests and read answers.

`/v1/completions` gives back a prompt (`echo`) with the log-probability of each of its tokens (`logprobs`). vLLM's chat
endpoint does the same with `prompt_logprobs`. In both the scored text is the end of the prompt.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from harness.api.errors import EngineFatalError, RefusedError, SetupError
from harness.engines.chat_tokens import ChatTokens, chat_tokens
from harness.engines.likelihoods import LikelihoodRequest
from harness.engines.reply_likelihoods import TOP
from harness.extensions.openai.wire import GarbledError, read_usage

Messages = Sequence[Mapping[str, str]]
LOWEST = -9999.0
"""The log-probability of an impossible token, as in vLLM's server: JSON has no infinity."""
MAX_PROMPTS = 32
"""Prompts in one request."""
LENGTH = 2048
"""Tokens that a model takes of which nothing is known, as in lm-eval."""
EXACT = "Set tokenizer= to the model's tokenizer: the harness then sends token ids and knows where the text begins."


Ask = Callable[[str, dict[str, Any], Callable[[Any, float], Any]], Awaitable[Any]]
"""(endpoint, JSON, reader of the answer and its seconds) → what the reader gives."""


class Part(NamedTuple):
    """A prompt whose end is scored.

    Attributes:
        prompt: a text, token ids, or messages of which the last one ends with the scored text.
        text: the scored text; "" with token ids.
        tokens: how many tokens at the end are scored; None: those that spell `text`.
    """

    prompt: str | list[int] | list[dict[str, str]]
    text: str = ""
    tokens: int | None = None

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is a conversation."""
        return isinstance(self.prompt, list) and bool(self.prompt) and isinstance(self.prompt[0], dict)


class TextScore(NamedTuple):
    """The log-likelihood of a text, and whether greedy decoding gives it."""

    logprob: float
    is_greedy: bool


class ScoringServer:
    """What is known of a server's ability to score texts.

    Args:
        tokenizer: the model's tokenizer; None: the server's tokens must spell the texts.
        max_length: tokens that the model takes; None: what the server lists.
        template_kwargs: further variables of the tokenizer's chat template.
    """

    def __init__(self, tokenizer: str | None, max_length: int | None, template_kwargs: Any = None) -> None:
        self._tokenizer, self._max_length = tokenizer, max_length
        self._template_kwargs = template_kwargs if isinstance(template_kwargs, dict) else None
        self._tokens: ChatTokens | None = None
        self._most = MAX_PROMPTS
        self._is_proven = False

    async def score(
        self, request: LikelihoodRequest, listed: int | None, ask: Ask
    ) -> tuple[list[list[float | bool]], dict[str, Any]]:
        """Return one [log-likelihood, is_greedy] for each continuation, and the token counts of a Completion.

        Args:
            listed: tokens that the model takes, by the server's list.
            ask: sends a request; raises what an engine may raise.

        Raises:
            EngineFatalError: also if the server, which has scored nothing yet, refuses the first request or gives no
                log-probabilities.
            SetupError: the texts can be scored with a tokenizer only.
        """
        texts = self._texts(request, listed)
        parts = [part for each in texts for part in each]
        most = self._most
        try:
            try:
                answers = await self._ask_all(parts, most, ask)
            except SpellingError:
                raise
            except RefusedError:
                if most == 1 or len(parts) == 1 or self._is_proven:
                    raise
                answers = await self._ask_all(parts, 1, ask)
                self._most = 1  # it takes one prompt at a time
        except RefusedError as error:
            unable = not self._is_proven and not isinstance(error, SpellingError)
            raise (lacking(f"it refuses to ({error})") if unable else error) from error
        self._is_proven = True
        scores = iter([score for scores, _ in answers for score in scores])
        values: list[list[float | bool]] = []
        for each in texts:
            own = list(itertools.islice(scores, len(each)))
            values.append([math.fsum(score.logprob for score in own), all(score.is_greedy for score in own)])
        return values, _sum(usage for _, usage in answers)

    def _texts(self, request: LikelihoodRequest, listed: int | None) -> list[list[Part]]:
        """For each continuation the parts of which its score is the sum."""
        if self._tokenizer is None:
            return [[part] for part in parts_of(request)]
        if self._tokens is None:
            self._tokens = chat_tokens(self._tokenizer, self._template_kwargs)
        limit = self._max_length or listed or LENGTH
        return [
            [Part([*context, *text], tokens=len(text)) for context, text in pairs]
            for pairs in self._tokens.pairs(request, limit)
        ]

    async def _ask_all(
        self, parts: Sequence[Part], most: int, ask: Ask
    ) -> list[tuple[list[TextScore], dict[str, Any]]]:
        """The scores of all parts, in order, and what each request used."""
        asked = (ask(*body_of(some), partial(self._read, some)) for some in chunks(parts, most))
        results = await asyncio.gather(*asked, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    def _read(self, parts: Sequence[Part], data: Any, latency: float) -> tuple[list[TextScore], dict[str, Any]]:
        try:
            return read_scores(data, parts), read_usage(data.get("usage"))
        except EngineFatalError as error:
            if self._is_proven:  # it can: so this answer is damaged
                raise GarbledError(str(error)) from error
            raise


class SpellingError(RefusedError):
    """It scores texts, but this one's tokens could not be found."""


def _sum(usages: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The sums of token counts; None if one is unknown."""
    each = list(usages)
    names = each[0] if each else ()
    return {name: None if any(one[name] is None for one in each) else sum(one[name] for one in each) for name in names}


# ------------------------------------------------------------------------------------ what is sent


def parts_of(request: LikelihoodRequest) -> list[Part]:
    """One part for each continuation, as texts or messages. Raises `SetupError` if only token ids can say it."""
    if request.rolling:
        raise SetupError("the likelihood of whole texts is computed in windows of tokens", hint=EXACT)
    parts = []
    for one in request.continuations:
        context = one.context
        if context is None:
            begun = [{"role": "assistant", "content": request.prefill}] if request.prefill else []
            thread = request.thread
            context = (*thread.messages, *begun) if thread.chat else thread.text + request.prefill
        parts.append(_text_part(context, one.text) if isinstance(context, str) else _chat_part(context, one.text))
    return parts


def _text_part(context: str, text: str) -> Part:
    # Blanks at the end of the context are the text's, as in lm-eval: tokens of words begin with them.
    head = context.rstrip()
    return Part(context + text, context[len(head) :] + text)


def _chat_part(context: Messages, text: str) -> Part:
    messages = [dict(message) for message in context]
    if messages and messages[-1]["role"] == "assistant":
        messages[-1]["content"] += text
    else:
        messages.append({"role": "assistant", "content": text})
    return Part(messages, text)


def chunks(parts: Sequence[Part], most: int = MAX_PROMPTS) -> Iterator[Sequence[Part]]:
    """The parts that one request asks for: a conversation, or up to so many prompts."""
    start = 0
    while start < len(parts):
        stop = start + 1
        while stop < min(start + most, len(parts)) and not parts[start].is_chat and not parts[stop].is_chat:
            stop += 1
        yield parts[start:stop]
        start = stop


def body_of(parts: Sequence[Part], top: int = 1) -> tuple[str, dict[str, Any]]:
    """(endpoint, JSON) of the request for these parts. `top`: how many of the likeliest tokens each place lists."""
    # One token is generated, because many servers refuse to generate none; it is not looked at.
    body: dict[str, Any] = {"max_tokens": 1, "temperature": 0}
    if parts[0].is_chat:
        chat = {"prompt_logprobs": top, "continue_final_message": True, "add_generation_prompt": False}
        return "/chat/completions", {"messages": parts[0].prompt, **body, **chat}
    prompts = [part.prompt for part in parts]
    return "/completions", {
        "prompt": prompts if len(prompts) > 1 else prompts[0],
        **body,
        "logprobs": top,
        "echo": True,
    }


# ------------------------------------------------------------------------------------ what is read


def read_scores(data: Any, parts: Sequence[Part]) -> list[TextScore]:
    """The scores of parts in a server's answer.

    Raises:
        GarbledError: what asking again may mend.
        EngineFatalError: the server gives no log-probabilities of prompts.
        RefusedError: it does not answer each prompt by itself, or its tokens do not spell the text.
    """
    choices = _choices(data)
    if parts[0].is_chat:
        return [_score(_prompt_tokens(data.get("prompt_logprobs")), parts[0])]
    if len(choices) != len(parts):
        raise RefusedError(f"{len(parts)} prompts were sent, and {len(choices)} came back")
    places = [choice.get("index") if isinstance(choice, dict) else None for choice in choices]
    if len(parts) == 1:
        places = [0]
    if sorted(place for place in places if type(place) is int) != list(range(len(parts))):
        raise GarbledError(f"the choices have no numbers from 0 to {len(parts) - 1}: {places!r:.200}")
    by_place = dict(zip(places, choices, strict=True))
    return [_score(_echoed_tokens(by_place[i]), part) for i, part in enumerate(parts)]


def read_rows(data: Any, part: Part) -> list[list[float]]:
    """For each token of a part's text its log-probability, then those of the likeliest tokens there, falling.

    Raises:
        GarbledError, EngineFatalError, RefusedError: as `read_scores`.
    """
    choice = _choices(data)[0]
    tokens = _prompt_tokens(data.get("prompt_logprobs")) if part.is_chat else _echoed_tokens(choice)
    return [[value, *token.best] for token, value in _scored(tokens, part)]


def _choices(data: Any) -> list[Any]:
    if isinstance(data, dict) and data.get("error"):
        raise GarbledError(f"an error behind HTTP 200: {str(data['error'])[:2000]}")
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices:
        raise GarbledError(f"the server's reply is not a completion: {str(data)[:200]!r}")
    return choices


class _Token(NamedTuple):
    text: str
    logprob: float | None
    best: Sequence[float]
    """The log-probabilities of the likeliest tokens in its place, falling."""

    @property
    def is_greedy(self) -> bool:
        return self.logprob is not None and bool(self.best) and self.logprob >= self.best[0]


def _score(tokens: Sequence[_Token], part: Part) -> TextScore:
    """The score of the part's text among the tokens of its prompt, behind which there may be a generated one."""
    scored = _scored(tokens, part)
    return TextScore(math.fsum(value for _, value in scored), all(token.is_greedy for token, _ in scored))


def _scored(tokens: Sequence[_Token], part: Part) -> list[tuple[_Token, float]]:
    """The tokens of the part's text, each with its log-probability."""
    if part.tokens is None and not part.text:
        return []  # no tokens, as in lm-eval
    start, stop = _counted(tokens, part) if part.tokens is not None else _spelled(tokens, part)
    if part.is_chat:  # blanks with which the template opens a reply are the text's, as in lm-eval
        while start > 1 and tokens[start - 1].text.isspace():
            start -= 1
    scored = tokens[start:stop]
    values = [(token, token.logprob) for token in scored if token.logprob is not None]
    if len(values) < len(scored):
        if start == 0 and len(values) == len(scored) - 1:
            raise SpellingError(f"nothing stands before {part.text!r:.60}, so its start has no likelihood. {EXACT}")
        raise GarbledError("a token of the text has no log-probability")
    return values


def _counted(tokens: Sequence[_Token], part: Part) -> tuple[int, int]:
    size = len(part.prompt)
    if not size <= len(tokens) <= size + 1:
        raise GarbledError(f"{size} tokens were sent; log-probabilities came for {len(tokens)}")
    return size - (part.tokens or 0), size


def _spelled(tokens: Sequence[_Token], part: Part) -> tuple[int, int]:
    """Where the tokens stand that spell the part's text: at the end, but for a generated one."""
    for spelling in (str, _without_blanks):  # some servers lose the blank with which a token begins
        wanted = spelling(part.text)
        for stop in (len(tokens) - 1, len(tokens)):
            pieces: list[str] = []
            start, size = stop, 0
            while start > 0 and size < len(wanted):
                start -= 1
                pieces.append(spelling(tokens[start].text))
                size += len(pieces[-1])
            if wanted and "".join(reversed(pieces)).endswith(wanted):
                # The first bytes of a letter are tokens without text, in front of the token that completes it.
                opens = tokens[start].text[:1]
                while start > 0 and not tokens[start - 1].text and not opens.isascii():
                    start -= 1
                return start, stop
    raise SpellingError(f"the tokens that the server names do not spell the text {part.text!r:.60}. {EXACT}")


def _without_blanks(text: str) -> str:
    return "".join(text.split())


def _echoed_tokens(choice: Any) -> list[_Token]:
    """The tokens of a choice of `/v1/completions`."""
    logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("token_logprobs"), list):
        raise lacking("its answer has no logprobs")
    values, best = logprobs["token_logprobs"], logprobs.get("top_logprobs")
    if not isinstance(best, list):
        raise lacking("its answer has no top_logprobs")
    texts = logprobs.get("tokens")
    if not isinstance(texts, list) or not len(texts) == len(values) == len(best):
        sizes = [len(one) if isinstance(one, list) else None for one in (texts, values, best)]
        raise GarbledError(f"tokens, token_logprobs and top_logprobs differ in length: {sizes}")
    if len(values) <= 1:
        raise lacking("it gives back no prompt, in spite of echo")
    return [_token(text, value, top) for text, value, top in zip(texts, values, best, strict=True)]


def _token(text: Any, value: Any, top: Any) -> _Token:
    rivals = top.values() if isinstance(top, dict) else ()
    return _Token(text if isinstance(text, str) else "", number(value), _falling(rivals))


def _falling(values: Iterable[Any]) -> list[float]:
    return sorted((found for value in values if (found := number(value)) is not None), reverse=True)


def _prompt_tokens(rows: Any) -> list[_Token]:
    """The tokens of vLLM's `prompt_logprobs`: for each a mapping of its own id and the likeliest one's to values."""
    if not isinstance(rows, list):
        raise lacking("its chat endpoint gives no prompt_logprobs, which only vLLM does; set tokenizer= or chat: false")
    return [_ranked(row) for row in rows]


def _ranked(row: Any) -> _Token:
    if row is None:  # the first
        return _Token("", None, ())
    entries = [entry for entry in row.values() if isinstance(entry, dict)] if isinstance(row, dict) else []
    ranks = [entry.get("rank") for entry in entries]
    if not entries or not all(type(rank) is int for rank in ranks):
        raise GarbledError(f"prompt_logprobs has an entry without rank: {str(row)[:200]!r}")
    own = entries[0]  # vLLM names the token itself, then the likeliest ones
    text = own.get("decoded_token")
    best = _falling(entry.get("logprob") for entry in entries)
    return _Token(text if isinstance(text, str) else "", number(own.get("logprob")), best[:TOP])


def number(value: Any) -> float | None:
    """A log-probability: None for null, at least `LOWEST`. Raises `GarbledError` for anything else."""
    if value is None:
        return None
    if type(value) not in (int, float) or value != value or value > 0.01:
        raise GarbledError(f"{value!r:.40} is not a log-probability")
    return float(max(LOWEST, min(0.0, value)))


def lacking(why: str) -> EngineFatalError:
    """The error that ends a run on a server without the ability."""
    return EngineFatalError(
        f"the server gives no log-likelihoods: {why}. They need /v1/completions with echo and logprobs, as vLLM and "
        "SGLang have it, or the engine vllm"
    )
