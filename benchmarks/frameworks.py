"""What agents of frameworks cost beside the harness: `python benchmarks/frameworks.py [--smoke]`.

It needs the packages of tests/extensions/agents/frameworks/requirements.txt. Agents of docs/how-to/agent_frameworks.md
play AgentsNet's consensus among 16 agents for 10 turns, each run in a process of its own, against a server in another
one that answers at once. `CPU ms a call` is that of the process with the agents; an agent that answers without a model
shows what the harness takes of it. `characters read` is what the model reads for a reply, conversation, tools and all.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "how-to" / "agent_frameworks.md"
PACKAGES = {
    "langgraph_agent": "langgraph",
    "smolagents_agent": "smolagents",
    "openai_agents_agent": "openai-agents",
    "ag2_agent": "ag2",
}
REPLY = "I wait. " * 25 + "{} ### Final Answer ### 0"
AT_ONCE = f"""
class Agent:
    def reset(self, messages):
        self.read = sum(len(m["content"]) for m in messages)

    def reply(self, message):
        self.read += len(message)
        read, self.read = self.read, self.read + {len(REPLY)}
        return {{"text": {REPLY!r}, "input_tokens": read}}
"""


def main() -> None:
    if "--serve" in sys.argv:
        serve()
    elif "--work" in sys.argv:
        work(sys.argv[-1], "--smoke" in sys.argv)
    else:
        table()


def table() -> None:
    files = dict(re.findall(r"<!-- plugin: (\w+)\.py -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    rows = []
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, __file__, "--serve"], **pipes) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for name, code in {"at_once": AT_ONCE, **{name: files[name] for name in PACKAGES}}.items():
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / f"{name}.py").write_text(code)
                environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": "fake"}
                environment["PYTHONPATH"] = str(ROOT)
                command = [sys.executable, __file__, *sys.argv[1:], "--work", name]
                done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
            rows.append({"agent": label(name), **json.loads(done.stdout.splitlines()[-1])})
    print(tabulate(rows, headers="keys"))


def label(name: str) -> str:
    return f"{PACKAGES[name]} {importlib.metadata.version(PACKAGES[name])}" if name in PACKAGES else "answers at once"


def work(name: str, smoke: bool) -> None:
    """In a process of its own: one run; a shorter one before it, so that imports and connections are left out."""
    import harness

    spec: dict[str, Any] = {
        "name": "one",
        "extends": "agentsnet",
        "task": {"graphs": "small_world", "size": 4 if smoke else 16},
        "protocol": {"rounds": 3 if smoke else 9},
        "matrix": {"problem": ["consensus"], "graphs": None, "size": None},
        "metrics": ["calls", {"use": "tokens", "kind": "input", "name": "read"}, "engine_errors"],
        "headline": {"metric": "calls"},
        "tables": [],
    }
    arguments = {"call": f"{name}:Agent"}
    harness.evaluate(spec, "agent", model_args=arguments, limit=1, output_path="warm")
    began, wall = time.process_time(), time.perf_counter()
    run = harness.evaluate(spec, "agent", model_args=arguments, limit=1, repeats=1 if smoke else 10, output_path="run")
    cpu, wall = time.process_time() - began, time.perf_counter() - wall
    calls, read, errors = (sum(s.number(m) or 0 for s in run.scores) for m in ("calls", "read", "engine_errors"))
    assert not errors
    row = {"calls": round(calls), "CPU ms a call": round(1000 * cpu / calls, 2), "calls/s": round(calls / wall)}
    print(json.dumps({**row, "characters read": round(read / calls)}))


def serve() -> None:
    """Answer at once; count characters in place of tokens. Ends with its standard input."""
    sys.path.insert(0, str(ROOT))
    from tests.extensions.agents.frameworks.minds import call, text_of
    from tests.helpers.fake_openai import Body, FakeOpenAI, chat

    def answer(body: Body) -> Body:
        read = sum(len(text_of(message)) for message in body["messages"]) + len(json.dumps(body.get("tools", "")))
        is_last = "final_answer" in json.dumps(body.get("tools", ""))
        usage = {"prompt_tokens": read, "completion_tokens": 0, "total_tokens": read}
        return chat(call("final_answer", answer=REPLY) if is_last else REPLY, usage)

    with FakeOpenAI(answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
