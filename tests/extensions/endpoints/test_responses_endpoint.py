"""`/v1/responses`, asked by OpenAI's own client, and as Codex asks it."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from harness.api import Completion, ContextLengthError, InnerRequest
from tests.helpers.endpoint_seats import Place, serve

TOOL: Any = {
    "type": "function",
    "name": "shell",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}},
    "strict": False,
}
CALLED = Completion(
    "I look.",
    reasoning="hm",
    finish_reason="tool_calls",
    input_tokens=30,
    output_tokens=9,
    cached_tokens=20,
    reasoning_tokens=4,
    tool_calls=[
        {"id": "c1", "name": "shell", "arguments": '{"command": ["ls"]}'},
        {"id": "c2", "name": "shell", "arguments": '{"command": ["pwd"]}'},
    ],
)


def test_tokens_are_estimated_without_a_call_and_wrong_paths_hear_which_there_are() -> None:
    async def work(place: Place) -> None:
        counted = await place.openai.responses.input_tokens.count(model="tiny", input="hello " * 100, tools=[TOOL])
        assert counted.input_tokens > 100 and place.model.asks == []
        status, refused = await place.post("/modles", {})
        assert status == 404 and "Did you mean /models?" in refused["error"]["message"]

    serve(work)


def test_items_of_a_reply_go_back_as_they_came() -> None:
    async def work(place: Place) -> None:
        asked: list[Any] = [{"role": "user", "content": "hello"}]
        create = place.openai.responses.create
        first = await create(model="tiny", instructions="Be brief.", input=asked, tools=[TOOL], max_output_tokens=50)
        assert place.ask == InnerRequest(
            "responses",
            "tiny",
            ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}),
            tools=({key: TOOL[key] for key in ("name", "description", "parameters")},),
            sampling={"max_tokens": 50},
        )
        assert [item.type for item in first.output] == ["reasoning", "message", "function_call", "function_call"]
        assert (first.output_text, first.status, first.instructions) == ("I look.", "completed", "Be brief.")
        usage = first.usage
        assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (30, 9, 39)
        assert (usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens) == (20, 4)
        asked += first.output
        asked += [{"type": "function_call_output", "call_id": name, "output": name} for name in ("c1", "c2")]
        await create(model="tiny", input=asked, tools=[TOOL], tool_choice={"type": "function", "name": "shell"})
        user, assistant, *outputs = place.ask.messages
        assert place.ask.tool_choice == {"name": "shell"}
        assert user == {"role": "user", "content": "hello"}
        assert assistant["content"] == "I look."
        assert [call["id"] for call in assistant["tool_calls"]] == ["c1", "c2"]
        assert outputs == [{"role": "tool", "content": name, "tool_call_id": name} for name in ("c1", "c2")]

    serve(work, CALLED)


def test_functions_of_a_namespace_have_its_name() -> None:
    space: Any = {"type": "namespace", "name": "agents", "description": "Others.", "tools": [{**TOOL, "name": "spawn"}]}

    async def work(place: Place) -> None:
        create = place.openai.responses.create
        first = await create(model="tiny", input="hello", tools=[TOOL, space])
        assert [tool["name"] for tool in place.ask.tools] == ["shell", "agents__spawn"]
        call = first.output[-1]
        assert (call.namespace, call.name) == ("agents", "spawn")
        found = {"type": "function_call_output", "call_id": "c1", "output": "done"}
        await create(model="tiny", input=[{"role": "user", "content": "hello"}, call, found], tools=[TOOL, space])
        assert place.ask.messages[1]["tool_calls"][0]["function"]["name"] == "agents__spawn"

    serve(work, Completion("", tool_calls=[{"id": "c1", "name": "agents__spawn", "arguments": "{}"}]))


def test_events_come_in_their_order() -> None:
    async def work(place: Place) -> None:
        stream = await place.openai.responses.create(model="tiny", input="hello", tools=[TOOL], stream=True)
        events = [event async for event in stream]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        part = ["content_part.added", "{}.delta", "{}.done", "content_part.done"]
        text = ["output_item.added", *part, "output_item.done"]
        call = [
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
        ]
        names = [
            "created", "in_progress", *(one.format("reasoning_text") for one in text),
            *(one.format("output_text") for one in text), *call, *call, "completed",
        ]  # fmt: skip
        assert [event.type for event in events] == [f"response.{name}" for name in names]
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "I look."
        done = [event.item for event in events if event.type == "response.output_item.done"]
        assert done == events[-1].response.output
        assert events[0].response.id == events[-1].response.id
        async with place.openai.responses.stream(model="tiny", input="hello", tools=[TOOL]) as again:
            async for _ in again:
                pass
            assert (await again.get_final_response()).output_text == "I look."

    serve(work, CALLED)


class Choice(BaseModel):
    """A color."""

    color: Literal["red", "blue"]


def test_structured_responses() -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.responses.parse(model="tiny", input="hello", text_format=Choice)
        assert reply.output_parsed == Choice(color="blue")
        assert place.ask.constraint["json"]["required"] == ["color"]
        await place.openai.responses.create(model="tiny", input=[*reply.output, {"role": "user", "content": "why?"}])
        assert place.ask.messages[0] == {"role": "assistant", "content": '{"color": "blue"}'}

    serve(work, Completion('{"color": "blue"}'))


def test_a_response_that_was_cut_is_incomplete() -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.responses.create(model="tiny", input="hello")
        assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        stream = await place.openai.responses.create(model="tiny", input="hello", stream=True)
        assert [event.type async for event in stream][-1] == "response.incomplete"

    serve(work, Completion("x", finish_reason="length"))


def test_what_codex_sends() -> None:
    body = {
        "model": "tiny",
        "instructions": "You are a coding agent.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Play."}]},
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": "done"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I did."}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
        ],
        "tools": [TOOL],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199",
        "text": {"verbosity": "medium"},
    }

    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        writer.write(place.request("/responses", body, Accept="text/event-stream", originator="codex_exec"))
        assert b"event: response.completed" in await reader.readuntil(b"event: response.completed\n")
        roles = [message["role"] for message in place.ask.messages]
        assert roles == ["system", "system", "user", "user", "assistant", "tool", "assistant", "user"]
        assert place.ask.tool_choice == "auto"

    serve(work, CALLED)


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"previous_response_id": "resp_1"}, "send the whole conversation as input"),
        ({"conversation": "conv_1"}, "send the whole conversation"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation must be disabled"),
        ({"tools": [{"type": "web_search"}]}, "only functions are supported: turn it off in the program"),
        ({"include": ["message.output_text.logprobs"]}, "include cannot be"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "only text"),
        ({"input": []}, "at least one item"),
        ({"input": 3}, "input must be a list"),
        ({"max_output_token": 3}, "Did you mean max_output_tokens"),
    ],
)
def test_what_would_change_the_meaning_is_refused(more: dict[str, Any], what: str) -> None:
    async def work(place: Place) -> None:
        status, error = await place.post("/responses", {"model": "tiny", "input": "hello", **more})
        assert status == 400
        assert what in error["error"]["message"]
        assert place.model.asks == []

    serve(work)


def test_errors_of_responses() -> None:
    async def work(place: Place) -> None:
        with pytest.raises(openai.BadRequestError) as found:
            await place.openai.responses.create(model="tiny", input="hello", stream=True)
        assert found.value.code == "context_length_exceeded"

    serve(work, ContextLengthError("9 tokens, and the model takes 5"))
