"""vLLM's parsers of reasoning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.api.errors import SetupError


def vllm_parser(name: str | None, tokenizer: Any, model: str) -> Callable[[str], tuple[str | None, str]] | None:
    """vLLM's reasoning parser of this name as a function from text to (reasoning, answer); None: no name.

    Raises:
        SetupError: there is none of this name, or it does not work with the model.
    """
    if name is None:
        return None
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.reasoning import ReasoningParserManager

    try:
        kind = ReasoningParserManager.get_reasoning_parser(name)
    except KeyError as error:
        raise SetupError(f"vLLM has no reasoning_parser {name!r}", hint=str(error)) from error
    request = ChatCompletionRequest(model=model, messages=[])

    def read(text: str) -> tuple[str | None, str]:
        reasoning, answer = kind(tokenizer).extract_reasoning(text, request)
        return reasoning, answer or ""

    try:
        read("Yes.")
    except Exception as error:  # the model lacks its tokens, or it reads no text at all (gpt-oss)
        raise SetupError(
            f"reasoning_parser={name} does not work with {model!r}: {error}",
            hint="Leave it out, name another one, or serve the model with `vllm serve` and use the engine openai.",
        ) from error
    return read
