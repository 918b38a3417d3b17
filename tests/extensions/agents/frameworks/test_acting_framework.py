"""A LangGraph agent plays seats by itself: its tools come from the seat's MCP server, its model from the run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.storage.inner_calls import InnerCallIndex

pytestmark = pytest.mark.agents
AGENT = '''
"""A graph of two nodes: the model thinks with the tools of the turn, and the seat carries its calls out."""

import httpx2
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def play(mcp_url, mcp_token, base_url, api_key, model):
    secret = {"Authorization": f"Bearer {mcp_token}"}
    llm = ChatOpenAI(model=model, base_url=base_url, api_key=api_key)
    async with httpx2.AsyncClient(headers=secret, timeout=60) as http:
        async with Client(streamable_http_client(mcp_url, http_client=http)) as seat:

            async def think(state):
                listed = (await seat.list_tools()).tools
                tools = [{"type": "function", "function": {"name": tool.name, "description": tool.description or "",
                          "parameters": tool.input_schema}} for tool in listed]
                return {"messages": [await llm.bind_tools(tools).ainvoke(state["messages"])]}

            async def act(state):
                said = []
                for call in state["messages"][-1].tool_calls:
                    done = await seat.call_tool(call["name"], call["args"])
                    text = "\\n".join(part.text for part in done.content)
                    said.append(ToolMessage(text, tool_call_id=call["id"]))
                return {"messages": said}

            graph = StateGraph(MessagesState)
            graph.add_node("think", think)
            graph.add_node("act", act)
            graph.add_edge(START, "think")
            graph.add_edge("act", "think")
            graph.add_conditional_edges("think", lambda state: "act" if state["messages"][-1].tool_calls else END)
            rules = SystemMessage("Call wait_for_turn until the episode is over; make your moves with the other tools.")
            await graph.compile().ainvoke({"messages": [rules]}, {"recursion_limit": 500})
'''
THINKER = '''
"""A model that stands in: it waits for its turns, and fills in what the tools ask for."""

import json

from harness.api import CallsTools, Completion, Engine, plugin


@plugin
class Thinker(Engine, CallsTools):
    """Calls one tool after another."""

    @property
    def model(self):
        return "thinker"

    async def complete(self, request):
        last = request.thread.messages[-1]
        text = last["content"] if last["role"] == "tool" else ""
        tools = {tool["name"]: tool["parameters"]["properties"] for tool in request.tools}
        name, given = "wait_for_turn", {}
        if "The episode is over" in text:
            return Completion("That was it.", input_tokens=5, output_tokens=3, finish_reason="stop")
        if "Your turn: " in text:
            name = next(name for name in ("submit_result", "reply") if name in tools)
            given = {key: one["enum"][0] if "enum" in one else "hello" for key, one in tools[name].items()}
        elif text.startswith("noted: "):
            name = "end_turn"
        call = {"id": f"c{len(request.thread.messages)}", "name": name, "arguments": json.dumps(given)}
        return Completion("", tool_calls=[call], input_tokens=5, output_tokens=3, finish_reason="tool_calls")
'''
SPECS = {
    "agentsnet_quick": ("matrix.problem=[coloring]", "matrix.graphs=[small_world]"),
    "silo_quick": ("matrix.agents=[2]", "matrix.problem=[global_maximum]", "protocol.max_rounds=4"),
}


@pytest.mark.parametrize("spec", SPECS)
def test_a_langgraph_agent_plays_through_tools(spec: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "registry" / "engines").mkdir(parents=True)
    (tmp_path / "registry" / "engines" / "thinker.py").write_text(THINKER)
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (tmp_path / "graph_agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "graph_agent", raising=False)
    fields: dict[str, Any] = {"call": "graph_agent:play", "interface": "mcp", "inner": "thinker", "label": "graph"}
    done = harness.evaluate(
        spec, "agent", model_args=fields, overrides=SPECS[spec], limit=1, output_path=tmp_path / "run"
    )
    assert done.scores and not done.failed
    assert all(score.numbers["parse_failures"] == 0 == score.numbers["engine_errors"] for score in done.scores)
    moves = [line for _, line in storage.lines(tmp_path / "run" / storage.JOURNAL) if line["k"] == "move"]
    assert moves and all(line["inner"]["calls"] >= 2 for line in moves)
    index = InnerCallIndex([tmp_path / "run" / storage.JOURNAL])
    calls = [call for episode in index.episodes() for call in index.of(episode)]
    assert len(calls) == sum(line["inner"]["calls"] for line in moves)
    assert all({"name", "description", "parameters"} <= tool.keys() for tool in calls[-1].request.tools)
