"""`/v1/messages`, asked by Anthropic's own client, and as Claude Code asks it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import anthropic
import pytest

from harness.api import Completion, ContextLengthError, InnerRequest, LimitReachedError, RequestError
from tests.helpers.endpoint_seats import HELLO, Place, serve

TOOL: Any = {
    "name": "look",
    "description": "Look at a place.",
    "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}},
}
CALLED = Completion(
    "I look.",
    reasoning="hm",
    finish_reason="tool_calls",
    input_tokens=30,
    output_tokens=9,
    cached_tokens=20,
    tool_calls=[
        {"id": "a1", "name": "look", "arguments": '{"place": "x"}'},
        {"id": "a2", "name": "look", "arguments": "{no JSON"},
    ],
)


def test_the_loop_of_tools_of_anthropics_own_client_ends() -> None:
    async def look(place: str) -> str:
        """Look at a place."""
        return f"{place} is blue"

    async def work(place: Place) -> None:
        tools = [anthropic.beta_async_tool(look)]
        runner = place.anthropic.beta.messages.tool_runner(model="tiny", max_tokens=50, tools=tools, messages=HELLO)
        assert (await runner.until_done()).content[-1].text == "done"
        assert place.ask.messages[2] == {"role": "tool", "content": "x is blue", "tool_call_id": "a1"}
        body = {"model": "tiny", "max_tokens": 50, "messages": HELLO, "thread": {"type": "create"}}
        status, refused = await place.post("/messages", body)
        assert status == 400 and "send the whole one" in refused["error"]["message"]
        details = {"error_code": "thread_unsupported_request", "unsupported": []}  # so that clients go on without
        assert refused["error"]["details"] == details

    called = replace(CALLED, tool_calls=CALLED.tool_calls[:1] if CALLED.tool_calls else None)
    serve(work, called, Completion("done", finish_reason="stop"))


def test_a_message_and_the_results_of_its_calls() -> None:
    async def work(place: Place) -> None:
        create = place.anthropic.messages.create
        first = await create(
            model="tiny", max_tokens=50, system="Be brief.", messages=HELLO, tools=[TOOL], stop_sequences=["END"],
            tool_choice={"type": "any"}, extra_body={"temperature": 0.5, "top_k": 3},
        )  # fmt: skip
        assert place.ask == InnerRequest(
            "messages",
            "tiny",
            ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}),
            tools=({"name": "look", "description": "Look at a place.", "parameters": TOOL["input_schema"]},),
            tool_choice="required",
            sampling={"max_tokens": 50, "stop": ["END"], "temperature": 0.5, "top_k": 3},
        )
        assert [block.type for block in first.content] == ["text", "tool_use", "tool_use"]
        assert [block.input for block in first.content[1:]] == [{"place": "x"}, {}]
        assert (first.stop_reason, first.role) == ("tool_use", "assistant")
        usage = first.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (10, 20, 9)
        results: list[Any] = [
            {"type": "tool_result", "tool_use_id": "a1", "content": [{"type": "text", "text": "seen"}]},
            {"type": "tool_result", "tool_use_id": "a2", "content": "no", "is_error": True},
            {"type": "text", "text": "Go on."},
        ]
        messages: list[Any] = [*HELLO, {"role": "assistant", "content": first.content}]
        await create(
            model="tiny", max_tokens=50, messages=[*messages, {"role": "user", "content": results}], tools=[TOOL],
            tool_choice={"type": "tool", "name": "look"},
        )  # fmt: skip
        _, assistant, *found = place.ask.messages
        assert place.ask.tool_choice == {"name": "look"}
        assert [call["function"]["arguments"] for call in assistant["tool_calls"]] == ['{"place": "x"}', "{}"]
        assert found == [
            {"role": "tool", "content": "seen", "tool_call_id": "a1"},
            {"role": "tool", "content": "Error: no", "tool_call_id": "a2"},
            {"role": "user", "content": "Go on."},
        ]
        single = await create(
            model="tiny", max_tokens=50, messages=HELLO, tools=[TOOL],
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        )  # fmt: skip
        assert [block.id for block in single.content if block.type == "tool_use"] == ["a1"]

    serve(work, CALLED)


def test_messages_stream() -> None:
    async def work(place: Place) -> None:
        ask: Any = {"model": "tiny", "max_tokens": 50, "messages": HELLO, "tools": [TOOL]}
        stream = await place.anthropic.messages.create(**ask, stream=True)
        block = ["content_block_start", "content_block_delta", "content_block_stop"]
        assert [event.type async for event in stream] == [
            "message_start", *block * 3, "message_delta", "message_stop",
        ]  # fmt: skip
        async with place.anthropic.messages.stream(**ask, thinking={"type": "enabled", "budget_tokens": 1024}) as again:
            text = "".join([text async for text in again.text_stream])
            final = await again.get_final_message()
        assert text == "I look."
        assert [block.type for block in final.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert final.content[0].thinking == "hm"
        assert final.content[2].input == {"place": "x"}
        assert (final.stop_reason, final.usage.output_tokens) == ("tool_use", 9)

    serve(work, CALLED)


async def look(place: str) -> str:
    """Look at a place."""
    return f"seen {place}"


def test_the_tool_runner_of_the_client_goes_on_without_threads() -> None:
    """It asks for a thread first, and takes from the refusal that it is to send whole conversations."""
    call = {"id": "a1", "name": "look", "arguments": '{"place": "x"}'}

    async def work(place: Place) -> None:
        runner = place.anthropic.beta.messages.tool_runner(
            model="tiny",
            max_tokens=50,
            tools=[anthropic.beta_async_tool(look)],
            messages=[{"role": "user", "content": "hello"}],
        )
        last = await runner.until_done()
        assert [block.text for block in last.content] == ["done"]
        assert [message["role"] for message in place.ask.messages] == ["user", "assistant", "tool"]
        assert place.ask.messages[-1]["content"] == "seen x"

    serve(work, replace(CALLED, tool_calls=[call]), Completion("done", finish_reason="stop"))


def test_the_client_that_is_not_asynchronous() -> None:
    def ask(url: str, key: str) -> tuple[str, str]:
        with anthropic.Anthropic(base_url=url, api_key=key) as client:
            whole = client.messages.create(model="tiny", max_tokens=5, messages=HELLO)
            with client.messages.stream(model="tiny", max_tokens=5, messages=HELLO) as stream:
                return whole.content[0].text, "".join(stream.text_stream)

    async def work(place: Place) -> None:
        access = place.access
        assert await asyncio.to_thread(ask, access.anthropic_base_url, access.api_key) == ("blue", "blue")

    serve(work)


def test_the_models_of_a_seat() -> None:
    async def work(place: Place) -> None:
        assert [one.id async for one in place.anthropic.models.list()] == ["tiny", "claude-x"]
        assert (await place.anthropic.models.retrieve("claude-x")).display_name == "claude-x"

    serve(work, accepts=["claude-x"])


CLAUDE_CODE: dict[str, Any] = {
    "model": "tiny",
    "max_tokens": 32000,
    "system": [
        {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "Be concise.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                {"type": "text", "text": "Play.", "cache_control": {"type": "ephemeral"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "tool_use", "id": "a1", "name": "look", "input": {"place": "x"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a1", "content": "seen"}]},
    ],
    "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}],
    "metadata": {"user_id": "user_1"},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
    "stream": True,
}


def test_what_claude_code_sends() -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        key = {"Authorization": "", "x_api_key": place.access.api_key, "anthropic_version": "2023-06-01"}
        writer.write(place.request("/messages?beta=true", CLAUDE_CODE, anthropic_beta="claude-code-20250219", **key))
        await reader.readuntil(b"event: message_stop\n")
        assert list(place.ask.messages) == [
            {"role": "system", "content": "You are Claude Code.\nBe concise."},
            {"role": "user", "content": "<system-reminder>x</system-reminder>\nPlay."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "a1", "type": "function", "function": {"name": "look", "arguments": '{"place": "x"}'}}
                ],
            },
            {"role": "tool", "content": "seen", "tool_call_id": "a1"},
        ]
        status, counted = await place.post("/messages/count_tokens?beta=true", CLAUDE_CODE)
        assert status == 200
        assert counted["input_tokens"] > 50
        assert len(place.model.asks) == 1

    serve(work, CALLED)


SHOWN = {"type": "tool_result", "tool_use_id": "a1", "content": [{"type": "image"}]}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"messages": [*HELLO, {"role": "assistant", "content": "The color is"}]}, "the last message must be the user"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "only text"),
        ({"messages": [{"role": "user", "content": [SHOWN]}]}, "only text"),
        ({"messages": []}, "at least one message"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "only functions are supported"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "lok"}}, "Did you mean look"),
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers is not supported"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "clear_tool_uses"),
        ({"max_token": 3}, "Did you mean max_tokens"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"system": [{"type": "image"}]}, "only text"),
        ({"tool_choice": "auto"}, "tool_choice must be an object"),
    ],
)  # fmt: skip
def test_what_would_change_the_meaning_is_refused(more: dict[str, Any], what: str) -> None:
    async def work(place: Place) -> None:
        body = {"model": "tiny", "max_tokens": 5, "messages": HELLO, **more}
        status, error = await place.post("/messages", body)
        assert (status, error["type"], error["error"]["type"]) == (400, "error", "invalid_request_error")
        assert what in error["error"]["message"]
        assert place.model.asks == []

    serve(work)


@pytest.mark.parametrize(
    ("said", "kind", "what"),
    [
        (LimitReachedError("10 calls of 10"), anthropic.RateLimitError, "10 calls of 10"),
        (ContextLengthError("9 tokens of 5"), anthropic.BadRequestError, "prompt is too long"),
        (RequestError("no server"), anthropic.InternalServerError, "no server"),
    ],
)
def test_errors_are_not_asked_again(said: Any, kind: Any, what: str) -> None:
    async def work(place: Place) -> None:
        for stream in (False, True):
            with pytest.raises(kind, match=what):
                await place.anthropic.messages.create(model="tiny", max_tokens=5, messages=HELLO, stream=stream)
        assert len(place.model.asks) == 2

    serve(work, said)


def test_an_error_after_the_first_ping_is_an_event() -> None:
    async def work(place: Place) -> None:
        async def fail(ask: InnerRequest) -> Completion:
            await heard.wait()
            raise LimitReachedError("10 seconds of 10")

        heard = asyncio.Event()
        place.model.said = [fail]
        reader, writer = await place.connect()
        body = {"model": "tiny", "max_tokens": 5, "messages": HELLO, "stream": True}
        writer.write(place.request("/messages", body))
        await reader.readuntil(b'event: ping\ndata: {"type": "ping"}\n\n')
        heard.set()
        await reader.readuntil(b"event: error\n")
        assert b"10 seconds of 10" in await reader.readuntil(b"\n\n")

    serve(work, keep_alive=0.01)
