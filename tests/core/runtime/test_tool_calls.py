"""Calls of tools in place of texts: forms, conversations, whole runs, and all that reads them afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.api import Completion, Engine, Move, Request, Turn
from harness.api.errors import RequestError, SpecError
from harness.checks.consistency import check_plan
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.evaluation.run import Run
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.vllm.vllm import VLLM
from harness.replies.parse_guard import MAX_CHARS, read_completion
from harness.runtime.players import ModelPlayer
from harness.runtime.prompt_reader import RecordedTurn
from harness.runtime.steps import drive
from harness.transcripts.reader import Transcripts
from harness.transcripts.tidy import turn_rows
from tests.helpers.journals import as_killed
from tests.helpers.mas_commands import UNKNOWN, Commands, written
from tests.helpers.samples import examples

VERBS = (
    Verb("send_message", ("target_id",), "content"),
    Verb("write_file", ("path",), "content", line=True),
    Verb("list_files", (), None, ("prefix",)),
    Verb("wait"),
    Verb("submit_result", (), "answer"),
)
CALLS, COMMANDS = Calls(VERBS, as_tools=True), Commands(VERBS, as_tools=True)
BUILTIN = builtin()


def call(name: str, arguments: Any = "{}", name_of_call: str = "") -> dict[str, str]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": name_of_call, "name": name, "arguments": text}


def calls(*made: dict[str, str], text: str = "") -> Completion:
    return Completion(text, tool_calls=list(made) or None)


# ------------------------------------------------------------------------------------------ forms


@pytest.mark.parametrize(
    ("made", "action"),
    [
        (call("wait"), {"call": "wait"}),
        (call(" Wait ", ""), {"call": "wait"}),
        (call("list_files"), {"call": "list_files", "prefix": ""}),
        (call("send_message", {"target_id": 3, "content": " hi\n you "}),
         {"call": "send_message", "target_id": "3", "content": "hi\n you"}),
        (call("send_message", {"target_id": "3", "content": "x", "urgent": True}),
         {"call": "send_message", "target_id": "3", "content": "x"}),
        (call("submit_result", {"answer": [1, 2.5, "é"]}), {"call": "submit_result", "answer": '[1, 2.5, "é"]'}),
        (call("submit_result", '{"answer": true}'), {"call": "submit_result", "answer": "true"}),
        (call("write_file", {"path": " a.txt ", "content": "  x\n"}),
         {"call": "write_file", "path": "a.txt", "content": "  x\n"}),
        (call("send_message", {"target_id": "3"}),
         {"call": "send_message", "error": "content is missing; send_message needs target_id, content"}),
        (call("send_message", {"target_id": None, "content": "x"}),
         {"call": "send_message", "error": "target_id is missing; send_message needs target_id, content"}),
        (call("send_message", '{"target_id": "3", "cont'),
         {"call": "send_message", "error": 'the arguments are no JSON object: {"target_id": "3", "cont'}),
        (call("wait", "[1]"), {"call": "wait", "error": "the arguments are no JSON object: [1]"}),
        (call("wait", "9" * 5000), {"call": "wait", "error": f"the arguments are no JSON object: {'9' * 80}…"}),
        (call("wait", "[" * 200_000), {"call": "wait", "error": f"the arguments are no JSON object: {'[' * 80}…"}),
    ],
)  # fmt: skip
def test_a_call_of_a_tool_is_the_action_that_its_text_would_be(made: dict[str, str], action: dict[str, str]) -> None:
    for form in (CALLS, COMMANDS):
        parsed = read_completion(form, calls(made, text="thinking <wait/> aloud"))
        assert (parsed.action, parsed.error) == ([action], None)


def test_calls_of_what_there_is_not_empty_texts_and_floods() -> None:
    [unknown] = read_completion(CALLS, calls(call("launch_missiles\n" * 50))).action
    assert unknown["error"].endswith("there are: send_message, write_file, list_files, wait, submit_result")
    assert len(unknown["call"]) <= 120 and "\n" not in unknown["call"]
    assert read_completion(COMMANDS, calls(call(""))).action == [{"call": "?", "error": UNKNOWN}]
    empty = call("send_message", {"target_id": "1", "content": ""})
    assert read_completion(CALLS, calls(empty)).action == [{"call": "send_message", "target_id": "1", "content": ""}]
    assert "content is missing" in read_completion(COMMANDS, calls(empty)).action[0]["error"]  # as in its text
    flood = read_completion(Calls(VERBS, 2, as_tools=True), calls(*[call("wait")] * 1000)).action
    assert flood == [{"call": "wait"}, {"call": "wait"}, {"call": "", "skipped": 998}]


def test_without_a_call_there_is_no_action_whatever_the_text_says() -> None:
    for answer in (calls(text="<wait/>"), calls(text="```\nwait\n```"), Completion("", tool_calls=[])):
        for form in (CALLS, COMMANDS):
            assert (
                read_completion(form, answer).error
                == "no tool was called; there are: send_message, write_file, list_files, wait, submit_result"
            )
    huge = calls(call("submit_result", {"answer": "x" * MAX_CHARS}))
    assert str(read_completion(CALLS, huge).error).startswith("too long: calls of 1,000,0")
    assert read_completion(CALLS, Completion("", tool_calls=[{"id": "1"}])).action is None  # an engine's bug


def test_a_form_that_is_written_offers_nothing_and_reads_its_text() -> None:
    for form, text in ((Calls(VERBS), "<wait/>"), (Commands(VERBS), "```\nwait\n```")):
        assert form.tools == () and form.constraint()
        assert read_completion(form, calls(call("submit_result"), text=text)).action == [{"call": "wait"}]
    assert CALLS.constraint() is COMMANDS.constraint() is None
    assert [tool["name"] for tool in CALLS.tools] == [verb.name for verb in VERBS]
    assert CALLS.tools[0]["parameters"]["required"] == ["target_id", "content"]


words = st.text(st.characters(codec="utf-8", exclude_characters="`<>\"'\r\n"), min_size=1, max_size=20).filter(
    lambda text: text.split() == [text] and text == text.strip("\u200b")
)
actions = st.one_of(
    st.builds(lambda to, text: {"call": "send_message", "target_id": to, "content": text}, words, words),
    st.builds(lambda path, text: {"call": "write_file", "path": path, "content": text}, words, words),
    st.just({"call": "wait"}),
    st.builds(lambda answer: {"call": "submit_result", "answer": answer}, words),
)


@given(st.lists(actions, min_size=1, max_size=4))
def test_written_or_called_an_action_is_the_same(action: list[dict[str, str]]) -> None:
    native = [call(one["call"], {key: value for key, value in one.items() if key != "call"}) for one in action]
    text = "\n".join(f"```\n{written(one, VERBS)}\n```" for one in action)
    assert Commands(VERBS).parse(text).action == read_completion(COMMANDS, calls(*native)).action == action
    assert read_completion(CALLS, calls(*native)).action == action


@given(st.lists(st.fixed_dictionaries({"id": st.text(), "name": st.text(), "arguments": st.text()}), max_size=4))
def test_no_call_raises_and_each_is_json(made: list[dict[str, str]]) -> None:
    for form in (CALLS, COMMANDS):
        parsed = form.parse_calls(made)
        assert (parsed.error is None) == bool(made)
        json.dumps(parsed.action)


# ---------------------------------------------------------------------------------- conversations


def player(answer: Callable[[Request], str | Completion]) -> ModelPlayer:
    return ModelPlayer(Mock(function=answer), BUILTIN.prompts("silo/standard"), {}, False, "e/A", 7)


CONTEXT: dict[str, Any] = {
    "id": 0, "n": 2, "task": "t", "shard": [1], "channel": {"kind": "mailbox", "inbox": "push"}, "max_rounds": 3,
    "actions": [], "max_actions": 10, "calls_per_round": 1, "tools": True,
}  # fmt: skip


def turn(number: int, results: Sequence[str] = (), *, fresh: bool = False) -> Turn:
    shown = {"round": number, "rounds_left": 3 - number, "inbox": [], "results": []}
    return Turn("A", "round", shown, CALLS, CONTEXT, 1, fresh, call_results=tuple(results))


def valid(messages: Sequence[dict[str, Any]]) -> None:
    """What OpenAI's API wants: each call of a message answered, once, before anything else is said."""
    open_ids: list[str] = []
    for message in messages:
        assert isinstance(message["content"], str)
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0)
            continue
        assert not open_ids
        for one in message.get("tool_calls", ()):
            arguments = json.loads(one["function"]["arguments"])
            assert isinstance(arguments, dict) and str(arguments).encode()
            assert one["function"]["name"].replace("_", "").replace("-", "").isalnum()
            open_ids.append(one["id"])
        assert len(set(open_ids)) == len(open_ids)


def test_each_call_is_answered_by_its_result_before_the_next_question() -> None:
    replies = iter(
        [
            calls(call("send_message", {"target_id": 1, "content": "x"}, "id-1"), call("wait"), text="I ask."),
            calls(call("submit_result", "{", "id-1"), call("no such tool!", "[]", "id-1")),
            calls(call("wait", "{}", "with blanks")),
        ]
    )
    who = player(lambda request: next(replies))
    for number, results in enumerate([(), ("sent",), ("error: no",)]):
        asyncio.run(who.act(turn(number, results)))
    said = who.thread.messages[2:]
    assert [message["role"] for message in said] == [
        "assistant", "tool", "tool", "user", "assistant", "tool", "tool", "user", "assistant",
    ]  # fmt: skip
    answers = [message["content"] for message in said if message["role"] == "tool"]
    assert answers == ["sent", "not carried out", "error: no", "not carried out"]
    assert said[0]["content"] == "I ask." and said[0]["tool_calls"][0]["id"] == "id-1"
    broken = said[4]["tool_calls"]
    assert [one["function"] for one in broken] == [
        {"name": "submit_result", "arguments": "{}"}, {"name": "no_such_tool_", "arguments": "{}"},
    ]  # fmt: skip
    assert len({broken[0]["id"], broken[1]["id"]}) == 2 and " " not in said[8]["tool_calls"][0]["id"]
    valid(who.thread.messages)


def test_a_new_conversation_answers_no_old_call() -> None:
    who = player(lambda request: calls(call("wait")))
    asyncio.run(who.act(turn(1)))
    asyncio.run(who.act(turn(2, ["ended"], fresh=True)))
    assert [message["role"] for message in who.thread.messages] == ["system", "user", "assistant"]


def test_a_flood_of_calls_stays_out_of_the_conversation() -> None:
    who = player(lambda request: calls(*[call("wait")] * 5000))
    move = asyncio.run(who.act(turn(1)))
    asyncio.run(who.act(turn(2, ["ended"])))
    assert len(move.action) == 101 and move.action[-1]["skipped"] == 4900
    assert len(who.thread.messages[2]["tool_calls"]) == 1000
    assert [message["role"] for message in who.thread.messages].count("tool") == 1000
    valid(who.thread.messages)


steps = st.sampled_from(["call", "two", "text", "broken", "fail"])


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(st.lists(steps, min_size=12, max_size=12), st.integers(0, 3))
def test_recalled_conversations_are_the_same_and_valid(script: list[str], known: int) -> None:
    made = {
        "call": calls(call("wait", "{}", "x")), "two": calls(call("wait"), call("wait")), "text": calls(text="hm"),
        "broken": calls(call("", "{{", "\ud800"), call("wait", '{"a": "\\ud800\\u00e9"}')),
    }  # fmt: skip

    def scripted(left: list[str]) -> Callable[[Request], Completion]:
        rest = iter(left)

        def answer(request: Request) -> Completion:
            valid(request.thread.messages)
            if (step := next(rest)) == "fail":
                raise RequestError("no")
            return made[step]

        return answer

    first = player(scripted(script))
    moves: list[Move] = [asyncio.run(first.act(turn(i, ["done"]))) for i in range(4)]
    asked = sum(len(move.calls) + (move.error_kind == "request") for move in moves[:known])
    second = player(scripted(script[asked:]))
    for i in range(known):
        second.recall(turn(i, ["done"]), moves[i])
    assert [asyncio.run(second.act(turn(i, ["done"]))) for i in range(known, 4)] == moves[known:]
    assert second.thread.messages == first.thread.messages


def test_every_schema_of_arguments_is_shown() -> None:
    any_value = {"type": "object", "properties": {"x": True, "y": {"type": "string", "description": "a word"}}}
    tools = [{"name": "f", "description": "Tries.", "parameters": one} for one in (any_value, {"type": "object"}, {})]
    shown = RecordedTurn(0, 0, "A", 0, "t", tools=tuple(tools)).signatures
    assert shown == "f(x, y): Tries.\n    y: a word\nf(): Tries.\nf(): Tries."


# ------------------------------------------------------------------------------------------- runs

SMALL = [
    "protocol.reply_via=tool_calls",
    "matrix.agents=[2]",
    "matrix.problem=[global_maximum]",
    "protocol.max_rounds=4",
]


def talking(request: Request) -> Completion:
    """Asks, says something unreadable, fails to submit, submits."""
    replies = sum(message["role"] == "assistant" for message in request.thread.messages)
    made: list[dict[str, str]] = [
        [call("send_message", {"target_id": "1", "content": "mine is 12"}, "a"), call("wait", "", "b")],
        [],
        [call("submit_result", '{"answer": 1', "c"), call("nothing")],
        [call("submit_result", {"answer": 12}, "d"), call("wait", "", "e")],
    ][replies]  # type: ignore[assignment]
    return Completion(f"thought {replies}", input_tokens=3, output_tokens=5, tool_calls=made or None)


def evaluate(folder: Path, model: Engine | None = None, *more: str, spec: str = "silo_quick", **options: Any) -> Run:
    model = model or Mock(function=talking)
    return harness.evaluate(spec, model, overrides=[*SMALL, *more], output_path=folder, **options)


def test_a_run_with_tools_is_counted_shown_resumed_replayed_and_exported(tmp_path: Path) -> None:
    run = evaluate(tmp_path / "run", None, "protocol.parse_retries=1", log_requests=True)
    [numbers] = [score.numbers for score in run.scores if score.labels["protocol"] == "P2P"]
    assert (numbers["calls"], numbers["parse_failures"], numbers["messages"]) == (8, 0, 1)
    assert numbers["refused_calls"] == 1 + 2 * 2  # Agent-1's message to itself; two bad calls of each agent

    shown = next(t for t in Transcripts(tmp_path / "run") if "protocol=P2P" in t.id)
    assert shown.problem is None
    said = shown.conversation("Agent-0")
    assert [role for role, _ in said] == [
        *("system", "user", "assistant", "tool", "tool", "user", "assistant", "user", "assistant"),
        *("tool", "tool", "user", "assistant"),
    ]
    assert said[2][1] == 'thought 0\nsend_message({"target_id": "1", "content": "mine is 12"})\nwait()'
    assert said[3:5] == [("tool", "sent to Agent-1"), ("tool", "your round has ended")]
    assert said[9:11] == [
        ("tool", 'error: the arguments are no JSON object: {"answer": 1'),
        ("tool", "error: there is no nothing; there are: send_message, receive_messages, wait, submit_result"),
    ]
    assert "Results of your last actions" not in str(said) and "New messages:" in said[5][1]

    offered = [turn.signatures for turn in shown.turns if turn.agent == "Agent-0"]
    assert offered[0].splitlines()[0] == "send_message(target_id, content): Deliver a message to the specified agent"
    assert offered[1:] == [""] * (len(offered) - 1), "where they are the same they are not repeated"

    rows = [row for row in turn_rows("run", shown) if row["agent"] == "Agent-0"]
    assert rows[0]["tool_calls"][1] == {"id": "b", "name": "wait", "arguments": ""}
    assert rows[1]["earlier_replies"] == ["thought 1"]

    requests = [json.loads(line) for line in (tmp_path / "run" / "requests.jsonl").read_text().splitlines()]
    assert {one["name"] for one in requests[0]["tools"]} == {
        "send_message",
        "receive_messages",
        "wait",
        "submit_result",
    }
    assert requests[0]["tools"][0]["description"] == "Deliver a message to the specified agent"
    threads = [line["thread"] for line in requests if "tools" in line]
    assert sorted(threads) == sorted(set(threads)), "a thread's first line alone holds its tools"

    journal = tmp_path / "run" / "journal.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(b"".join(whole.splitlines(keepends=True)[:7]))
    as_killed(tmp_path / "run")
    (tmp_path / "run" / "scores.jsonl").unlink()
    again = evaluate(tmp_path / "run", None, "protocol.parse_retries=1")
    assert [score.numbers for score in again.scores] == [score.numbers for score in run.scores]
    replayed = evaluate(tmp_path / "replay", Replay(path=str(tmp_path / "run")), "protocol.parse_retries=1")
    assert [score.numbers for score in replayed.scores] == [score.numbers for score in run.scores]


@pytest.mark.slow
def test_a_response_cache_knows_tools_from_texts(tmp_path: Path) -> None:
    asked: list[bool] = []

    def answer(request: Request) -> Completion:
        asked.append(bool(request.tools))
        return talking(request) if request.tools else Completion("<submit_result>12</submit_result>")

    for folder, more in (("one", ()), ("two", ()), ("text", ("protocol.reply_via=text",))):
        run = evaluate(tmp_path / folder, Mock(function=answer), *more, use_cache=tmp_path / "answers.sqlite")
        assert not run.failed
        if folder != "text":
            assert all(asked) and len(asked) == 3 * 2 * 4
    assert not any(asked[24:]) and len(asked) > 24


@pytest.mark.sampled(1)
@pytest.mark.parametrize("backend", ["P2P", "Broadcasting", "Shared K-V"])
def test_mas_bench_gives_each_result_to_its_call_and_asks_nothing_beside(backend: str, tmp_path: Path) -> None:
    seen: list[list[dict[str, Any]]] = []

    def answer(request: Request) -> Completion:
        valid(request.thread.messages)
        seen.append(list(request.thread.messages))
        first = request.tools[0]["name"]
        return calls(call(first, {"content": "x", "target_id": "1"}), call("submit_result", {"answer": [1]}))

    more = ["matrix.condition=[CAMOC]", "matrix.agents=[3]", f"matrix.backend=[{backend}]", "protocol.max_rounds=2"]
    run = harness.evaluate(
        "mas_quick", Mock(function=answer), overrides=["protocol.reply_via=tool_calls", *more], output_path=tmp_path
    )
    assert not run.failed and run.scores[0].numbers["parse_failures"] == 0
    last = max(seen, key=len)
    assert [message["role"] for message in last] == ["system", "user", "assistant", "tool", "tool"]
    assert "submit_result -> error: a list of exactly 5 integers" in last[-1]["content"]
    assert "```\n" not in last[0]["content"].split("Rules of behaviour")[0].split("How to act")[1]
    assert "native tool calls" not in last[0]["content"]


@pytest.mark.slow
def test_policies_play_on_as_before(tmp_path: Path) -> None:
    for spec, more in (("silo_quick", SMALL), ("mas_quick", ["protocol.reply_via=tool_calls", "matrix.agents=[3]"])):
        runs = [
            harness.evaluate(spec, overrides=[*more, f"protocol.reply_via={how}"], output_path=tmp_path / spec / how)
            for how in ("text", "tool_calls")
        ]
        assert [s.numbers for s in runs[0].scores] == [s.numbers for s in runs[1].scores]


class Plain(Engine):
    """Knows of no tools."""

    model = "plain"
    asked = 0

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        return Completion("<submit_result>12</submit_result>")


@pytest.mark.slow
def test_an_engine_without_tools_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    plain = Plain()
    for engine, why in ((plain, "the engine of plain offers none"), (VLLM(pretrained="m"), "tool_parser is not set")):
        with pytest.raises(SpecError, match=f"turn 'round' offers tools .reply_via: tool_calls.; .*{why}") as caught:
            evaluate(tmp_path / "run", engine)
        assert caught.value.place is not None and "silo" in str(caught.value.place.file)
        assert ("Engines that can: " if engine is plain else "say reply_via: text") in str(caught.value)
    assert plain.asked == 0 and not (tmp_path / "run").exists()
    assert VLLM(pretrained="m", tool_parser="hermes").tools_problem is None
    assert not evaluate(tmp_path / "text", plain, "protocol.reply_via=text").failed and plain.asked


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "syntax"),
    [("silo_quick", "<wait/>", "<wait/>"), ("mas_quick", "```\nwait\n```", "no native tool calls")],
)
def test_a_group_alone_is_offered_tools(name: str, text: str, syntax: str, tmp_path: Path) -> None:
    asked: list[tuple[bool, bool]] = []

    class Caller(Mock):
        async def complete(self, request: Request) -> Completion:
            system = str(request.thread.messages[0]["content"])
            asked.append((bool(request.tools), syntax in system))
            return calls(call("wait")) if request.tools else Completion(text)

    seats = {"default": "model", "caller": {"model": "model", "agents": ["Agent-1"]}}
    where = {"problem": ["global_maximum"], "agents": [2]} if name == "silo_quick" else {"agents": [3]}
    body = {
        "extends": name,
        "name": "mixed",
        "agents": seats,
        "protocol": {"reply_via": {"caller": "tool_calls"}, "max_rounds": 2},
    }
    run = harness.evaluate({**body, "matrix": where}, Caller(), output_path=tmp_path)
    assert not run.failed and {score.numbers["parse_failures"] for score in run.scores} == {0}
    assert set(asked) == {(True, False), (False, True)}

    with pytest.raises(SpecError, match="names a group 'callers' that `agents:` does not have") as caught:
        harness.evaluate({**body, "protocol": {"reply_via": {"callers": "tool_calls"}}, "matrix": where}, Caller())
    assert "Did you mean caller?" in str(caught.value)


@pytest.mark.slow
def test_a_prompt_set_that_describes_no_tools_is_refused_by_validate() -> None:
    plan = resolve.plan(load("silo_quick", BUILTIN, [*SMALL, "prompts=agentsnet/standard"]), BUILTIN, Mock())
    assert any("no template 'tool'" in str(problem) or "does not fit" in str(problem) for problem in check_plan(plan))
    whole = resolve.plan(load("silo_quick", BUILTIN, SMALL), BUILTIN, Mock())
    assert check_plan(whole) == []


def test_the_single_agent_is_offered_what_its_prompt_names() -> None:
    context = {**CONTEXT, "n": 1, "name": "A"}
    names = {
        prompts: [tool["name"] for tool in BUILTIN.prompts(prompts).tools(CALLS.tools, context)]
        for prompts in ("silo/standard", "silo/alone", "sharded/standard")
    }
    both = ["wait", "submit_result"]
    assert names == {"silo/standard": both, "silo/alone": ["submit_result"], "sharded/standard": both}


@pytest.mark.parametrize("prompts", ["silo/standard", "silo/reminder", "silo/alone", "sharded/standard", "mas/short"])
def test_a_prompt_with_tools_asks_for_no_syntax(prompts: str) -> None:
    mas = prompts.startswith("mas/")
    task, channel = ("mas/sorting", "mas/shared_kv") if mas else ("silo/prefix_sum", "store")
    protocol = BUILTIN.load("protocols", "command_rounds" if mas else "action_rounds")(
        channel=BUILTIN.load("channels", channel)(), max_rounds=2, reply_via="tool_calls"
    )
    source = BUILTIN.load("tasks", task)(agents=3)
    turns = list(drive(protocol, source, source.example()).turns())
    for asked in (turns[0], turns[-1]):
        variables = {**asked.context, **asked.observation}
        texts = [BUILTIN.prompts(prompts).render("system", asked.context)]
        texts += [BUILTIN.prompts(prompts).render(name, {**variables, "error": "…"}) for name in ("round", "retry")]
        for action in asked.context["actions"]:
            assert not any(f"```\n{action['name']}" in text or f"<{action['name']}" in text for text in texts)
        assert "fence" not in "".join(texts) and "tool" in texts[0]
