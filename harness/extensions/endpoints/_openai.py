"""What the three APIs of OpenAI share: errors, tools, formats of replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from harness.extensions.endpoints._answers import event
from harness.extensions.endpoints._fields import Fields, ProblemError, bad, check_depth, one_of, shown, typed

IGNORED = frozenset(
    {
        "seed", "user", "safety_identifier", "store", "metadata", "service_tier", "prompt_cache_key",
        "prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "verbosity", "prediction",
    }
)  # fmt: skip
REFUSED = {
    "logprobs": "replies come without probabilities",
    "top_logprobs": "replies come without probabilities",
    "logit_bias": "the run's model has its own tokens",
    "moderation": "the harness moderates nothing",
}
_TYPES = {401: "authentication_error", 404: "invalid_request_error", 429: "rate_limit_error"}
TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})
_PART = Fields(
    frozenset({"type", "text", "refusal"}),
    frozenset({"annotations", "logprobs", "parsed", "cache_control", "prompt_cache_breakpoint"}),
)
_FUNCTION = Fields(frozenset({"name", "description", "parameters"}), frozenset({"strict"}))
_TOOL = Fields(frozenset({"type", "function"}))
SCHEMA = Fields(frozenset({"name", "schema"}), frozenset({"description", "strict"}))


class OpenAIErrors:
    """Errors as OpenAI writes them."""

    ping = b": waiting for the model\n\n"

    def error(self, problem: ProblemError) -> dict[str, Any]:
        """`{"error": {"message", "type", "param", "code"}}`."""
        kind = problem.kind or _TYPES.get(problem.status)
        kind = kind or ("invalid_request_error" if problem.status < 500 else "server_error")
        return {"error": {"message": problem.message, "type": kind, "param": problem.param, "code": problem.code}}

    def error_events(self, problem: ProblemError) -> bytes:
        """An error in the place of a chunk: OpenAI's clients raise it."""
        return event(self.error(problem))


def function_of(function: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A function as the harness has tools: name, description, parameters."""
    name = typed(function, "name", str, where, required=True)
    parameters = typed(function, "parameters", dict, where) or {"type": "object", "properties": {}}
    check_depth(parameters, f"{where}parameters")
    return {
        "name": name,
        "description": typed(function, "description", str, where) or "",
        "parameters": parameters,
    }


def no_function(tool: Mapping[str, Any], where: str) -> ProblemError:
    """What is said of a tool that is no function."""
    why = "only functions are supported: turn it off in the program"
    return bad(f"{where}type is {shown(tool.get('type'))}, and {why}", f"{where}type", "unsupported_parameter")


def chat_tool(tool: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """One of `tools` of the chat API."""
    if tool.get("type", "function") != "function":
        raise no_function(tool, where)
    _TOOL.look(tool, where)
    function = typed(tool, "function", dict, where, required=True)
    _FUNCTION.look(function, f"{where}function.")
    yield function_of(function, f"{where}function.")


def choice_of(choice: Any, tools: tuple[dict[str, Any], ...], name: str | None = None) -> Any:
    """`tool_choice` in the harness's words: None, "auto", "none", "required", {"name": …}.

    Args:
        choice: as sent.
        tools: those of the request.
        name: the function's name, where it is chosen.
    """
    if choice is None:
        return None
    if isinstance(choice, str):
        return one_of(choice, {"auto", "none", "required"}, "tool_choice")
    if not isinstance(name, str):
        raise bad(f"tool_choice must name a function, or be auto, none or required, not {shown(choice)}", "tool_choice")
    one_of(name, {tool["name"] for tool in tools}, "tool_choice")
    return {"name": name}


def format_of(form: Mapping[str, Any] | None, schema: Mapping[str, Any] | None, where: str) -> dict[str, Any] | None:
    """The constraint of a format of replies.

    Args:
        form: with its `type`.
        schema: what has `name` and `schema`, where the type is json_schema.
        where: the name of `form` in errors.
    """
    if form is None:
        return None
    kind = one_of(form.get("type"), {"text", "json_object", "json_schema"}, f"{where}.type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"json": {"type": "object"}}
    if schema is None:
        raise bad(f"{where}.json_schema is missing: it is an object with name and schema", where)
    found: dict[str, Any] = typed(schema, "schema", dict, f"{where}.", required=True)
    check_depth(found, f"{where}.schema")
    return {"json": found}


def plain_arguments(text: str) -> str:
    """Arguments of a call that stands in a conversation: what is no object of JSON is "{}", since servers and chat
    templates refuse it."""
    try:
        return text if isinstance(json.loads(text), dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def content_of(content: Any, where: str) -> str:
    """A message's content: a text, or parts of text, which become lines.

    Raises:
        ProblemError: for parts of another kind, such as images.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list):
        raise bad(f"{where} must be a text or a list of parts, not {shown(content)}", where, "invalid_type")
    texts = []
    for number, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in TEXT_PARTS:
            place = f"{where}[{number}]"
            raise bad(f"{place}: only text is supported, not {shown(kind or part)}", place, "unsupported_content")
        _PART.look(part, f"{where}[{number}].")
        texts.append(typed(part, "refusal" if kind == "refusal" else "text", str, f"{where}[{number}].", True))
    return "\n".join(texts)


def check_single(body: Mapping[str, Any], name: str = "n") -> None:
    """Raise `ProblemError` if more than one reply is asked for."""
    if body.get(name) not in (None, 1):
        raise bad(f"{name} must be 1: a call has one reply; ask again for another", name, "unsupported_parameter")
