"""Plain texts as token ids: what a model continues or scores without a chat template.

The rules are those of lm-eval's vLLM model (EleutherAI's lm-evaluation-harness 0.4.13), so that both ask the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harness.api.errors import ContextLengthError, SetupError

Pair = tuple[list[int], list[int]]
"""Ids of a context, and those of a text behind it."""


class TextTokens:
    """Encodes texts as the model's tokenizer does by itself, with the special tokens that it adds.

    Args:
        tokenizer: a `transformers` tokenizer.
        encode: (text, whether to add special tokens) → ids.

    Attributes:
        eos: the text of the token that ends a reply; empty if the tokenizer has none.
    """

    def __init__(self, tokenizer: Any, encode: Callable[[str, bool], list[int]]) -> None:
        self._encode = encode
        start, end = (getattr(tokenizer, f"{name}_token_id", None) for name in ("bos", "eos"))
        self._prefix: int | None = end if start is None else start
        self._start: str | None = None if self._prefix is None else str(tokenizer.decode(self._prefix))
        self.eos = "" if end is None else str(tokenizer.decode(end)) or str(tokenizer.eos_token or "")

    @property
    def prefix(self) -> int:
        """The token before a text that has no context: the one with which texts begin, else the one that ends them."""
        if self._prefix is None:
            hint = "Give the texts a context, or take a tokenizer with a bos_token or an eos_token."
            raise SetupError("the tokenizer has no token with which a text can begin", hint=hint)
        return self._prefix

    def encode(self, text: str) -> list[int]:
        """The text's ids; special tokens are not added to one that begins with them."""
        return self._encode(text, self._start is None or not text.startswith(self._start)) if text else []

    def pair(self, context: str, text: str) -> Pair:
        """The ids of `text` behind `context`: what the whole has more than the context alone.

        Blanks at the end of the context count as the text's, since tokens of words begin with them.
        """
        head = context.rstrip()
        text = context[len(head) :] + text
        before = self.encode(head)
        if before:
            return before, self.encode(head + text)[len(before) :]
        ids = self._encode(text, False) if text else []
        return (ids[:1], ids[1:]) if ids[:1] == [self.prefix] else ([self.prefix], ids)

    def windows(self, text: str, limit: int) -> Iterator[Pair]:
        """A long text in windows for a model that takes `limit` tokens: every token is scored once, and the last window
        has as much context as it has room for."""
        ids, size = self.encode(text), limit - 2
        for start in range(0, len(ids), size):
            stop = min(start + size, len(ids))
            yield (ids[stop - size - 1 : start] if start else [self.prefix]), ids[start:stop]


def fitted(pair: Pair, limit: int) -> Pair:
    """The pair, its context cut on the left so that one token is left of `limit`: the one that the engine generates.

    Raises:
        ContextLengthError: not even the text fits, with one token before it.
    """
    context, text = pair
    room = limit - 1 - len(text)
    if room < 1:
        raise ContextLengthError(f"the text has {len(text)} tokens; the model takes {limit}, two of them beside it")
    return context[-room:], text
