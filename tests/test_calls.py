"""Named calls in a text: what is read, what is refused with a reason, and that nothing raises."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.replies import Calls, Verb

VERBS = (
    Verb("send_message", ("target_id",), "content"),
    Verb("receive_messages"),
    Verb("list_files", (), None, ("prefix",)),
    Verb("wait"),
    Verb("submit_result", (), "answer"),
)
FORM = Calls(VERBS, limit=5)
SENT = {"call": "send_message", "target_id": "3", "content": "the sum is 12"}


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('<send_message target_id="3">the sum is 12</send_message>', [SENT]),
        ("<send_message target_id='3'>the sum is 12</send_message>", [SENT]),
        ("<send_message target_id=3> the sum is 12 </send_message>", [SENT]),
        ('< SEND_MESSAGE target_id = "3" >the sum is 12</ send_message >', [SENT]),
        ("<send_message><target_id>3</target_id><content>the sum is 12</content></send_message>", [SENT]),
        ("I will wait. <wait/>", [{"call": "wait"}]),
        ("<wait>", [{"call": "wait"}]),
        ("<wait></wait>", [{"call": "wait"}]),
        ("```xml\n<receive_messages />\n<wait/>\n```", [{"call": "receive_messages"}, {"call": "wait"}]),
        ("<list_files/>", [{"call": "list_files", "prefix": ""}]),
        ('<list_files prefix="a/"/>', [{"call": "list_files", "prefix": "a/"}]),
        ("<submit_result>[1, 2]</submit_result>", [{"call": "submit_result", "answer": "[1, 2]"}]),
        ("<submit_result>a < b > c</submit_result>", [{"call": "submit_result", "answer": "a < b > c"}]),
        ("<think><b>hm</b></think><wait/>", [{"call": "wait"}]),
        (
            "<submit_result><wait/></submit_result>",
            [{"call": "submit_result", "answer": "<wait/>"}],
        ),
    ],
)
def test_what_is_read(text: str, calls: list[dict[str, str]]) -> None:
    parsed = FORM.parse(text)
    assert parsed.error is None and parsed.action == calls
    assert FORM.allows(parsed.action)


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        ("<send_message>hi</send_message>", "send_message", "target_id is missing; write <send_message target_id="),
        ('<send_message target_id="">hi</send_message>', "send_message", "target_id is missing"),
        ('<send_message target_id="3">hi', "send_message", "</send_message> is missing"),
        ("<submit_result>42", "submit_result", "</submit_result> is missing"),
        ("<send_mesage target_id='3'>hi</send_mesage>", "send_mesage", "there is no send_mesage; there are: send_mess"),
        ("<read_file path='x'/>", "read_file", "there is no read_file"),
    ],
)
def test_what_is_refused_and_why(text: str, name: str, why: str) -> None:
    [call] = FORM.parse(text).action
    assert call["call"] == name and why in call["error"]


def test_a_text_without_calls_is_an_error_that_shows_one() -> None:
    for text in ("", "I wait.", "<b>", "send_message(3, hi)", "<<<>>>", "< >"):
        assert FORM.parse(text).error == (
            'no call was found; write one such as <send_message target_id="…">content</send_message>'
        )


def test_ten_thousand_calls_are_counted_and_not_kept() -> None:
    action = FORM.parse('<send_message target_id="1">x</send_message>' * 10_000).action
    assert len(action) == 6 and action[-1] == {"call": "", "skipped": 9995}


def test_what_is_allowed() -> None:
    assert FORM.allows(FORM.noop) and FORM.allows([]) and FORM.options is None
    for wrong in (None, "wait", [{"call": "eat"}], [{"call": "wait", "x": 1}], [{"call": "wait"}] * 6, ["wait"]):
        assert not FORM.allows(wrong)


def test_the_constraint_describes_what_is_read() -> None:
    pattern = dict(FORM.constraint())["regex"]
    text = '<send_message target_id="3">the sum is 12</send_message>\n<receive_messages/>\n<wait/>\n'
    assert re.fullmatch(pattern, text) and not re.fullmatch(pattern, "hello")
    assert [call["call"] for call in FORM.parse(text).action] == ["send_message", "receive_messages", "wait"]


PIECES = st.lists(
    st.sampled_from(
        [
            "<",
            ">",
            "/",
            "send_message",
            "</send_message>",
            "<wait/>",
            ' target_id="',
            '"',
            "=",
            "x",
            "\n",
            "\ud800",
            "<a_b>",
        ]
    )
).map("".join)


@given(st.one_of(st.text(), PIECES))
def test_never_raises(text: str) -> None:
    parsed = FORM.parse(text)
    assert (parsed.action is None) == (parsed.error is not None)
    for call in parsed.action or ():
        assert all(isinstance(value, str | int) for value in call.values())


@pytest.mark.parametrize(
    "piece", ["<", "<a", '<send_message target_id="1">', "<wait", '<send_message a="', "</send_message>", "<a_b>"]
)
def test_a_megabyte_of_anything_is_read(piece: str) -> None:
    """A reading that takes quadratic time would not come back."""
    parsed: Any = FORM.parse(piece * (1_000_000 // len(piece)))
    assert (parsed.action is None) == (parsed.error is not None)


def test_a_call_that_is_not_closed_swallows_none_of_the_same_name() -> None:
    text = '<send_message target_id="1">one <send_message target_id="2">two</send_message>'
    first, second = FORM.parse(text).action
    assert first["error"].startswith("</send_message> is missing") and second["target_id"] == "2"
    assert second["content"] == "two"


def test_an_unquoted_value_before_the_end_of_an_element() -> None:
    [call] = FORM.parse("<submit_result answer=42/>").action
    assert call == {"call": "submit_result", "answer": "42"}


def test_an_element_without_its_text_is_reported() -> None:
    [call] = FORM.parse('<send_message target_id="1"/>').action
    assert call["error"].startswith("content is missing")
