"""A model that takes and gives token ids, such as a trainer's server, as the one that writes replies.

async def complete(prompt_ids, sampling, seat):
    …
    return Tokens(ids, logprobs)

rollout = await env.rollout(task, TokenModel(tokenizer, complete))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Completion, Facts
from harness.engines.chat_tokens import ChatTokens, Prompt

from .learner import Messages, PendingTurn


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a model has generated.

    Attributes:
        ids: token ids, with that of the end of the turn if it was generated.
        logprobs: of each, as it was sampled; None if unknown.
        finish_reason: "stop", or "length" where it was cut off; None if unknown.
    """

    ids: Sequence[int]
    logprobs: Sequence[float] | None = None
    finish_reason: str | None = None


class TokenChats:
    """Conversations as token ids. A prompt continues the ids that the model generated, wherever the chat template only
    appends to them.

    Args:
        tokenizer: a tokenizer of `transformers`, with a chat template.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._chats = ChatTokens(tokenizer)

    def prompt(self, turn: PendingTurn) -> Prompt:
        """The prompt of a turn: its text and its `ids`."""
        return self._chats.prompt(turn.request.thread, turn.prefill, turn.tools)

    def reply(self, turn: PendingTurn, prompt: Prompt, tokens: Tokens) -> Completion:
        """What the model has replied."""
        reasoning, text = self._chats.read(turn.request.thread, prompt, tokens.ids)
        return Completion(
            text,
            reasoning=reasoning,
            finish_reason=tokens.finish_reason,
            input_tokens=len(prompt.ids),
            output_tokens=len(tokens.ids),
            prompt_token_ids=prompt.ids,
            token_ids=tokens.ids,
            logprobs=tokens.logprobs,
        )


class TokenModel:
    """A `generate` for rollouts: renders the conversation, asks `complete`, and reads what it gives.

    Args:
        tokenizer: as of `TokenChats`.
        complete: (token ids of the prompt, generation_kwargs, the turn) → what the model generates.
    """

    def __init__(
        self, tokenizer: Any, complete: Callable[[Sequence[int], Facts, PendingTurn], Awaitable[Tokens]]
    ) -> None:
        self._chats, self._complete = TokenChats(tokenizer), complete

    async def __call__(
        self, messages: Messages, tools: Collection[Facts], sampling: Facts, seat: PendingTurn
    ) -> Completion:
        """A reply."""
        prompt = self._chats.prompt(seat)
        return self._chats.reply(seat, prompt, await self._complete(prompt.ids, sampling, seat))
