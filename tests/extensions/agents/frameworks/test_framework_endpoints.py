"""LangChain's model of OpenAI speaks to the endpoint of a seat: tools, structured replies, events, both of its APIs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel

from harness.api import Completion, InnerRequest
from tests.helpers.endpoint_seats import Place, serve

pytestmark = pytest.mark.agents


class Choice(BaseModel):
    """A color."""

    color: str


async def think(ask: InnerRequest) -> Completion:
    """Call the tool once, then say what it returned."""
    last = ask.messages[-1]
    if last["role"] == "tool":
        return Completion(f"I saw {last['content']}.", input_tokens=7, output_tokens=3)
    if ask.constraint:
        return Completion('{"color": "blue"}')
    if ask.tools:
        call = {"id": "c1", "name": ask.tools[0]["name"], "arguments": '{"place": "x"}'}
        return Completion("", tool_calls=[call], finish_reason="tool_calls")
    return Completion("blue")


@pytest.mark.parametrize("responses", [False, True])
def test_langchain_plays_at_an_endpoint(responses: bool) -> None:
    messages, openai = import_module("langchain_core.messages"), import_module("langchain_openai")

    def look(place: str) -> str:
        """Look at a place."""
        return f"seen {place}"

    async def work(place: Place) -> None:
        access = place.access
        model = openai.ChatOpenAI(
            model="tiny", base_url=access.base_url, api_key=access.api_key, use_responses_api=responses
        )
        with_tools = model.bind_tools([look])
        called = await with_tools.ainvoke("hello")
        assert called.tool_calls == [{"name": "look", "args": {"place": "x"}, "id": "c1", "type": "tool_call"}]
        ended: Any = await with_tools.ainvoke(
            [messages.HumanMessage("hello"), called, messages.ToolMessage("it", tool_call_id="c1")]
        )
        assert ended.text == "I saw it."
        assert ended.usage_metadata["total_tokens"] == 10
        assert "".join([chunk.text async for chunk in model.astream("hello")]) == "blue"
        assert (await model.with_structured_output(Choice).ainvoke("hello")) == Choice(color="blue")
        await model.bind_tools([look], tool_choice="look").ainvoke("hello")
        assert place.ask.tool_choice == {"name": "look"}
        await model.root_async_client.close()

    serve(work, think)
