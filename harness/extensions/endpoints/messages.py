"""`/v1/messages`, as Anthropic's clients speak it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.api import InnerRequest
from harness.extensions.endpoints._answers import ApiReply, Asked, about_tokens, event
from harness.extensions.endpoints._fields import (
    Fields,
    ProblemError,
    Tools,
    bad,
    check_depth,
    objects,
    one_of,
    sampling_of,
    shown,
    typed,
)
from harness.extensions.endpoints._openai import choice_of, format_of, function_of, no_function

IGNORED = frozenset(
    {
        "metadata", "thinking", "service_tier", "cache_control", "inference_geo", "speed", "betas", "diagnostics",
        "user_profile_id", "workspace_id", "billing_policy",
    }
)  # fmt: skip
_SAMPLING = {
    "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k",
    "stop_sequences": "stop",
}  # fmt: skip
_BODY = Fields(
    frozenset(
        {
            "model", "messages", "system", "tools", "tool_choice", "stream", "output_config", "output_format",
            "context_management",
        }
    ) | _SAMPLING.keys(),
    IGNORED,
    {
        "mcp_servers": "the harness calls no tools", "container": "the harness runs no programs for a model",
        "thread": "the harness keeps no conversation: send the whole one",
    },
)  # fmt: skip
_MESSAGE = Fields(frozenset({"role", "content"}))
_TEXT = Fields(frozenset({"type", "text"}), frozenset({"cache_control"}), {"citations": "the model reads text"})
_USE = Fields(frozenset({"type", "id", "name", "input"}), frozenset({"cache_control", "caller", "toolset_name"}))
_RESULT = Fields(
    frozenset({"type", "tool_use_id", "content", "is_error"}), frozenset({"cache_control", "toolset_name"})
)
_TOOL = Fields(
    frozenset({"type", "name", "description", "input_schema"}),
    frozenset({"cache_control", "strict", "eager_input_streaming", "input_examples", "allowed_callers"}),
    {"defer_loading": "the harness finds no tools"},
)
_OUTPUT = Fields(frozenset({"format"}), frozenset({"effort"}))
_KINDS = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 405: "invalid_request_error",
    409: "invalid_request_error", 410: "permission_error", 413: "request_too_large", 429: "rate_limit_error",
}  # fmt: skip
_ENDS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class MessagesApi:
    """Conversations: `/v1/messages`."""

    ping = event({"type": "ping"}, "ping")

    def __init__(self) -> None:
        self._tools = Tools(_tool)

    def read(self, body: dict[str, Any]) -> Asked:
        """Read a request. Raises `ProblemError`."""
        _BODY.look(body)
        tools = self._tools.of(body)
        chosen, single = _choice(typed(body, "tool_choice", dict))
        messages = (*_system(body.get("system")), *_messages(body))
        thinking = typed(body, "thinking", dict) or {}
        ask = InnerRequest(
            "messages",
            body["model"],
            messages,
            tools=tools,
            tool_choice=choice_of(chosen, tools, chosen["name"] if isinstance(chosen, dict) else None),
            sampling=sampling_of(body, _SAMPLING),
            constraint=_format(body),
        )
        _check_edits(typed(body, "context_management", dict))
        said = (("thinking", thinking.get("type", "disabled") != "disabled"),)
        return Asked(ask, bool(typed(body, "stream", bool)), single_call=single, said=said)

    def reply(self, asked: Asked, answer: ApiReply) -> dict[str, Any]:
        """A message."""
        return _head(answer, list(_blocks(asked, answer)), _ENDS[answer.end], answer.output)

    def events(self, asked: Asked, answer: ApiReply) -> bytes:
        """The events of a message: its start, each block, its end."""
        chunks = [event({"type": "message_start", "message": _head(answer, [], None, 0)}, "message_start")]
        for index, block in enumerate(_blocks(asked, answer)):
            empty, deltas = _deltas(block)
            start = {"type": "content_block_start", "index": index, "content_block": empty}
            chunks.append(event(start, "content_block_start"))
            for delta in deltas:
                one = {"type": "content_block_delta", "index": index, "delta": delta}
                chunks.append(event(one, "content_block_delta"))
            chunks.append(event({"type": "content_block_stop", "index": index}, "content_block_stop"))
        end = {"stop_reason": _ENDS[answer.end], "stop_sequence": None}
        usage = {"output_tokens": answer.output}
        chunks.append(event({"type": "message_delta", "delta": end, "usage": usage}, "message_delta"))
        chunks.append(event({"type": "message_stop"}, "message_stop"))
        return b"".join(chunks)

    def error(self, problem: ProblemError) -> dict[str, Any]:
        """`{"type": "error", "error": {"type", "message"}}`, and `details` in `error` where clients look for them."""
        kind = _KINDS.get(problem.status, "api_error")
        error: dict[str, Any] = {"type": kind, "message": problem.message}
        if problem.code == "context_length_exceeded":  # what programs look for
            error["message"] = f"prompt is too long: {problem.message}"
        if problem.param == "thread":  # by this word Anthropic's clients go on with whole conversations
            error["details"] = {"error_code": "thread_unsupported_request", "unsupported": []}
        return {"type": "error", "error": error}

    def error_events(self, problem: ProblemError) -> bytes:
        """An `error` event: Anthropic's clients raise it."""
        return event(self.error(problem), "error")


class CountTokens(MessagesApi):
    """`/v1/messages/count_tokens`: an estimate."""

    def count(self, body: dict[str, Any]) -> dict[str, Any]:
        """About how many tokens a request has. Raises `ProblemError`."""
        return {"input_tokens": about_tokens(self.read(body).ask)}


def _head(answer: ApiReply, content: list[dict[str, Any]], end: str | None, output: int) -> dict[str, Any]:
    return {
        "id": f"msg_{answer.key}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {
            "input_tokens": max(0, answer.input - answer.cached),
            "output_tokens": output,
            "cache_read_input_tokens": answer.cached,
            "cache_creation_input_tokens": 0,
        },
    }


def _blocks(asked: Asked, answer: ApiReply) -> Iterator[dict[str, Any]]:
    if answer.reasoning and dict(asked.said)["thinking"]:
        yield {"type": "thinking", "thinking": answer.reasoning, "signature": ""}
    if answer.text or not answer.calls:
        yield {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.object}


def _deltas(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it starts, and what comes to it."""
    if block["type"] == "thinking":
        return {**block, "thinking": ""}, [{"type": "thinking_delta", "thinking": block["thinking"]}]
    if block["type"] == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}] if block["text"] else []
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]


def _system(system: Any) -> list[dict[str, Any]]:
    text = _text(system, "system") if system is not None else ""
    return [{"role": "system", "content": text}] if text else []


def _text(content: Any, where: str) -> str:
    """A text, or blocks of text, which become lines."""
    if isinstance(content, str):
        return content
    texts = []
    for number, block in enumerate(objects({where: content}, where)):
        place = f"{where}[{number}]"
        if block.get("type") != "text":
            raise bad(f"{place}: only text is supported, not {shown(block.get('type'))}", place)
        _TEXT.look(block, f"{place}.")
        texts.append(typed(block, "text", str, f"{place}.", required=True))
    return "\n".join(texts)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number, message in enumerate(objects(body, "messages", required=True)):
        where = f"messages[{number}]."
        _MESSAGE.look(message, where)
        role = one_of(message.get("role"), {"user", "assistant", "system"}, f"{where}role")
        content = message.get("content")
        if role != "assistant" and isinstance(content, list):
            found += _of_user(role, objects(message, "content", where), f"{where}content")
        elif role == "assistant" and isinstance(content, list):
            found.append(_of_assistant(objects(message, "content", where), f"{where}content"))
        else:
            found.append({"role": role, "content": typed(message, "content", str, where, required=True)})
    if not found:
        raise bad("messages must have at least one message", "messages")
    if found[-1]["role"] == "assistant":
        raise bad("the last message must be the user's: a reply that has begun cannot be continued here", "messages")
    return found


def _of_user(role: str, blocks: Any, where: str) -> list[dict[str, Any]]:
    """Results of tools are messages of their own, in the order of the blocks."""
    found: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        place = f"{where}[{number}]."
        if block.get("type") == "tool_result":
            _RESULT.look(block, place)
            name = typed(block, "tool_use_id", str, place, required=True)
            text = _text(block.get("content") or "", f"{place}content")
            if typed(block, "is_error", bool, place):
                text = f"Error: {text}"
            found.append({"role": "tool", "content": text, "tool_call_id": name})
            continue
        text = _text([block], f"{where}")
        if found and found[-1]["role"] == role:
            found[-1]["content"] += f"\n{text}"
        else:
            found.append({"role": role, "content": text})
    return found or [{"role": role, "content": ""}]


def _of_assistant(blocks: Any, where: str) -> dict[str, Any]:
    texts, calls = [], []
    for number, block in enumerate(blocks):
        place = f"{where}[{number}]."
        if block.get("type") == "tool_use":
            _USE.look(block, place)
            arguments = typed(block, "input", dict, place) or {}
            check_depth(arguments, f"{place}input")
            function = {
                "name": typed(block, "name", str, place, required=True),
                "arguments": json.dumps(arguments, ensure_ascii=False),
            }
            name = typed(block, "id", str, place, required=True)
            calls.append({"id": name, "type": "function", "function": function})
        elif block.get("type") not in ("thinking", "redacted_thinking"):
            texts.append(_text([block], where))
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts)}
    return {**message, "tool_calls": calls} if calls else message


def _tool(tool: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    if tool.get("type") not in (None, "custom"):
        raise no_function(tool, where)
    _TOOL.look(tool, where)
    schema = typed(tool, "input_schema", dict, where, required=True)
    yield function_of({**tool, "parameters": schema}, where)


def _choice(choice: Mapping[str, Any] | None) -> tuple[Any, bool]:
    """`tool_choice` in the words of `choice_of`, and whether only one call may come."""
    if choice is None:
        return None, False
    single = bool(typed(choice, "disable_parallel_tool_use", bool, "tool_choice."))
    kind = one_of(choice.get("type"), {"auto", "any", "tool", "none"}, "tool_choice.type")
    if kind == "tool":
        return {"name": typed(choice, "name", str, "tool_choice.", required=True)}, single
    return "required" if kind == "any" else kind, single


def _format(body: Mapping[str, Any]) -> dict[str, Any] | None:
    config = typed(body, "output_config", dict) or {}
    _OUTPUT.look(config, "output_config.")
    form = typed(config, "format", dict, "output_config.") or typed(body, "output_format", dict)
    return format_of(form, form, "output_config.format")


def _check_edits(management: Mapping[str, Any] | None) -> None:
    """Thoughts of earlier turns are left out anyway; no other part of a conversation is."""
    for number, edit in enumerate(objects(management, "edits", "context_management.") if management else ()):
        if not str(edit.get("type")).startswith("clear_thinking_"):
            where = f"context_management.edits[{number}]"
            raise bad(f"{where}: {shown(edit.get('type'))} is not supported: send a shorter conversation", where)
