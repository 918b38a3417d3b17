"""What stands in for the model behind a framework's agent: it plays two games from what the agent sends it.

Nothing of a game is kept here. So a game is solved only if the framework sends its agent's whole conversation.
"""

import json
import re
from typing import Any

Body = dict[str, Any]


def think(body: Body) -> str | Body:
    """The model's message: a text, or a call of one of the tools that the framework offers."""
    messages = [(message["role"], text_of(message)) for message in body["messages"]]
    whole = "\n".join(text for _, text in messages)
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    if "Your Local Data" in whole:
        numbers = json.loads(re.search(r"Your Local Data:\n(\[.*?\])", whole)[1])
        if "extremes" in tools and f"{max(numbers)}" not in whole.replace(json.dumps(numbers), ""):
            return call("extremes", numbers=numbers)
        reply = maximum(numbers, whole)
    else:
        latest = next(text for role, text in reversed(messages) if role == "user")
        reply = coloring(whole, latest)
    return call("final_answer", answer=reply) if "final_answer" in tools else reply


def coloring(whole: str, latest: str) -> str:
    """AgentsNet: the lowest group that no neighbor with a smaller name has taken (greedy, in the order of names)."""
    name = re.search(r"Your name is (\w+)\.", whole)[1]
    letters = re.findall(r"Message from (\w+):\s+group (\d+)", latest)
    taken = {int(group) for sender, group in letters if sender < name}
    group = next(g for g in range(1, 99) if g not in taken)
    if "### Final Answer ###" in latest:
        return f"My neighbors have {sorted(taken)}.\n### Final Answer ###\nGroup {group}"
    neighbors = re.search(r"Your neighbors are: (.+?)\.", latest)[1].split(", ")
    return json.dumps(dict.fromkeys(neighbors, f"group {group}"))


def maximum(numbers: list[int], whole: str) -> str:
    """SILO: let the others know the own maximum; submit when all of theirs are here."""
    me, n = map(
        int, re.search(r"You are Agent (\d+) in a multi-agent system consisting of (\d+) agents", whole).groups()
    )
    others = [i for i in range(n) if i != me]
    found = re.findall(r"- (?:Agent-|read_file max/)(\d+): my maximum is (-?\d+)", whole)
    heard = {int(i): int(value) for i, value in found}
    if len(heard) == len(others):
        return f"<submit_result>{max(*heard.values(), *numbers)}</submit_result>"
    news = f"my maximum is {max(numbers)}"
    has_files = "<write_file" in whole
    if f">{news}<" in whole:
        return "\n".join(f'<read_file path="max/{i}"/>' for i in others) if has_files else "<wait/>"
    if has_files:
        return f'<write_file path="max/{me}">{news}</write_file>\n<wait/>'
    if "<broadcast_message>" in whole:
        return f"<broadcast_message>{news}</broadcast_message>\n<wait/>"
    return "\n".join([*(f'<send_message target_id="{i}">{news}</send_message>' for i in others), "<wait/>"])


def call(tool: str, **arguments: Any) -> Body:
    """A message that calls a tool."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    calls = [{"id": f"call_{tool}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def text_of(message: Body) -> str:
    """A message's text, also where it comes in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)
