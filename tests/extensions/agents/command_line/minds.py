"""What stands in for the model behind a command-line agent: it uses the agent's shell, and plays two games."""

import json
import re
from typing import Any

from tests.extensions.agents.frameworks.minds import call, coloring, text_of

Body = dict[str, Any]
SHELLS = {"exec_command": "cmd", "Bash": "command", "run_shell_command": "command", "bash": "command"}
"""Tools that run a line in a shell, in Codex, Claude Code, Qwen Code and mini-swe-agent, and where the line goes."""


def think(body: Body) -> str | Body:
    """The model's message: a text, or a call of one of the tools that the agent offers."""
    messages = [(message["role"], text_of(message)) for message in body["messages"]]
    whole = "\n".join(text for role, text in messages if role in ("system", "user"))
    asked = next(text for role, text in reversed(messages) if role == "user" and is_asked(text))
    tools = [tool["function"]["name"] for tool in body.get("tools", [])]
    last_role, last = messages[-1]

    def shell(line: str) -> Body:
        name = next(name for name in SHELLS if name in tools)
        message = call(name, **{SHELLS[name]: line})
        message["tool_calls"][0]["id"] = f"call_{len(messages)}"
        return message

    if sum_ := re.search(r"What is ([\d +*-]+)\?", asked):
        if last_role != "tool":
            return shell(f"echo $(({sum_[1]}))")
        reply = f"The shell says so. The answer is {re.findall(r'-?[0-9]+', output_of(last))[-1]}."
    else:
        reply = coloring(whole, asked.rpartition("=== You were sent ===")[2])
    if tools == ["bash"]:  # mini-swe-agent has no other way to answer
        return shell(f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat <<'REPLY'\n{reply}\nREPLY")
    return reply


def is_asked(text: str) -> bool:
    """Whether it is of the game, and no reminder of the agent's own."""
    return bool(re.search(r"What is [\d +*-]+\?|Your neighbors are|Message from|### Final Answer ###", text))


def output_of(result: str) -> str:
    """What a command printed, in the words of an agent's tool."""
    if result.lstrip().startswith("{"):
        return str(json.loads(result)["output"])
    found = re.search(r"Output:\s*(-?\d+)", result)
    return found[1] if found else result
