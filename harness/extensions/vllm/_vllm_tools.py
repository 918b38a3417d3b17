"""vLLM's tool parsers: calls of tools in what a model has generated."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from harness.api import Facts
from harness.api.errors import SetupError, near
from harness.engines.tool_calls import offered, storable

Calls = list[dict[str, str]]
ReadCalls = Callable[[str, Sequence[Facts]], tuple[str, Calls | None]]
"""(generated text, the tools that were offered) → (the text beside the calls, the calls or None)."""

THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Where chat templates read the thought of an assistant's message."""

_log = logging.getLogger(__name__)
_TRY = {"name": "wait", "description": "Waits.", "parameters": {"type": "object", "properties": {}}}


def call_reader(name: str | None, tokenizer: Any, model: str) -> ReadCalls | None:
    """vLLM's tool parser of this name; None: no name.

    Raises:
        SetupError: there is none of this name, or it does not work with the model.
    """
    if name is None:
        return None
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers import ToolParserManager

    try:
        kind = ToolParserManager.get_tool_parser(name)
    except KeyError as error:
        known = {*ToolParserManager.tool_parsers, *ToolParserManager.lazy_parsers}
        raise SetupError(f"vLLM has no tool_parser {name!r}", hint=near(name, known)) from error

    def extract(text: str, tools: Sequence[Facts]) -> tuple[str, Calls | None]:
        request = ChatCompletionRequest(model=model, messages=[], tools=offered(tools))
        found = kind(tokenizer, request.tools).extract_tool_calls(text, request)
        # Ids that the model has not written are random; a run repeats without them.
        calls = [
            {
                "id": call.id if call.id and call.id in text else "",
                "name": storable(call.function.name or ""),
                "arguments": storable(call.function.arguments or ""),
            }
            for call in found.tool_calls
        ]
        return found.content or "", calls or None

    try:
        extract("I wait.", [_TRY])
    except Exception as error:  # the model lacks its tokens, or it reads no text at all (gpt-oss)
        raise SetupError(
            f"tool_parser={name} does not work with {model!r}: {error}",
            hint="Name another one, or serve the model with `vllm serve` and use the engine openai.",
        ) from error

    def read(text: str, tools: Sequence[Facts]) -> tuple[str, Calls | None]:
        try:
            return extract(text, tools)
        except Exception as error:  # of vLLM's parser, on what a model wrote: then there is no call
            _log.debug("tool_parser=%s: %s", name, error)
            return text, None

    return read
