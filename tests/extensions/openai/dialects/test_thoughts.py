"""Models that think before they call tools, at servers that want the thought back: to the end, live and resumed.

What they refuse: github.com/QwenLM/qwen-code/issues/3724 and github.com/the-open-agent/openagent/issues/2206
(DeepSeek), github.com/agentscope-ai/QwenPaw/issues/433 (Kimi), github.com/google-gemini/gemini-cli/issues/26682
(Gemini), github.com/can1357/oh-my-pi/issues/787 (OpenRouter).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.cli import main
from harness.extensions.openai.wire import read_completion
from tests.extensions.openai.dialects.play import ENGINE, errors, report
from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, status
from tests.helpers.journals import as_killed

DEBATE = (
    "reply_via=tool_calls", "prompts=panels/standard", "protocol={use: debate, agents: 2, rounds: 2}",
    "matrix={terms: [4, 5]}",
)  # fmt: skip
SILO = (
    "matrix={protocol: [{name: P2P, channel: mailbox}], agents: [2], problem: [global_maximum], "
    "form: [{name: tools, via: tool_calls}]}",
)


@dataclass
class Dialect:
    """How a server gives a thought, and what it says of a conversation that lacks it.

    Attributes:
        of_message: a thought → the fields of the message with it; "content" replaces its content.
        of_call: the same for its first call.
        refusal: of a call without what it came with.
    """

    refusal: str
    of_message: Callable[[str], Body] = lambda thought: {}
    of_call: Callable[[str], Body] = lambda thought: {}


DIALECTS = {
    "DeepSeek": Dialect(
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        lambda thought: {"reasoning_content": thought, "content": ""},
    ),
    "Kimi": Dialect(
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        lambda thought: {"reasoning_content": thought, "content": None},
    ),
    "OpenRouter": Dialect(
        "Provider returned error: reasoning_details are missing",
        lambda thought: {
            "reasoning": thought,
            "reasoning_details": [{"type": "reasoning.encrypted", "data": thought[::-1], "id": None, "index": 0}],
        },
    ),
    "Gemini": Dialect(
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly, and missing thought_signature may lead to degraded model performance.",
        of_call=lambda thought: {"extra_content": {"google": {"thought_signature": thought}}},
    ),
    "LiteLLM": Dialect(
        "thought_signature is missing",
        lambda thought: {"thinking_blocks": [{"type": "thinking", "thinking": thought, "signature": "s\ud800"}]},
        lambda thought: {"function": {"provider_specific_fields": {"thought_signature": thought}}},
    ),
    "MiniMax": Dialect(
        "the thinking of the last turn is missing",
        lambda thought: {"content": f"<think>\n{thought}\n</think>\n\nI call."},
    ),
}


class Thinker:
    """A model that thinks before each reply; give `answer` and `faults` to a `FakeOpenAI`.

    Attributes:
        given: id of a call → its message, as the server sent it.
        asked: the conversations that it answered, in order: each thought names its own by its number.
        refused: how many conversations lacked a thought.
    """

    def __init__(self, dialect: Dialect, name: str = "A") -> None:
        self.dialect, self.name = dialect, name
        self.given: dict[str, Body] = {}
        self.asked: list[list[Body]] = []
        self.refused = 0

    def answer(self, body: Body) -> Body:
        thought = f"{self.name}'s THOUGHT no. {len(self.asked)}."
        self.asked.append(body["messages"])
        called = [one["function"] for one in body.get("tools", ())]
        if not called:
            fields = self.dialect.of_message(thought)
            content = str(fields.get("content") or "").replace("I call.", "") + "The answer is 7."
            return chat({"role": "assistant", **fields, "content": content})
        says = [one for one in called if one["name"] in ("reply", "send_message")] or called
        last = "submit_result" if sum(one["role"] == "assistant" for one in body["messages"]) > 1 else says[0]["name"]
        tool = next((one for one in called if one["name"] == last), says[0])
        number = len(self.given)
        call = {"id": f"call_{number}", "type": "function", "index": 0}
        function = {"name": tool["name"], "arguments": json.dumps(arguments(tool["parameters"]))}
        extra = self.dialect.of_call(thought)
        call |= {**extra, "function": {**function, **extra.get("function", {})}}
        message = {"role": "assistant", "content": None, **self.dialect.of_message(thought), "tool_calls": [call]}
        self.given[f"call_{number}"] = message
        return chat(message, finish_reason="tool_calls")

    def faults(self, body: Body) -> Fault | None:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                sent = self.given[call["id"]]
                own = {name: value for name, value in sent.items() if name not in ("role", "content", "tool_calls")}
                if "content" in sent and "THOUGHT" in str(sent["content"]):
                    own["content"] = sent["content"]
                if encoded(call) != encoded({k: v for k, v in sent["tool_calls"][0].items() if k != "index"}) or any(
                    encoded(message.get(name)) != encoded(value) for name, value in own.items()
                ):
                    self.refused += 1
                    return status(400, self.dialect.refusal)
        return None

    def thoughts(self, bodies: list[Body]) -> list[str]:
        """The messages in which there are thoughts; each is a reply, in the conversation in which it was thought."""
        found = []
        for body in bodies:
            for at, message in enumerate(body["messages"]):
                text = encoded(message)
                numbers = {int(one) for one in re.findall(r"THOUGHT no\. (\d+)", f"{text} {text[::-1]}")}
                found += [text] * bool(numbers)
                for number in numbers:
                    assert message["role"] == "assistant" and self.asked[number] == body["messages"][:at], text
        return found


def encoded(value: Any) -> str:
    """As JSON without lone surrogates, which no request can hold."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode(errors="replace").decode()


def arguments(schema: Body) -> Body:
    """Something for each argument."""
    values = {"integer": 7, "number": 7, "string": "7"}
    said = {name: one.get("enum", [values.get(one.get("type"), "7")])[0] for name, one in schema["properties"].items()}
    return {name: "Agent 1" if name == "target_id" else value for name, value in said.items()}


def play(folder: Path, server: FakeOpenAI, spec: str, changes: tuple[str, ...], **options: Any) -> harness.Run:
    engine = {**ENGINE, "base_url": server.url, **options.pop("engine", {})}
    return harness.evaluate(
        spec, "openai", model_args=engine, output_path=folder, overrides=changes, **{"limit": 1, **options}
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(("spec", "changes"), [("arithmetic", DEBATE), ("silo_calls", SILO)], ids=["debate", "silo"])
def test_a_spec_with_tools_plays_to_its_end(tmp_path: Path, name: str, spec: str, changes: tuple[str, ...]) -> None:
    model = Thinker(DIALECTS[name])
    with FakeOpenAI(model.answer, faults=model.faults) as server:
        done = play(tmp_path / "run", server, spec, changes)
        journal = tmp_path / "run" / "journal.jsonl"
        lines, asked = journal.read_bytes().splitlines(keepends=True), len(server.bodies)
        assert any("tool_calls" in one for body in server.bodies for one in body["messages"]), "more than one turn"
        journal.write_bytes(b"".join(lines[: len(lines) // 2]))
        as_killed(tmp_path / "run")
        (tmp_path / "run" / "scores.jsonl").unlink()
        again = play(tmp_path / "run", server, spec, changes)
        assert asked < len(server.bodies) < 2 * asked, "what was recorded is not asked again"
    assert errors(done) == errors(again) == [] and model.refused == 0
    assert report(again)["retries"] == report(again)["failures"] == 0
    assert model.thoughts(server.bodies)
    turns = list(again.turns())
    assert "THOUGHT" not in json.dumps([turn["reply"] for turn in turns])
    assert name in ("Gemini", "LiteLLM") or "THOUGHT" in turns[0]["reasoning"]


KILLED = """
import sys
from tests.extensions.openai.dialects.test_thoughts import DEBATE, play
class Server: url = sys.argv[2]
from pathlib import Path
play(Path(sys.argv[1]), Server, "arithmetic", DEBATE)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_with_its_thoughts(tmp_path: Path) -> None:
    model = Thinker(DIALECTS["DeepSeek"])
    root, journal = Path(__file__).parents[4], tmp_path / "run" / "journal.jsonl"
    process: list[subprocess.Popen[bytes]] = []

    def answer(body: Body) -> Body:
        while len(model.asked) == 6 and process[0].poll() is None:  # once first turns are recorded
            if sum(1 for _ in storage.lines(journal)) >= 4:
                process[0].send_signal(signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process[0].wait(0.02)
        return model.answer(body)

    with FakeOpenAI(answer, faults=model.faults) as server:
        command = [sys.executable, "-c", KILLED, str(tmp_path / "run"), server.url]
        process += [subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(root)}, cwd=tmp_path)]
        assert process[0].wait() == -signal.SIGKILL
        done = play(tmp_path / "run", server, "arithmetic", DEBATE)
    assert errors(done) == [] and model.refused == 0 and len(model.thoughts(server.bodies[7:])) > 0


def test_answers_of_a_cache_have_their_thoughts(tmp_path: Path) -> None:
    model = Thinker(DIALECTS["Gemini"])
    more = (*DEBATE, "protocol.rounds=3")
    with FakeOpenAI(model.answer, faults=model.faults) as server:
        play(tmp_path / "short" / "run", server, "arithmetic", DEBATE, use_cache=tmp_path / "cache.sqlite")
        done = play(tmp_path / "long" / "run", server, "arithmetic", more, use_cache=tmp_path / "cache.sqlite")
    assert report(done)["cache_hits"] > 0 and report(done)["cache_misses"] > 0
    assert errors(done) == [] and model.refused == 0


def test_no_engine_gets_the_thoughts_of_another(tmp_path: Path) -> None:
    one, two = Thinker(DIALECTS["DeepSeek"], "A"), Thinker(DIALECTS["OpenRouter"], "B")
    with FakeOpenAI(one.answer, faults=one.faults) as first, FakeOpenAI(two.answer, faults=two.faults) as second:
        other = {"use": "openai", **ENGINE, "base_url": second.url}
        seats = (f"models={json.dumps({'other': other})}", "agents.seat={model: other, agents: [Agent-1]}")
        done = play(tmp_path / "run", first, "arithmetic", (*DEBATE, *seats))
    assert errors(done) == [] and one.refused == two.refused == 0
    for server, own, others in ((first, one, "B"), (second, two, "A")):
        assert own.thoughts(server.bodies) and f"{others}'s THOUGHT" not in encoded(server.bodies)


@pytest.mark.parametrize(("sends", "sent"), [("tools", 0), ("always", 1), ("never", 0)])
@pytest.mark.parametrize("name", ["DeepSeek", "MiniMax", "OpenRouter"])
def test_thoughts_of_texts_go_back_where_that_is_asked_for(tmp_path: Path, name: str, sends: str, sent: int) -> None:
    model = Thinker(DIALECTS[name])
    with FakeOpenAI(model.answer) as server:
        done = play(tmp_path / "run", server, "arithmetic", DEBATE[1:], engine={"send_reasoning": sends})
    assert bool(model.thoughts(server.bodies)) == bool(sent) and errors(done) == []
    assert done.meta["engine_args"]["model"]["send_reasoning"] == sends, "a part of what the run is"


@pytest.mark.parametrize(("name", "refused"), [("Gemini", False), ("DeepSeek", True)])
def test_calls_keep_their_own_fields_where_no_thought_goes_back(tmp_path: Path, name: str, refused: bool) -> None:
    model = Thinker(DIALECTS[name])
    options: dict[str, Any] = {"engine": {"send_reasoning": "never"}, "max_error_rate": 1}
    with FakeOpenAI(model.answer, faults=model.faults) as server:
        done = play(tmp_path / "run", server, "arithmetic", DEBATE, **options)
    assert bool(model.refused) == bool(errors(done)) == refused
    assert all("send_reasoning=tools sends it back" in error for error in errors(done))


TAKES_NONE = {
    "Groq": "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
    "'reasoning_content' is unsupported)]",
    "Cerebras": "messages.2.assistant.reasoning_content: property 'messages.2.assistant.reasoning_content' is "
    "unsupported",
    "Mistral": '[{"type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "reasoning_content"], "msg": '
    '"Extra inputs are not permitted"}]',
}


@pytest.mark.parametrize("server_words", TAKES_NONE)
def test_a_server_that_takes_no_thought_gets_none(tmp_path: Path, server_words: str) -> None:
    """github.com/janhq/jan/issues/8136, github.com/Kilo-Org/kilocode/issues/10375,
    github.com/charmbracelet/crush/issues/1590."""
    model = Thinker(DIALECTS["DeepSeek"])

    def refuse(body: Body) -> Fault | None:
        sent = any("reasoning_content" in message for message in body["messages"])
        return status(422 if server_words == "Mistral" else 400, TAKES_NONE[server_words]) if sent else None

    with FakeOpenAI(model.answer, faults=refuse) as server:
        done = play(tmp_path / "run", server, "arithmetic", DEBATE, max_concurrency=1)
    assert errors(done) == [] and report(done)["failures"] == 0
    assert sum(any("reasoning_content" in one for one in body["messages"]) for body in server.bodies) == 1


NO_NULL = {
    "OpenAI": "Invalid value for 'content': expected a string, got null.",
    "Pydantic": "[{'type': 'string_type', 'loc': ('body', 'messages', 2, 'content'), 'msg': 'Input should be "
    "a valid string', 'input': None}]",
    "a gateway": 'Invalid request error: expected string, received null at "params.messages[2].content"',
}
BLANK = "The text field in the ContentBlock object at messages.2.content.0 is blank. Add text to the text field."


@pytest.mark.parametrize("content", [None, "", "(no reply)"])
@pytest.mark.parametrize("server_words", NO_NULL)
def test_calls_alone_have_the_content_that_is_taken(tmp_path: Path, content: str | None, server_words: str) -> None:
    """github.com/docker/docker-agent/issues/63, github.com/TQZHR/grok2api/pull/41,
    github.com/Portkey-AI/gateway/issues/995, github.com/vercel/ai/pull/13538."""
    model = Thinker(DIALECTS["Gemini"])

    def refuse(body: Body) -> Fault | None:
        found = [one["content"] for one in body["messages"] if one["role"] == "assistant" and "tool_calls" in one]
        if None in found and content is not None:
            return status(400, NO_NULL[server_words])
        return status(400, BLANK) if "" in found and content != "" else model.faults(body)

    with FakeOpenAI(model.answer, faults=refuse) as server:
        done = play(tmp_path / "run", server, "arithmetic", DEBATE, max_concurrency=1)
    assert errors(done) == [] and report(done)["failures"] == 0
    assert [one["content"] for one in server.bodies[-1]["messages"] if "tool_calls" in one] == [content]


def test_a_resumed_conversation_has_the_same_empty_reply(tmp_path: Path) -> None:
    silent = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}

    def answer(body: Body) -> Body:
        return chat("The answer is 7.") if body["seed"] % 2 else chat("", silent)

    def refuse(body: Body) -> Fault | None:
        empty = any(one["role"] == "assistant" and not one["content"] for one in body["messages"])
        return status(400, "messages.1: all messages must have non-empty content") if empty else None

    with FakeOpenAI(answer, faults=refuse) as server:
        play(tmp_path / "run", server, "arithmetic", DEBATE[1:], limit=4)
        whole = {json.dumps(body, sort_keys=True) for body in server.bodies}
        journal = tmp_path / "run" / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[: len(lines) // 2]))
        as_killed(tmp_path / "run")
        (tmp_path / "run" / "scores.jsonl").unlink()
        before = len(server.bodies)
        again = play(tmp_path / "run", server, "arithmetic", DEBATE[1:], limit=4)
    later = {json.dumps(body, sort_keys=True) for body in server.bodies[before:]}
    filled = {one for one in later if "(no reply)" in one}
    assert filled and filled <= whole, "the conversations are those of the run that was not stopped"
    assert report(again)["failures"] == 0


# ------------------------------------------------------------------------------------------- reading


def test_fields_that_cannot_be_kept_are_left_out() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    call = {
        "id": "1",
        "function": {"name": "f", "arguments": "{}", "more": float("nan")},
        "extra": [float("inf"), "\ud800"],
    }
    data = chat(
        {"content": "", "reasoning_content": "so", "reasoning_details": deep, "thinking": None, "tool_calls": [call]}
    )
    answer = read_completion(data, 0.1, with_tools=True, sends="tools", model="m")
    assert answer.provider_fields is not None
    json.dumps(answer.provider_fields, allow_nan=False)
    assert answer.provider_fields["message"]["reasoning_content"] is None, "it is the reasoning: stored once"
    assert answer.provider_fields["tool_calls"] == [{"extra": [None, "?"]}] and answer.provider_fields["model"] == "m"


@pytest.mark.parametrize(
    ("message", "thought"),
    [
        ({"content": "7", "reasoning_details": [{"type": "reasoning.text", "text": "so"}]}, "so"),
        ({"content": "7", "reasoning_details": [{"type": "reasoning.summary", "summary": "so"}]}, "so"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "so"}]},
                    {"type": "text", "text": "7"},
                ]
            },
            "so",
        ),
        ({"content": [{"type": "thinking", "thinking": "so", "signature": "s"}, {"type": "text", "text": "7"}]}, "so"),
        ({"content": "7", "reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}, 3]}, None),
    ],
)
def test_thoughts_are_read_wherever_a_server_keeps_them(message: Body, thought: str | None) -> None:
    answer = read_completion(chat(message), 0.1)
    assert (answer.text, answer.reasoning, answer.provider_fields) == ("7", thought, None)


@pytest.mark.parametrize("name", ["DeepSeek", "Kimi", "Gemini"])
def test_calls_of_another_model_have_a_blank_thought_where_one_is_wanted(tmp_path: Path, name: str) -> None:
    """What-if with another model, in whose conversations stand calls that it did not make."""
    plain, model = Thinker(Dialect("")), Thinker(DIALECTS[name], "B")

    def refuse(body: Body) -> Fault | None:
        for message in body["messages"]:
            for call in message.get("tool_calls", ())[:1]:
                whole = "extra_content" in call if name == "Gemini" else message.get("reasoning_content")
                if not whole:
                    return status(400, model.dialect.refusal)
        return None

    with FakeOpenAI(plain.answer) as first:
        play(tmp_path / "run", first, "arithmetic", (*DEBATE, "protocol.rounds=3"))
    with FakeOpenAI(model.answer, faults=refuse) as second:
        run = str(tmp_path / "run")
        episode = harness.load_run(run).scores[0].id
        args = ",".join(f"{k}={v}" for k, v in {**ENGINE, "base_url": second.url}.items())
        command = ["replay", run, "--episode", episode, "--from", "3", "--model", "openai", "--model_args", args]
        assert main([*command, "--quiet", "--output_path", str(tmp_path / "again")]) == 0
        bodies = second.bodies
    assert errors(harness.load_run(tmp_path / "again")) == []
    stood_in = [
        body for body in bodies if '"skip_thought' in encoded(body) or '"reasoning_content": " "' in encoded(body)
    ]
    assert stood_in and len(stood_in) == len(bodies) - 1, "the first refusal is enough"
