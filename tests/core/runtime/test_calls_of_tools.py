"""Replies given as arguments of a tool: `reply_via: tool_calls`, for every form, every protocol and a single seat."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import harness
from harness.api import Case, Completion, Outcome, Play, Protocol, Request, Task, Turn
from harness.api.errors import HarnessError, SpecError
from harness.cli import main
from harness.config import resolve
from harness.config.plan import Plan
from harness.config.project import builtin
from harness.config.spec import load, parse
from harness.engines.likelihoods import likelihoods_of
from harness.engines.mock import Mock
from harness.engines.replay import Replay
from harness.extensions.networks.answers import INTEGER, INTEGERS, TABLE, TEXT, TRUTH, Answer, AnswerForm, one_of
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.stress.stand_in import StandIn
from harness.extensions.stress.styles import STYLES
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.dropped_fields import dropped_fields
from harness.replies.parse_guard import read, read_completion
from harness.replies.patterns import lines, pattern
from harness.replies.tool_reply import TOOL, ToolReply
from harness.runtime.calls_as_tools import CallsKey, play
from harness.runtime.steps import drive
from tests.core.replies.every_form import ACT, BESIDE, FORMS
from tests.core.runtime.test_tool_calls import call, calls, valid
from tests.extensions.panels.test_margins import BATCHES, PLAYED, answered, conditions
from tests.helpers.journals import as_killed
from tests.helpers.mas_commands import Commands

DECLARED = {
    name: form for name, (form, _) in FORMS.items() if form.fields and not form.tools and not isinstance(form, Calls)
}
TALK = ToolReply(ActionWithMessage(ACT, MessageLine()))

# ------------------------------------------------------------------------------------------ forms


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", DECLARED)
def test_what_a_call_says_is_the_action_that_its_text_would_be(name: str) -> None:
    form, text = FORMS[name]
    called = ToolReply(form)
    [tool] = called.tools
    assert set(tool["parameters"]["properties"]) == {one.name for one in form.fields}
    Draft202012Validator.check_schema(tool["parameters"])
    for action in form.examples:
        made = calls(*({"id": "1", **one} for one in called.calls_of(action)), text="I think so.")
        parsed = read_completion(called, made)
        assert parsed.error is None and form.says(parsed.action) == form.says(action), made
        assert dropped_fields(called, made, parsed) == ()
    assert read_completion(called, Completion(text)) == read(form, text), "a model that calls nothing wrote its reply"
    assert called.constraint() is None and called.without_tools is form


def test_arguments_are_declared_with_type_range_options_and_what_they_are() -> None:
    [tool] = ToolReply(FORMS["contract"][0]).tools
    declared = tool["parameters"]["properties"]
    assert declared["confidence"] == {
        "type": "number", "minimum": 0, "maximum": 1, "description": "a number from 0 to 1",
    }  # fmt: skip
    assert declared["reason"]["maxLength"] == 60 and declared["first_choice"]["enum"] == ["Ann", "Bob", 3]
    assert declared["answer"]["enum"] == ["A", "B", "C", "D"] and tool["parameters"]["required"] == ["answer"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ([{"message": "hi", "action": "WAIT"}], ("WAIT", "hi")),
        ([{"message": "I wait.\nACTION: RELEASE", "action": "GRAB_LEFT"}], ("GRAB_LEFT", "I wait. ACTION: RELEASE")),
        ([{"action": "release", "message": None}], ("RELEASE", None)),
        ([{"action": "WAIT"}, {"action": "RELEASE", "message": "no"}], ("RELEASE", "no")),
        (['{"message": "so", "action": "WAIT",}'], ("WAIT", "so")),
        (["{'action': 'WAIT'"], ("WAIT", None)),
    ],
)
def test_arguments_are_read_as_tolerantly_as_text(made: Sequence[Any], said: tuple[str, str | None]) -> None:
    parsed = read_completion(TALK, calls(*(call(TOOL, one, str(i)) for i, one in enumerate(made))))
    assert parsed.error is None and (parsed.action["act"], parsed.action["message"]) == said


def test_calls_without_an_action_say_why() -> None:
    assert "no tool 'fly'" in str(read_completion(TALK, calls(call("fly"))).error)
    assert "ACTION" in str(read_completion(TALK, calls(call(TOOL, "{}"))).error)
    kept = read_completion(TALK, calls(call(TOOL, {"message": "hi", "action": "FLY"})))
    assert kept.error and kept.fallback_action == {"act": "WAIT", "message": "hi"}
    made = calls(call(TOOL, {"action": "WAIT", "confidence": 1}))
    assert dropped_fields(TALK, made, read_completion(TALK, made)) == ()
    contract = ToolReply(FORMS["contract"][0])
    made = calls(call(TOOL, {"answer": "B", "confidence": 7}))
    assert dropped_fields(contract, made, read_completion(contract, made)) == ("confidence",)


@given(st.text(), st.text(max_size=8))
def test_no_call_raises(arguments: str, name: str) -> None:
    for form in (TALK, ToolReply(FORMS["contract"][0]), ToolReply(FORMS["messages"][0])):
        for made in (call(TOOL, arguments), call(name, arguments), call(TOOL, {"answer": arguments})):
            json.dumps(read_completion(form, calls(made)).action)


# -------------------------------------------------------------------------------------- protocols


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [*reversed(PLAYED)])
def test_every_protocol_offers_its_forms_and_knows_nothing_of_it(name: str) -> None:
    for condition in conditions(name):
        case = condition.task.example()
        agents = condition.protocol.possible_agents(case)
        plain = condition.protocol.play(condition.task, case, agents, random.Random(0))
        game = play(condition.protocol.play, {"default"}, condition.task, case, agents, random.Random(0))
        batch, other = next(game), next(plain)
        for _ in range(BATCHES):
            assert [bare(turn) for turn in batch] == [replace(turn, call_results=()) for turn in other]
            for turn in batch:
                scored = likelihoods_of(turn.reply) is not None
                assert bool(turn.reply.tools) == bool(turn.reply.fields and not scored) or isinstance(turn.reply, Calls)
            try:
                batch = game.send([answered(bare(turn), "The answer is 42.") for turn in batch])
                other = plain.send([answered(turn, "The answer is 42.") for turn in other])
            except StopIteration:
                break
        game.close()
        plain.close()


def bare(turn: Turn) -> Turn:
    return replace(turn, reply=turn.reply.without_tools, call_results=())


# ------------------------------------------------------------------------------------------- runs


def stand_in(request: Request) -> Completion:
    valid(request.thread.messages)
    return StandIn(STYLES[:1])(request)


def test_a_run_is_resumed_and_replayed_and_peers_read_lines(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(request: Request) -> Completion:
        asked.append(request.thread.messages[-1]["content"])
        roles = [message["role"] for message in request.thread.messages]
        assert request.tools[0]["name"] == TOOL and ("tool" in roles) == (roles.count("user") > 1)
        return stand_in(request)

    changes = ["reply_via=tool_calls", "prompts=panels/standard", "protocol={use: debate, agents: 2, rounds: 2}"]
    options: dict[str, Any] = {"overrides": changes, "limit": 1}
    run = harness.evaluate("arithmetic", Mock(function=answer), output_path=tmp_path / "run", **options)
    assert len(asked) == 3 * 4 and asked[-1].count("The answer is ") > 1 and f"{TOOL}(" not in asked[-1]
    assert not any(turn["error"] for turn in run.turns())
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:3]))
    as_killed(tmp_path / "run")
    (tmp_path / "run" / "scores.jsonl").unlink()
    again = harness.evaluate("arithmetic", Mock(function=answer), output_path=tmp_path / "run", **options)
    replay = Replay(path=str(tmp_path / "run"))
    replayed = harness.evaluate("arithmetic", replay, output_path=tmp_path / "replay", **options)
    for other in (again, replayed):
        assert [score.numbers["score"] for score in other.scores] == [score.numbers["score"] for score in run.scores]


def test_a_group_alone_gives_its_replies_by_tool(tmp_path: Path) -> None:
    called: dict[str, bool] = {}

    def answer(request: Request) -> Completion:
        called[request.id.split("/")[-3]] = bool(request.tools)
        return Completion("The answer is 7.") if not request.tools else calls(call(TOOL, {"answer": 7}))

    changes = [
        "reply_via={seat: tool_calls}",
        "agents={seat: {model: model, agents: [Agent-1]}}", "prompts=panels/standard",
        "protocol={use: vote, agents: 3}",
    ]  # fmt: skip
    run = harness.evaluate(
        "arithmetic", Mock(function=answer), overrides=changes, limit=1, output_path=tmp_path / "run"
    )
    assert called == {"Agent-0": False, "Agent-1": True, "Agent-2": False}
    assert {turn["error"] for turn in run.turns()} == {None}


def test_a_group_without_an_agent_in_the_example_is_offered_tools(tmp_path: Path) -> None:
    agents = "agents={default: model, few: {model: model, share: 0.1}}"
    plan = planned("networks/coloring", "reply_via={few: tool_calls}", agents)
    assert plan.conditions


def test_text_and_tools_are_compared_by_a_matrix() -> None:
    plan = planned("arithmetic", "matrix={form: [text, tool_calls]}", "reply_via=${form}", "task.terms=2")
    offering = {
        condition.labels["form"]: any(
            turn.reply.tools for turn in drive(condition.protocol, condition.task, condition.task.example()).turns()
        )
        for condition in plan.conditions
    }
    assert offering == {"text": False, "tool_calls": True}


def test_a_frozen_protocol_offers_tools() -> None:
    condition = planned("arithmetic").conditions[0]
    frozen = replace(condition, protocol=Frozen())
    spec = parse({"name": "one", "task": "arithmetic", "protocol": "single", "reply_via": "tool_calls"}, builtin())
    [called] = CallsKey("reply_via", "tool_calls", spec).conditions(frozen, 0)
    assert called.protocol is not frozen.protocol
    assert any(turn.reply.tools for turn in drive(called.protocol, called.task, called.task.example()).turns())


@dataclass(frozen=True)
class Frozen(Protocol):
    """Asks the first agent once."""

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        moves = yield [Turn(agents[0], "answer", task.context(case, agents[0]), task.reply(case, agents[0]))]
        return Outcome({agents[0]: moves[0].action})


def planned(spec: str, *changes: str) -> Plan:
    return resolve.plan(load(spec, builtin(), changes), builtin(), Mock(text="7"))


@pytest.mark.parametrize("calls", ["text", "tool_calls"])
def test_a_protocol_with_calls_of_its_own_is_told_once(calls: str) -> None:
    with pytest.raises(SpecError, match="reply_via: is said twice"):
        planned("mas_calls", f"reply_via={calls}")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["reply_via={seats: tool_calls}"], "there is no group 'seats'"),
        (["reply_via=${form}", "matrix.form=[1]"], "must be text or tool_calls, found 1"),
        (["reply_via=tool"], "must be text or tool_calls, found 'tool'"),
        (["reply_via=tool_calls", "structured_output=true"], "calls tools"),
        (
            ["reply_via={few: tool_calls}", "agents.few={policy: calculator, count: 1}"],
            "overrides=['reply_via={few: tool_calls}']: a policy plays 'few': it calls no tools\n  Leave it out, or",
        ),
    ],
)
def test_what_cannot_be_is_refused(changes: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=re.escape(message)):
        harness.evaluate("arithmetic", Mock(text="7"), overrides=changes, output_path=tmp_path / "run")


def test_a_group_that_a_baseline_plays_without_a_model_may_call() -> None:
    few = "agents={default: model, few: {model: model, count: 1, baseline: calculator}}"
    spec = load("arithmetic", builtin(), ["reply_via={default: tool_calls, few: tool_calls}", few])
    assert resolve.plan(spec, builtin()).conditions


# -------------------------------------------------------------------------- answers with fields

VERBS = (Verb("send_message", ("target_id",), "content"), Verb("wait"), Verb("submit_result", (), "answer"))
ANSWERS = {
    "integer": INTEGER,
    "word": TEXT,
    "truth": TRUTH,
    "list": INTEGERS,
    "table": TABLE,
    "one": one_of(["a b", "c"]),
}


def submitting(form: type[Calls], as_tools: bool, answer: AnswerForm = INTEGER, place: int = 1) -> Calls:
    return form(VERBS, 5, as_tools=as_tools, answer=ActWithFields(Answer(answer), BESIDE, place))


@pytest.mark.parametrize("form", [Calls, Commands])
def test_an_answer_with_fields_takes_them_as_arguments(form: type[Calls]) -> None:
    offered = submitting(form, True)
    schema = offered.tools[-1]["parameters"]
    assert list(schema["properties"]) == ["reason", "answer", "confidence", "first_choice"]
    assert schema["properties"]["answer"]["type"] == "integer" and schema["required"] == ["answer"]
    assert offered.tools[0] == Calls(VERBS, as_tools=True).tools[0]
    assert offered.answer is not None
    for arguments, said in (
        ({"answer": 12, "reason": "so", "confidence": 0.5, "first_choice": "Ann"}, ("so", 0.5, "Ann")),
        ({"confidence": "80 %", "answer": "12", "reason": "a\nANSWER: 3"}, ("a ANSWER: 3", 0.8, None)),
        ({"answer": 12}, (None, None, None)),
        ({"answer": "REASON: so\nANSWER: 12"}, ("so", None, None)),
    ):
        [submitted] = read_completion(offered, calls(call("submit_result", arguments))).action
        parsed = read(offered.answer, submitted["answer"])
        assert parsed.action["act"] == 12 and tuple(parsed.action["said"].values()) == said
    for action in offered.examples:
        made = calls(*({"id": str(i), **one} for i, one in enumerate(offered.calls_of(action))))
        again = read_completion(offered, made).action
        assert offered.says(again) == offered.says(action), "what is meant does not depend on how it is written"
        for one, other in zip(again, action, strict=True):
            if one["call"] == "submit_result":
                assert read(offered.answer, one["answer"]) == read(offered.answer, other["answer"])
            else:
                assert one == other


ALPHABET = st.characters(exclude_categories=["C", "Zl", "Zp"], include_characters="\t\r\n")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [0, 3])
@pytest.mark.parametrize("kind", ANSWERS)
@settings(suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_what_decoding_may_write_of_an_answer_is_read_with_all_fields(kind: str, place: int, data: Any) -> None:
    form = ActWithFields(Answer(ANSWERS[kind]), BESIDE, place)
    allowed = lines(form, "<>`")
    text = data.draw(st.from_regex(re.compile(allowed), fullmatch=True, alphabet=ALPHABET))
    stated = dict(zip([one.name for one in form.fields], text.split("\n"), strict=True))
    says_nothing = {"none", "null", "nothing", "true", "false"}
    if stated["answer"].partition(": ")[2].casefold() in says_nothing and kind == "word":
        return
    for whole in (text, f"<submit_result>{text}</submit_result>", f"```\nsubmit_result {text}\n```"):
        reads = submitting(Commands if "`" in whole else Calls, False, ANSWERS[kind], place)
        if whole != text:
            assert re.fullmatch(dict(reads.constraint() or {})["regex"], f"{whole}\n")
        parsed = read(form, text if whole == text else read(reads, whole).action[0]["answer"])
        assert parsed.error is None, text
        said = form.says(parsed.action)
        for one in form.fields:
            value = stated[one.name].removeprefix(one.lead).strip()
            if isinstance(said[one.name], str) and "enum" not in one.schema:
                assert " ".join(said[one.name].split()) == " ".join(value.split())
            assert said[one.name] is not None or value.casefold() in says_nothing, (one.name, text)


def test_no_key_that_decoding_may_write_has_an_escape() -> None:
    allowed = pattern(TABLE.schema)
    assert re.fullmatch(allowed, '{"a/x": 1}') and not re.fullmatch(allowed, r'{"a\x": 1}')


def test_the_bounds_of_a_number_are_those_of_the_argument() -> None:
    [condition, *_] = planned("networks/shared_rooms", "reply_via=tool_calls").conditions
    *_, last = drive(condition.protocol, condition.task, condition.task.example()).turns()
    answer = last.reply.tools[0]["parameters"]["properties"]["answer"]
    assert (answer["type"], answer["minimum"], answer["maximum"]) == ("integer", 0, last.reply.options[-1])


@given(st.integers(-(10**6), 10**6), st.integers(0, 3000), st.integers(-50, 50))
def test_numbers_that_decoding_may_write_are_those_between_the_bounds(low: int, more: int, beside: int) -> None:
    high = low + more
    whole = re.compile(pattern({"type": "integer", "minimum": low, "maximum": high}))
    fraction = re.compile(pattern({"type": "number", "minimum": low, "maximum": high + 0.5}))
    for number in (low, high, low + beside, high + beside):
        assert bool(whole.fullmatch(str(number))) == (low <= number <= high)
        for text in (str(number), f"{number}.25", f"{number}.75"):
            if not text.startswith("0.") and number != 0:
                assert not fraction.fullmatch(text) or low <= float(text) <= high + 0.5
    assert fraction.fullmatch(str(high)) and fraction.fullmatch(f"{high + 0.5}")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "tool_calls"])
def test_groups_submit_answers_with_fields(form: str, tmp_path: Path) -> None:
    def answer(request: Request) -> Completion:
        assert request.reply is not None
        action = request.reply.examples[-2]
        if form == "tool_calls":
            [tool] = [tool for tool in request.tools if tool["name"] == "submit_result"]
            assert "confidence" in tool["parameters"]["properties"]
            return calls(*({"id": "1", **one} for one in request.reply.calls_of([action[-1]])))
        return Completion(request.reply.written(request.reply.examples[-2]))

    changes = [f"protocol.reply_via={form}", "task.reply={confidence: {number: [0, 1]}}"]
    run = harness.evaluate(
        "sharded/inventory", Mock(function=answer), overrides=changes, limit=1, output_path=tmp_path / "run"
    )
    assert not any(turn["error"] for turn in run.turns())


@pytest.mark.slow
@pytest.mark.parametrize("said", ["**MESSAGE**: I wait.\n**ACTION**: WAIT", calls(call(TOOL, {"action": "WAIT"}))])
def test_a_strict_reader_takes_calls_and_no_other_text_than_was_asked_for(said: Any, tmp_path: Path) -> None:
    model = Mock(function=lambda request: said)
    harness.evaluate("dpbench_quick", model, overrides=["reply_via=tool_calls"], limit=1, output_path=tmp_path / "run")
    assert main(["score", str(tmp_path / "run"), "--parsers", "strict"]) == 0
    strict = json.loads((tmp_path / "run" / "run.json").read_text())["parsers"]["strict"]
    assert strict["read"] == (0 if isinstance(said, str) else strict["asked"]) and strict["asked"]
