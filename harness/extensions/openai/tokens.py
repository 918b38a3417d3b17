"""Token ids and log-probabilities of a server's replies: how they are asked for, and how to read them.

vLLM's server has `return_token_ids`, which gives those of the prompt and of the reply. llama.cpp's gives the ids of a
reply beside its log-probabilities; those of its prompt come from two more requests (`/apply-template` and `/tokenize`),
which are checked against the number of tokens that it counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.api import Completion
from harness.api.errors import RefusedError, RequestError, SetupError
from harness.extensions.openai.replicas import Replica, as_json
from harness.extensions.openai.wire import GarbledError, count_of

Read = Callable[[Any, float], Completion]
"""(an answer's JSON, seconds that it took) → the completion."""
_TRIAL = [{"role": "user", "content": "Hi"}]
_HINT = "vLLM's server and llama.cpp's give them. Leave return_token_ids and return_logprobs out, or take one of these."
_TEMPLATE = ("messages", "tools", "chat_template_kwargs")
"""What of a request the text of its prompt depends on."""


class TokenFields:
    """What a server is asked of tokens.

    Args:
        ids, logprobs: the engine's `return_token_ids` and `return_logprobs`.
    """

    def __init__(self, ids: bool, logprobs: bool) -> None:
        self.wanted, self._logprobs = ids or logprobs, logprobs
        self.is_llama = False

    @property
    def names_prompts_apart(self) -> bool:
        """Whether the ids of a prompt come from requests of their own (`with_prompt`)."""
        return self.wanted and self.is_llama

    def reader(self, read: Read) -> Read:
        """A reader of answers that also reads what they say of tokens, if that is wanted."""
        return (lambda data, seconds: replace(read(data, seconds), **self.read(data))) if self.wanted else read

    def body(self, chat: bool) -> dict[str, Any]:
        """The fields of a request; `chat`: to `/chat/completions`, not `/completions`."""
        if not self.wanted:
            return {}
        if self.is_llama:
            return {"logprobs": True, "top_logprobs": 1} if chat else {"logprobs": 1}
        scores: dict[str, Any] = {"logprobs": True if chat else 0} if self._logprobs else {}
        return {"return_token_ids": True, **scores}

    def read(self, data: Any) -> dict[str, Any]:
        """The fields of a completion; llama.cpp's without the prompt. Raises `GarbledError` where they are not there.

        `data`: an answer that has a choice.
        """
        choice = data["choices"][0]
        rows = _rows(choice.get("logprobs"))
        if self.is_llama:
            ids = None if rows is None else _ids([row.get("id") if isinstance(row, dict) else None for row in rows])
            prompt: tuple[int, ...] | None = ()
        else:
            ids = _ids(choice.get("token_ids"))
            prompt = _ids(data.get("prompt_token_ids", choice.get("prompt_token_ids")))
        if ids is None or prompt is None:
            raise GarbledError("the server's answer has no token ids")
        found: dict[str, Any] = {"prompt_token_ids": prompt, "token_ids": ids}
        if self._logprobs:
            found["logprobs"] = _logprobs(choice.get("logprobs"), len(ids))
        return found

    async def with_prompt(
        self, replica: Replica, body: Mapping[str, Any], answer: Completion, line: Callable[[Exception], str]
    ) -> Completion:
        """llama.cpp's answer with the ids of its prompt.

        Args:
            replica: the server.
            body: the request, as it was sent.
            answer: what came.
            line: an error in one line.

        Raises:
            RefusedError: the ids are more or fewer than the tokens that the server counted.
            RequestError: it does not name them.
        """
        try:
            ids = await self._prompt(replica, body)
        except Exception as error:  # of the client, and what is no JSON
            raise RequestError(f"{replica.name} names no tokens of the prompt: {line(error)}") from error
        if answer.input_tokens is not None and len(ids) != answer.input_tokens:
            what = f"{replica.name} counts {answer.input_tokens:,} tokens in the prompt, and names {len(ids):,}"
            raise RefusedError(what)
        return replace(answer, prompt_token_ids=ids)

    async def _prompt(self, replica: Replica, body: Mapping[str, Any]) -> tuple[int, ...]:
        text = body.get("prompt")
        if text is None:
            asked = {name: body[name] for name in _TEMPLATE if name in body}
            text = (await _post(replica, "/apply-template", asked)).get("prompt")
        asked = {"content": text, "add_special": True, "parse_special": True}
        ids = _ids((await _post(replica, "/tokenize", asked)).get("tokens"))
        if ids is None:
            raise GarbledError("/tokenize answers with no token ids")
        return ids

    async def check(self, replica: Replica, model: str) -> None:
        """Ask for one token. Raises `SetupError` if it comes without what is wanted, and what the client raises."""
        self.is_llama = replica.is_llama
        body = {"model": model, "messages": _TRIAL, "max_tokens": 1, **self.body(True)}
        what = "token ids and log-probabilities" if self._logprobs else "token ids"
        try:
            named = {"headers": replica.headers()}
            data = as_json(await replica.client.post("/chat/completions", cast_to=object, body=body, options=named))
            found = self.read(data)
            if self.is_llama:
                await self._prompt(replica, body)
        except (GarbledError, KeyError, IndexError, TypeError, AttributeError) as error:
            why = f"{error}" if isinstance(error, GarbledError) else "its answer is no completion"
            raise SetupError(f"{replica.name} gives no {what} with its replies: {why}", hint=_HINT) from error
        except Exception as error:
            if getattr(error, "status_code", None) not in (400, 404, 422, 501):
                raise
            raise SetupError(f"{replica.name} gives no {what} with its replies: {error!s:.300}", hint=_HINT) from error
        if not found["token_ids"]:
            raise SetupError(f"{replica.name} gives no {what} with its replies: the list is empty", hint=_HINT)


async def _post(replica: Replica, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer of one of llama.cpp's own endpoints, which stand beside `/v1`. Raises `GarbledError` for no object."""
    address = str(replica.client.base_url).rstrip("/").removesuffix("/v1") + path
    data = as_json(await replica.client.post(address, cast_to=object, body=body))
    if not isinstance(data, dict):
        raise GarbledError(f"{path} answers {str(data)[:200]!r}")
    return data


def _rows(logprobs: Any) -> list[Any] | None:
    rows = logprobs.get("content") if isinstance(logprobs, dict) else None
    return rows if isinstance(rows, list) else None


def _ids(values: Any) -> tuple[int, ...] | None:
    """Token ids; None for anything else."""
    if not isinstance(values, list) or not all(type(one) is int and count_of(one) is not None for one in values):
        return None
    return tuple(values)


def _logprobs(logprobs: Any, count: int) -> tuple[float, ...]:
    """The log-probability of each of so many tokens. Raises `GarbledError`."""
    values: Any = None
    rows = _rows(logprobs)
    if rows is not None:
        values = [row.get("logprob") if isinstance(row, dict) else None for row in rows]
    elif isinstance(logprobs, dict):
        values = logprobs.get("token_logprobs")
    if not isinstance(values, list) or len(values) != count:
        found = len(values) if isinstance(values, list) else "none"
        raise GarbledError(f"the server's answer has {count} tokens and log-probabilities of {found}")
    if not all(type(one) in (int, float) and math.isfinite(one) for one in values):
        raise GarbledError("a token of the reply has no log-probability")
    return tuple(map(float, values))
