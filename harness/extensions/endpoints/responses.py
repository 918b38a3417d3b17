"""`/v1/responses`, as OpenAI's clients speak it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.api import InnerRequest
from harness.extensions.endpoints._answers import ApiReply, Asked, about_tokens, event
from harness.extensions.endpoints._fields import (
    Fields,
    ProblemError,
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
    OpenAIErrors,
    choice_of,
    content_of,
    format_of,
    function_of,
    no_function,
    plain_arguments,
)

IGNORED_HERE = IGNORED | {"reasoning", "max_tool_calls", "client_metadata"}
_SAMPLING = {"max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p"}
_BODY = Fields(
    frozenset(
        {
            "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "stream",
            "stream_options", "include", "truncation",
        }
    ) | _SAMPLING.keys(),
    IGNORED_HERE,
    REFUSED | {
        "previous_response_id": "replies are not stored; send the whole conversation as input",
        "conversation": "conversations are not stored; send the whole conversation as input",
        "prompt": "prompts are not stored; send instructions and input",
        "background": "a reply comes as the answer to its request",
        "context_management": "send a shorter conversation",
    },
)  # fmt: skip
_MESSAGE = Fields(frozenset({"type", "role", "content"}), frozenset({"id", "status", "phase"}))
_CALL = Fields(
    frozenset({"type", "call_id", "name", "arguments", "namespace"}),
    frozenset({"id", "status", "caller", "parsed_arguments"}),
)
_OUTPUT = Fields(frozenset({"type", "call_id", "output"}), frozenset({"id", "status", "name", "caller"}))
_TOOL = Fields(
    frozenset({"type", "name", "description", "parameters"}),
    frozenset({"strict", "allowed_callers", "output_schema"}),
    {"defer_loading": "the harness finds no tools", "async": "a call is answered by the next request"},
)
_SPACE = Fields(frozenset({"type", "name", "tools"}), frozenset({"description"}))
_BETWEEN = "__"
"""Between the name of a namespace and that of its function, where a model sees them."""
_FORMAT = Fields(frozenset({"type", "name", "schema"}), frozenset({"description", "strict"}))
_TEXT = Fields(frozenset({"format"}), frozenset({"verbosity"}))
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_SAID = ("instructions", "tools", "tool_choice", "temperature", "top_p", "max_output_tokens", "text", "metadata")


class ResponsesApi(OpenAIErrors):
    """Conversations as items: `/v1/responses`."""

    def __init__(self) -> None:
        self._tools = Tools(_tool)

    def read(self, body: dict[str, Any]) -> Asked:
        """Read a request. Raises `ProblemError`."""
        _BODY.look(body)
        tools = self._tools.of(body)
        text = typed(body, "text", dict) or {}
        _TEXT.look(text, "text.")
        form = typed(text, "format", dict, "text.")
        if form is not None:
            _FORMAT.look(form, "text.format.")
        if body.get("truncation") not in (None, "disabled"):
            raise bad("truncation must be disabled: send a shorter conversation", "truncation", "unsupported_parameter")
        for name in typed(body, "include", list) or ():
            one_of(name, {"reasoning.encrypted_content"}, "include")
        choice = body.get("tool_choice")
        ask = InnerRequest(
            "responses",
            body["model"],
            tuple(_messages(body)),
            tools=tools,
            tool_choice=choice_of(choice, tools, choice.get("name") if isinstance(choice, dict) else None),
            sampling=sampling_of(body, _SAMPLING),
            constraint=format_of(form, form, "text.format"),
        )
        single = typed(body, "parallel_tool_calls", bool) is False
        said = tuple((name, body[name]) for name in _SAID if body.get(name) is not None)
        return Asked(ask, bool(typed(body, "stream", bool)), single_call=single, said=said)

    def reply(self, asked: Asked, answer: ApiReply) -> dict[str, Any]:
        """A response."""
        return _response(asked, answer, _status(answer), list(_items(asked, answer)))

    def events(self, asked: Asked, answer: ApiReply) -> bytes:
        """The events of a response: its start, each item with its parts, its end."""
        events = _Events()
        for name in ("created", "in_progress"):
            events.add(f"response.{name}", response=_response(asked, answer, "in_progress", []))
        items = list(_items(asked, answer))
        for index, item in enumerate(items):
            _add_item(events, item, index)
        status = _status(answer)
        events.add(f"response.{status}", response=_response(asked, answer, status, items))
        return b"".join(events.chunks)

    def error_events(self, problem: ProblemError) -> bytes:
        """The event `response.failed`."""
        events = _Events()
        error = {"code": problem.code or "server_error", "message": problem.message}
        failed = {"id": "resp_failed", "object": "response", "status": "failed", "error": error, "output": []}
        events.add("response.failed", response=failed)
        return b"".join(events.chunks)


class CountInput(ResponsesApi):
    """`/v1/responses/input_tokens`: an estimate."""

    def count(self, body: dict[str, Any]) -> dict[str, Any]:
        """About how many tokens a request has. Raises `ProblemError`."""
        return {"object": "response.input_tokens", "input_tokens": about_tokens(self.read(body).ask)}


class _Events:
    """Events with their names and numbers."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    def add(self, kind: str, /, **more: Any) -> None:
        self.chunks.append(event({"type": kind, "sequence_number": len(self.chunks), **more}, kind))


def _status(answer: ApiReply) -> str:
    return "incomplete" if answer.end in ("length", "content_filter") else "completed"


def _response(asked: Asked, answer: ApiReply, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    reason = {"length": "max_output_tokens"}.get(answer.end, answer.end)
    usage = {
        "input_tokens": answer.input,
        "input_tokens_details": {"cached_tokens": answer.cached},
        "output_tokens": answer.output,
        "output_tokens_details": {"reasoning_tokens": answer.thought},
        "total_tokens": answer.input + answer.output,
    }
    return {
        "id": f"resp_{answer.key}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": not asked.single_call,
        "previous_response_id": None,
        "store": False,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "metadata": {},
        **dict(asked.said),
        "usage": None if status == "in_progress" else usage,
    }


def _items(asked: Asked, answer: ApiReply) -> Iterable[dict[str, Any]]:
    status = "completed"
    spaces = [tool["name"] for tool in dict(asked.said).get("tools", ()) if tool.get("type") == "namespace"]
    if answer.reasoning:
        content = [{"type": "reasoning_text", "text": answer.reasoning}]
        yield {"id": f"rs_{answer.key}", "type": "reasoning", "summary": [], "content": content, "status": status}
    if answer.text or not answer.calls:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        ended = "incomplete" if answer.end == "length" else status
        yield {
            "id": f"msg_{answer.key}", "type": "message", "role": "assistant", "content": [part], "status": ended,
        }  # fmt: skip
    for number, call in enumerate(answer.calls):
        space = next((space for space in spaces if call.name.startswith(f"{space}{_BETWEEN}")), None)
        yield {
            "id": f"fc_{answer.key}{number}", "type": "function_call", "call_id": call.id,
            "name": call.name[len(space) + len(_BETWEEN) :] if space else call.name,
            **({"namespace": space} if space else {}), "arguments": call.arguments, "status": status,
        }  # fmt: skip


def _add_item(events: _Events, item: dict[str, Any], index: int) -> None:
    """The events of one item: it begins empty, its parts come, it is done."""
    place = {"output_index": index, "item_id": item["id"]}
    call = item["type"] == "function_call"
    begun: dict[str, Any] = {"arguments": ""} if call else {"content": []}
    empty = {**item, "status": "in_progress", **begun}
    events.add("response.output_item.added", output_index=index, item=empty)
    if call:
        events.add("response.function_call_arguments.delta", **place, delta=item["arguments"])
        events.add("response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"])
    for number, part in enumerate(item.get("content", ())):
        at = {**place, "content_index": number}
        kind = part["type"]
        more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        events.add("response.content_part.added", **at, part={**part, "text": ""})
        if part["text"]:
            events.add(f"response.{kind}.delta", **at, delta=part["text"], **more)
        events.add(f"response.{kind}.done", **at, text=part["text"], **more)
        events.add("response.content_part.done", **at, part=part)
    events.add("response.output_item.done", output_index=index, item=item)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    instructions = typed(body, "instructions", str)
    if instructions:
        found.append({"role": "system", "content": instructions})
    if isinstance(body.get("input"), str):
        return [*found, {"role": "user", "content": body["input"]}]
    items = objects(body, "input", required=True)
    for number, item in enumerate(items):
        _add(found, item, f"input[{number}].")
    if not items:
        raise bad("input must have at least one item", "input")
    return found


def _add(found: list[dict[str, Any]], item: Mapping[str, Any], where: str) -> None:
    """Put an item to the messages. Calls belong to the assistant's message before them."""
    kind = item.get("type", "message")
    if kind == "reasoning":
        return
    if kind == "message":
        _MESSAGE.look(item, where)
        role = _ROLES[one_of(item.get("role"), _ROLES, f"{where}role")]
        found.append({"role": role, "content": content_of(item.get("content"), f"{where}content")})
    elif kind == "function_call":
        _CALL.look(item, where)
        if not found or found[-1]["role"] != "assistant":
            found.append({"role": "assistant", "content": ""})
        function = {
            "name": _joined(typed(item, "namespace", str, where), typed(item, "name", str, where, required=True)),
            "arguments": plain_arguments(typed(item, "arguments", str, where) or "{}"),
        }
        name = typed(item, "call_id", str, where, required=True)
        found[-1].setdefault("tool_calls", []).append({"id": name, "type": "function", "function": function})
    elif kind == "function_call_output":
        _OUTPUT.look(item, where)
        name = typed(item, "call_id", str, where, required=True)
        found.append(
            {"role": "tool", "content": content_of(item.get("output"), f"{where}output"), "tool_call_id": name}
        )
    else:
        raise bad(f"{where}type: {shown(kind)} is not supported: only messages and calls of functions", f"{where}type")


def _tool(tool: Mapping[str, Any], where: str, space: str = "") -> Iterator[dict[str, Any]]:
    """A function, or the functions of a namespace, whose name stands before theirs."""
    if tool.get("type") == "namespace" and not space:
        _SPACE.look(tool, where)
        name = typed(tool, "name", str, where, required=True)
        for number, one in enumerate(objects(tool, "tools", where, required=True)):
            yield from _tool(one, f"{where}tools[{number}].", name)
        return
    if tool.get("type") != "function":
        raise no_function(tool, where)
    _TOOL.look(tool, where)
    function = function_of(tool, where)
    yield {**function, "name": _joined(space, function["name"])}


def _joined(space: str | None, name: str) -> str:
    return f"{space}{_BETWEEN}{name}" if space else name
