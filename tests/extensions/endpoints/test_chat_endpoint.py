"""`/v1/chat/completions` and `/v1/completions`, asked by OpenAI's own client."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Literal

import openai
import pytest
from pydantic import BaseModel

from harness.api import Completion, InnerRequest
from tests.helpers.endpoint_seats import HELLO, Place, serve

SAID = Completion(
    "blue", reasoning="hm", finish_reason="stop", input_tokens=30, output_tokens=9, cached_tokens=20, reasoning_tokens=4
)
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
        "strict": True,
    },
}
CALLED = Completion(
    "I look.",
    finish_reason="tool_calls",
    tool_calls=[
        {"id": "a1", "name": "look", "arguments": '{"place": "x"}'},
        {"id": "a1", "name": "look", "arguments": "{no JSON"},
    ],
)


def test_a_reply_of_the_chat_api() -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.chat.completions.create(
            model="tiny",
            messages=[{"role": "developer", "content": "Be brief."}, *HELLO],
            temperature=0.5,
            max_completion_tokens=7,
            stop="END",
            seed=3,
            user="me",
            presence_penalty=None,
        )
        assert place.ask == InnerRequest(
            "chat",
            "tiny",
            ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}),
            sampling={"temperature": 0.5, "max_tokens": 7, "stop": ["END"]},
        )
        choice = reply.choices[0]
        assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", "blue", "stop")
        assert choice.message.model_extra == {"reasoning_content": "hm"}
        usage = reply.usage
        assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 9, 39)
        assert usage.prompt_tokens_details.cached_tokens == 20
        assert usage.completion_tokens_details.reasoning_tokens == 4
        assert (reply.model, reply.object) == ("tiny", "chat.completion")

    serve(work, SAID)


def test_the_chat_api_streams() -> None:
    async def work(place: Place) -> None:
        async def chunks(**more: Any) -> list[Any]:
            stream = await place.openai.chat.completions.create(
                model="tiny", messages=HELLO, tools=[TOOL], stream=True, **more
            )
            return [chunk async for chunk in stream]

        found = await chunks(stream_options={"include_usage": True})
        deltas = [chunk.choices[0].delta for chunk in found[:-1]]
        assert deltas[0].role == "assistant"
        assert "".join(delta.content or "" for delta in deltas) == "I look."
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        assert [(call.index, call.function.name, call.function.arguments) for call in calls] == [
            (0, "look", '{"place": "x"}'),
            (1, "look", "{no JSON"),
        ]
        assert calls[0].id == "a1" != calls[1].id
        assert [chunk.choices[0].finish_reason for chunk in found[:-1]] == [None] * (len(deltas) - 1) + ["tool_calls"]
        assert found[-1].choices == []
        assert found[-1].usage.total_tokens == 0
        assert len({chunk.id for chunk in found}) == 1
        assert all(chunk.usage is None and chunk.choices for chunk in await chunks())

    serve(work, CALLED)


def test_tools_and_their_results_reach_the_model() -> None:
    async def work(place: Place) -> None:
        create = place.openai.chat.completions.create
        first = await create(model="tiny", messages=HELLO, tools=[TOOL], tool_choice="required")
        assert place.ask.tool_choice == "required"
        function = TOOL["function"]
        assert place.ask.tools == ({key: function[key] for key in ("name", "description", "parameters")},)
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        results: list[Any] = [
            {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": t} for t in ("seen", "it")]}
            for call in message.tool_calls
        ]
        await create(
            model="tiny",
            messages=[*HELLO, message, *results],
            tools=[TOOL],
            tool_choice={"type": "function", "function": {"name": "look"}},
        )
        _, said, *found = place.ask.messages
        assert place.ask.tool_choice == {"name": "look"}
        assert said["content"] == "I look."
        assert [call["function"]["arguments"] for call in said["tool_calls"]] == ['{"place": "x"}', "{}"]
        assert [(one["role"], one["content"]) for one in found] == [("tool", "seen\nit")] * 2
        assert [one["tool_call_id"] for one in found] == [call["id"] for call in said["tool_calls"]]
        single = await create(model="tiny", messages=HELLO, tools=[TOOL], parallel_tool_calls=False)
        assert [call.id for call in single.choices[0].message.tool_calls] == ["a1"]

    serve(work, CALLED)


def test_a_provider_gets_back_what_belongs_to_its_calls() -> None:
    """DeepSeek's thought, Gemini's signature: clients of the API leave them out."""
    fields: dict[str, Any] = {
        "model": "tiny",
        "message": {"reasoning_content": None},
        "tool_calls": [{"extra_content": {"google": {"thought_signature": "s1"}}}],
    }

    async def work(place: Place) -> None:
        create = place.openai.chat.completions.create
        first = await create(model="tiny", messages=HELLO, tools=[TOOL], parallel_tool_calls=False)
        said = first.choices[0].message
        call = {key: value for key, value in said.tool_calls[0].model_dump().items() if value is not None}
        found: Any = {"role": "tool", "tool_call_id": call["id"], "content": "seen"}
        await create(model="tiny", messages=[*HELLO, {"role": "assistant", "tool_calls": [call]}, found], tools=[TOOL])
        sent = place.ask.messages[1]
        assert (sent["role"], sent["content"], sent["reasoning_content"]) == ("assistant", "", "hm")
        assert sent["tool_calls"] == [{**fields["tool_calls"][0], **call}]
        other: Any = {**call, "id": "other"}
        await create(model="tiny", messages=[*HELLO, {"role": "assistant", "tool_calls": [other]}, found])
        assert place.ask.messages[1] == {"role": "assistant", "content": "", "tool_calls": [other]}

    serve(work, replace(CALLED, reasoning="hm", provider_fields=fields))


LIST = {"type": "array"}


class Choice(BaseModel):
    """A color."""

    color: Literal["red", "blue"]


def test_structured_replies_are_held_to_their_schema() -> None:
    async def work(place: Place) -> None:
        parsed = await place.openai.chat.completions.parse(model="tiny", messages=HELLO, response_format=Choice)
        assert parsed.choices[0].message.parsed == Choice(color="blue")
        assert place.ask.constraint["json"]["required"] == ["color"]
        for form, constraint in (
            ({"type": "json_object"}, {"json": {"type": "object"}}),
            ({"type": "text"}, None),
            ({"type": "json_schema", "json_schema": {"name": "n", "schema": LIST}}, {"json": LIST}),
        ):
            form_of: Any = form
            await place.openai.chat.completions.create(model="tiny", messages=HELLO, response_format=form_of)
            assert place.ask.constraint == constraint
        async with place.openai.chat.completions.stream(model="tiny", messages=HELLO, response_format=Choice) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        assert final.choices[0].message.parsed == Choice(color="blue")

    serve(work, Completion('{"color": "blue"}'))


def test_texts_are_continued() -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.completions.create(model="tiny", prompt="The sky is", max_tokens=2)
        assert place.ask == InnerRequest("completions", "tiny", text="The sky is", sampling={"max_tokens": 2})
        assert (reply.choices[0].text, reply.choices[0].finish_reason) == (" blue", "length")
        stream = await place.openai.completions.create(
            model="tiny", prompt=["The sky is"], stream=True, stream_options={"include_usage": True}
        )
        found = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].text for chunk in found[:-1]) == " blue"
        assert found[-1].usage.completion_tokens == 2

    serve(work, Completion(" blue", finish_reason="length", output_tokens=2))


def test_the_client_that_is_not_asynchronous() -> None:
    def ask(url: str, key: str) -> tuple[str, str]:
        with openai.OpenAI(base_url=url, api_key=key) as client:
            whole = client.chat.completions.create(model="tiny", messages=HELLO)
            stream = client.chat.completions.create(model="tiny", messages=HELLO, stream=True)
            return whole.choices[0].message.content, "".join(chunk.choices[0].delta.content or "" for chunk in stream)

    async def work(place: Place) -> None:
        assert await asyncio.to_thread(ask, place.access.base_url, place.access.api_key) == ("blue", "blue")

    serve(work)


@pytest.mark.parametrize(
    ("said", "shown"),
    [("stop", "stop"), ("end_turn", "stop"), (None, "stop"), ("length", "length"), ("max_tokens", "length"),
     ("content_filter", "content_filter")],
)  # fmt: skip
def test_the_end_of_a_reply_has_openais_word(said: str, shown: str) -> None:
    async def work(place: Place) -> None:
        reply = await place.openai.chat.completions.create(model="tiny", messages=HELLO)
        assert reply.choices[0].finish_reason == shown

    serve(work, Completion("x", finish_reason=said))


def test_ids_are_those_of_the_call_whatever_process_answers() -> None:
    """A run that resumes gives a program the same replies again, ids of calls included."""
    seen = []

    async def work(place: Place) -> None:
        reply = await place.openai.chat.completions.create(model="tiny", messages=HELLO, tools=[TOOL])
        seen.append((reply.id, [call.id for call in reply.choices[0].message.tool_calls]))

    for _ in range(2):
        call = {"id": "", "name": "look", "arguments": "{}"}
        serve(work, Completion("", tool_calls=[call], request_digest="ab" * 32))
    assert seen == [("chatcmpl-" + "ab" * 12, ["call_" + "ab" * 12 + "0"])] * 2


def test_the_models_of_a_seat() -> None:
    async def work(place: Place) -> None:
        assert [one.id async for one in place.openai.models.list()] == ["tiny", "org/big"]
        assert (await place.openai.models.retrieve("org/big")).id == "org/big"
        with pytest.raises(openai.NotFoundError, match="Did you mean tiny"):
            await place.openai.models.retrieve("tinny")

    serve(work, accepts=["org/big"])


def test_events_keep_the_connection_alive_while_the_model_works() -> None:
    async def work(place: Place) -> None:
        waits = asyncio.Event()

        async def slow(ask: InnerRequest) -> Completion:
            await waits.wait()
            return Completion("at last")

        place.model.said = [slow]
        reader, writer = await place.connect()
        writer.write(place.request("/chat/completions", {"model": "tiny", "messages": HELLO, "stream": True}))
        await reader.readuntil(b"\r\n\r\n")
        for _ in range(3):
            await reader.readuntil(b": waiting for the model\n\n")
        waits.set()
        rest = await reader.readuntil(b"[DONE]\n\n")
        assert b"at last" in rest

    serve(work, keep_alive=0.01)
