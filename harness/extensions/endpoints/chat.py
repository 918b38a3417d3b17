"""`/v1/chat/completions` and `/v1/completions`, as OpenAI's clients speak them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.api import InnerRequest
from harness.extensions.endpoints._answers import ApiReply, Asked, event
from harness.extensions.endpoints._fields import (
    SAMPLING,
    Fields,
    Tools,
    bad,
    objects,
    one_of,
    sampling_of,
    shown,
    typed,
)
from harness.extensions.endpoints._openai import (
    IGNORED,
    REFUSED,
    SCHEMA,
    OpenAIErrors,
    chat_tool,
    check_single,
    choice_of,
    content_of,
    format_of,
    plain_arguments,
)

_DONE = b"data: [DONE]\n\n"
_LENGTHS = {**SAMPLING, "max_completion_tokens": "max_tokens"}
_CHAT = Fields(
    frozenset(
        {
            "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "stream",
            "stream_options", "modalities", "n",
        }
    ) | _LENGTHS.keys(),
    IGNORED,
    REFUSED | {
        "functions": "say tools",
        "function_call": "say tool_choice",
        "audio": "the model writes text",
        "web_search_options": "the harness searches nothing",
    },
)  # fmt: skip
_TEXT = Fields(
    frozenset({"model", "prompt", "stream", "stream_options", "n", "best_of"}) | SAMPLING.keys(),
    IGNORED,
    REFUSED | {"echo": "the reply is what follows the prompt", "suffix": "the model continues the prompt"},
)
_STREAM = Fields(frozenset({"include_usage"}), frozenset({"include_obfuscation", "continuous_usage_stats"}))
_MESSAGE = Fields(
    frozenset({"role", "content", "tool_calls", "tool_call_id", "refusal"}),
    frozenset({"name", "annotations", "reasoning_content", "reasoning", "reasoning_details", "cache_control"}),
    {"function_call": "say tool_calls", "audio": "the model reads text"},
)
_CALL = Fields(frozenset({"id", "type", "function", "index"}), frozenset({"extra_content"}))
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class ChatApi(OpenAIErrors):
    """Conversations: `/v1/chat/completions`."""

    def __init__(self) -> None:
        self._tools = Tools(chat_tool)

    def read(self, body: dict[str, Any]) -> Asked:
        """Read a request. Raises `ProblemError`."""
        _CHAT.look(body)
        check_single(body)
        tools = self._tools.of(body)
        choice, form = body.get("tool_choice"), typed(body, "response_format", dict)
        chosen = choice.get("function") if isinstance(choice, dict) else None
        if any(one != "text" for one in typed(body, "modalities", list) or ()):
            raise bad("modalities must be text: the model writes nothing else", "modalities", "unsupported_parameter")
        schema = typed(form, "json_schema", dict, "response_format.") if form else None
        if schema is not None:
            SCHEMA.look(schema, "response_format.json_schema.")
        ask = InnerRequest(
            "chat",
            body["model"],
            _messages(body),
            tools=tools,
            tool_choice=choice_of(choice, tools, chosen.get("name") if isinstance(chosen, dict) else None),
            sampling=sampling_of(body, _LENGTHS),
            constraint=format_of(form, schema, "response_format"),
        )
        single = typed(body, "parallel_tool_calls", bool) is False
        return Asked(ask, *_streaming(body), single_call=single)

    def reply(self, asked: Asked, answer: ApiReply) -> dict[str, Any]:
        """A chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.calls:
            message["content"] = answer.text or None
            message["tool_calls"] = _calls(answer)
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        choice = _choice(answer.end, message=message)
        return {**_head(answer, "chat.completion", "chatcmpl"), "choices": [choice], "usage": usage_of(answer)}

    def events(self, asked: Asked, answer: ApiReply) -> bytes:
        """Chunks: the role, the thought, the text, each call, the end; the counts if they are asked for."""
        head = _head(answer, "chat.completion.chunk", "chatcmpl")
        more = {"usage": None} if asked.usage else {}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if answer.reasoning:
            deltas.append({"reasoning_content": answer.reasoning})
        if answer.text:
            deltas.append({"content": answer.text})
        deltas += ({"tool_calls": [{"index": number, **call}]} for number, call in enumerate(_calls(answer)))
        choices = [*(_choice(None, delta=delta) for delta in deltas), _choice(answer.end, delta={})]
        chunks = [event({**head, "choices": [choice], **more}) for choice in choices]
        if asked.usage:
            chunks.append(event({**head, "choices": [], "usage": usage_of(answer)}))
        return b"".join([*chunks, _DONE])


class CompletionsApi(OpenAIErrors):
    """Texts that are continued: `/v1/completions`."""

    def read(self, body: dict[str, Any]) -> Asked:
        """Read a request. Raises `ProblemError`."""
        _TEXT.look(body)
        check_single(body)
        check_single(body, "best_of")
        prompt = body.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise bad(f"prompt must be one text, not {shown(prompt)}", "prompt", "invalid_type")
        ask = InnerRequest("completions", body["model"], (), text=prompt, sampling=sampling_of(body))
        return Asked(ask, *_streaming(body))

    def reply(self, asked: Asked, answer: ApiReply) -> dict[str, Any]:
        """A text completion."""
        choice = _choice(answer.end, text=answer.text)
        return {**_head(answer, "text_completion", "cmpl"), "choices": [choice], "usage": usage_of(answer)}

    def events(self, asked: Asked, answer: ApiReply) -> bytes:
        """One chunk with the text and the end; the counts if they are asked for."""
        head = _head(answer, "text_completion", "cmpl")
        choice = _choice(answer.end, text=answer.text)
        chunks = [event({**head, "choices": [choice]})]
        if asked.usage:
            chunks.append(event({**head, "choices": [], "usage": usage_of(answer)}))
        return b"".join([*chunks, _DONE])


def usage_of(answer: ApiReply) -> dict[str, Any]:
    """`usage` of both APIs."""
    return {
        "prompt_tokens": answer.input,
        "completion_tokens": answer.output,
        "total_tokens": answer.input + answer.output,
        "prompt_tokens_details": {"cached_tokens": answer.cached},
        "completion_tokens_details": {"reasoning_tokens": answer.thought},
    }


def _head(answer: ApiReply, kind: str, prefix: str) -> dict[str, Any]:
    return {"id": f"{prefix}-{answer.key}", "object": kind, "created": answer.created, "model": answer.model}


def _choice(end: str | None, **said: Any) -> dict[str, Any]:
    return {"index": 0, **said, "logprobs": None, "finish_reason": end}


def _calls(answer: ApiReply) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in answer.calls
    ]


def _streaming(body: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the reply is streamed, and whether its counts are."""
    stream, options = typed(body, "stream", bool), typed(body, "stream_options", dict)
    if options is None:
        return bool(stream), False
    if not stream:
        raise bad("stream_options is only allowed with stream: true", "stream_options")
    _STREAM.look(options, "stream_options.")
    return True, bool(typed(options, "include_usage", bool, "stream_options."))


def _messages(body: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    messages = objects(body, "messages", required=True)
    if not messages:
        raise bad("messages must have at least one message", "messages")
    return tuple(_message(message, f"messages[{number}].") for number, message in enumerate(messages))


def _message(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    _MESSAGE.look(message, where)
    role = _ROLES[one_of(message.get("role"), _ROLES, f"{where}role")]
    found: dict[str, Any] = {"role": role, "content": content_of(message.get("content"), f"{where}content")}
    if role == "tool":
        found["tool_call_id"] = typed(message, "tool_call_id", str, where, required=True)
    if role == "assistant":
        found["content"] = found["content"] or typed(message, "refusal", str, where) or ""
        if message.get("tool_calls"):
            calls = objects(message, "tool_calls", where)
            found["tool_calls"] = [_sent_call(call, f"{where}tool_calls[{n}].") for n, call in enumerate(calls)]
    return found


def _sent_call(call: Mapping[str, Any], where: str) -> dict[str, Any]:
    _CALL.look(call, where)
    one_of(call.get("type", "function"), {"function"}, f"{where}type")
    function = typed(call, "function", dict, where, required=True)
    name = typed(function, "name", str, f"{where}function.", required=True)
    arguments = typed(function, "arguments", str, f"{where}function.") or "{}"
    return {
        "id": typed(call, "id", str, where, required=True),
        "type": "function",
        "function": {"name": name, "arguments": plain_arguments(arguments)},
    }
