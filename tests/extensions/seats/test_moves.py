"""Acts of a seat: every form takes the calls that say its actions, and refuses others in words that help."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Completion, Reply
from harness.extensions.games.legal import LegalAction
from harness.extensions.networks.calls import Calls
from harness.extensions.networks.messages import Messages
from harness.extensions.seats.moves import END, MAX_CHARS, Act, MoveForm
from harness.replies import Choice, FreeText, Labelled
from harness.replies.parse_guard import read_completion
from harness.replies.tool_reply import ToolReply
from tests.core.replies.every_form import FORMS, VERBS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def acted(form: Reply, action: Any) -> Completion:
    """The reply of a turn in which the calls are made that say an action."""
    moves, before = MoveForm(form, form.tools), list[Mapping[str, str]]()
    acting = form.with_tools if form.with_tools.tools else ToolReply(form) if form.fields else form
    calls = acting.calls_of(action) if acting.tools else [{"name": "reply", "arguments": json.dumps({"text": action})}]
    act = Act()
    for call in calls:
        act = moves.call(call["name"], json.loads(call["arguments"]), before)
        assert act.error is None, (call, act.error)
        before += [act.call] if act.call else []
    act = act if act.reply else moves.call(END, {}, before)
    assert act.reply is not None
    return act.reply


@pytest.mark.parametrize("name", FORMS)
def test_an_action_of_calls_is_the_action_of_the_text(name: str) -> None:
    form, text = FORMS[name]
    for action in form.examples if form.fields or form.tools else [text]:
        reply = acted(form, action)
        assert bool(reply.tool_calls) == bool(form.tools)
        parsed = read_completion(form, reply)
        assert parsed.error is None
        assert not form.fields or form.says(parsed.action) == form.says(action)
        if not form.tools and form.fields and form.parse(form.written(action)).action == action:
            assert parsed.action == action


@given(st.sampled_from(sorted(FORMS)), st.data())
def test_hostile_calls_are_refused_or_read_and_never_raise(name: str, data: Any) -> None:
    form = FORMS[name][0]
    moves = MoveForm(form, form.tools)
    tool = data.draw(st.sampled_from(moves.names) | st.text())
    known: dict[str, Any] = next((one["parameters"]["properties"] for one in moves.tools if one["name"] == tool), {})
    arguments = data.draw(st.dictionaries(st.sampled_from([*known, "text"]) | st.text(max_size=8), JSON, max_size=3))
    act = moves.call(tool, arguments)
    assert [act.error, act.reply, act.call].count(None) == 2
    if act.reply is not None:
        assert read_completion(form, act.reply).error is None


@given(st.sampled_from(sorted(FORMS)), st.text())
def test_a_text_is_a_move_exactly_where_the_form_reads_it(name: str, text: str) -> None:
    form = FORMS[name][0]
    act = MoveForm(form, form.tools).say(text)
    readable = read_completion(form, Completion(text)).error is None and (not form.tools or form.takes_text)
    assert (act.reply is not None) == readable and (act.error is None) == readable


@pytest.mark.parametrize(
    ("form", "tool", "arguments", "words"),
    [
        (LegalAction(("e4", "d4")), "reply", {"action": "e5"}, ["'e5'", "Available: d4, e4"]),
        (LegalAction(("e4", "d4")), "replay", {"action": "e4"}, ["no tool 'replay'", "Did you mean reply?"]),
        (LegalAction(("e4", "d4")), "reply", {"move": "e4"}, ["no argument 'move'", "it takes action"]),
        (LegalAction(("e4", "d4")), "reply", {}, ["action is missing", 'one of "e4", "d4"']),
        (Labelled(("WAIT", "GRAB")), "reply", {"action": "GRAP"}, ["Did you mean GRAB?"]),
        (Messages(("Emma",)), "reply", {"Ema": "hi"}, ["no argument 'Ema'", "it takes Emma"]),
        (Calls(VERBS), "send_message", {"target_id": "3"}, ["content is missing"]),
        (Calls(VERBS), END, {}, ["no call in this turn"]),
        (Calls(VERBS), "wait", {"text": "x"}, ["wait takes no arguments"]),
        (FreeText(), "reply", {"answer": " "}, ["empty"]),
        (FreeText(), "reply", {"answer": "x" * MAX_CHARS}, ["too long"]),
    ],
)
def test_a_refusal_says_what_would_be_right(
    form: Reply, tool: str, arguments: dict[str, Any], words: list[str]
) -> None:
    error = MoveForm(form).call(tool, arguments).error
    assert error is not None and all(word in error for word in words), error


def test_tools_are_those_of_the_form() -> None:
    choice = MoveForm(Choice(("Group 1", "Group 2")))
    assert choice.tools[0]["parameters"]["properties"]["answer"]["enum"] == ["Group 1", "Group 2"]
    assert MoveForm(Messages(("Emma", "Alan"))).tools[0]["parameters"]["properties"].keys() == {"Emma", "Alan"}
    assert MoveForm(Calls(VERBS)).names == [*(verb.name for verb in VERBS), END]
    assert MoveForm(Calls(VERBS, limit=1)).names == [verb.name for verb in VERBS]
    assert MoveForm(None).names == ["reply"]


def test_a_single_field_and_a_whole_reply_may_be_given_as_text() -> None:
    assert MoveForm(FreeText("ANSWER:")).call("reply", {"text": "rain"}).reply == acted(FreeText("ANSWER:"), "rain")
    spoken = FORMS["spoken"][0]
    act = MoveForm(spoken).call("reply", {"text": "MESSAGE: hi\nACTION: WAIT"})
    assert act.reply is not None and act.reply.text == "MESSAGE: hi\nACTION: WAIT"


def test_as_many_calls_as_a_turn_takes_end_it() -> None:
    form = Calls(VERBS, limit=2)
    first = MoveForm(form).call("send_message", {"target_id": "1", "content": "a"})
    assert first.call is not None
    second = MoveForm(form).call("wait", {}, [first.call])
    assert second.reply is not None and len(form.parse(second.reply.text).action) == 2
