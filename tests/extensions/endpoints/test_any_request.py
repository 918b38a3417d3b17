"""Whatever a program sends: a request is read, or refused with a reason that its API can say."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion
from harness.extensions.endpoints._answers import Api, ApiReply
from harness.extensions.endpoints._fields import ProblemError, read_json
from harness.extensions.endpoints.chat import ChatApi, CompletionsApi
from harness.extensions.endpoints.messages import MessagesApi
from harness.extensions.endpoints.responses import ResponsesApi

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}}
FUNCTION = {"name": "look", "description": "Look.", "parameters": SCHEMA, "strict": True}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x"}], "is_error": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
SAMPLING = {"temperature": 0.5, "top_p": 0.9}
CHAT = {
    **SAMPLING,
    "model": "tiny",
    "messages": [
        {"role": "developer", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": "x", "name": "me"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "x"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "stop": ["x"],
    "max_completion_tokens": 5,
    "stream": True,
    "stream_options": {"include_usage": True},
}
RESPONSES = {
    **SAMPLING,
    "model": "tiny",
    "instructions": "x",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "x"}]},
        {"role": "user", "content": "x"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "namespace": "n"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "x"}]},
    ],
    "tools": [
        {"type": "function", **FUNCTION},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", **FUNCTION}]},
    ],
    "tool_choice": {"type": "function", "name": "look"},
    "text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}, "verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
    "max_output_tokens": 5,
}
MESSAGES = {
    **SAMPLING,
    "model": "tiny",
    "system": [{"type": "text", "text": "x", "cache_control": {}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "x", "signature": ""},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"place": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x"}]}],
        },
    ],
    "tools": [{"name": "look", "description": "x", "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 5},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"},
    "context_management": {"edits": [{"type": "clear_thinking_x"}]},
    "max_tokens": 5,
    "stop_sequences": ["x"],
}
TEXT = {**SAMPLING, "model": "tiny", "prompt": "x", "max_tokens": 5, "stop": "x"}
APIS: list[tuple[Api, dict[str, Any]]] = [
    (ChatApi(), CHAT),
    (ResponsesApi(), RESPONSES),
    (MessagesApi(), MESSAGES),
    (CompletionsApi(), TEXT),
]
NAMES = ["chat", "responses", "messages", "completions"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["user", "assistant", "tool", "function", "text", "tool_use", "tool_result"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["type", "role", "content", "name", "id"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
CALLS = [{"id": "", "name": "n__look", "arguments": "["}, {}]
REPLY = Completion("x", reasoning="y", tool_calls=CALLS, input_tokens=1, output_tokens=2)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a value, as the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in items for place in places(one, (*path, key)))]


@pytest.mark.parametrize("number", range(4), ids=NAMES)
def test_the_examples_are_read(number: int) -> None:
    api, example = APIS[number]
    assert api.read(copy.deepcopy(example)).ask.model == "tiny"


ODD: list[Any] = [None, True, -1, "", [], {}, [[]], {"type": []}]


@pytest.mark.parametrize("number", range(4), ids=NAMES)
def test_each_value_may_be_odd(number: int) -> None:
    _, example = APIS[number]
    for path in places(example)[1:]:
        for value in ODD:
            check(number, [(path, value)])


@pytest.mark.parametrize("number", range(4), ids=NAMES)
@given(data=st.data())
def test_several_values_may_be_odd(number: int, data: st.DataObject) -> None:
    paths = places(APIS[number][1])[1:]
    check(number, data.draw(st.lists(st.tuples(st.sampled_from(paths), VALUES), min_size=2, max_size=3)))


def check(number: int, changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """A request with these values at these places is read, and its reply can be written; or it is refused."""
    api, example = APIS[number]
    body: Any = copy.deepcopy(example)
    for (*path, last), value in changes:
        holder = body
        try:
            for key in path:
                holder = holder[key]
            holder[last] = value
        except (LookupError, TypeError):
            continue  # an earlier change has taken the place away
    body["model"] = "tiny"  # read by the server
    try:
        body = read_json(json.dumps(body).encode())
        asked = api.read(body)
    except ProblemError as problem:
        assert 400 <= problem.status < 500
        assert json.dumps(api.error(problem)) and api.error_events(problem)
        return
    assert isinstance(asked.ask.messages, tuple)
    assert all(isinstance(message["content"], str) for message in asked.ask.messages)
    reply = ApiReply(asked, REPLY, 1)
    assert json.dumps(api.reply(asked, reply))
    for line in api.events(asked, reply).decode().split("\n\n"):
        _, _, sent = line.partition("data: ")
        assert not sent or sent == "[DONE]" or json.loads(sent)
