"""Named calls in a text: what is read, what is refused with a reason, and that nothing raises."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.networks.calls import Calls, Verb

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


SUBMIT = "<submit_result>5</submit_result>"
WAITED = [{"call": "wait"}]


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{SUBMIT}</think><wait/>",
        f"<thinking>\nI could {SUBMIT} now.\n</thinking>\n<wait/>",
        f"<Thinking about='it'>{SUBMIT}</thinking> <wait/>",
        f"<reasoning>{SUBMIT}</reasoning><scratchpad>{SUBMIT}</scratchpad><wait/>",
        f"{SUBMIT} would be early.</think>\n<wait/>",  # the chat template has written the opening tag
        f"<wait/><think>Or {SUBMIT}?",  # cut while it thought
        f"<wait/>\n<think>Or {SUBMIT}?</think>",
        f"I will not write `{SUBMIT}` yet.\n<wait/>",
        f"I will not write ``{SUBMIT}`` yet. <wait/>",
        "I will not write `<submit_result>\n5\n</submit_result>` yet.\n<wait/>",
        f'To end I would write "{SUBMIT}", later. <wait/>',
        f"Ann wrote “{SUBMIT}”, I do not: <wait/>",
        "Later I use `<submit_result>`, and it ends. <wait/> Not yet `</submit_result>`.",
        f"> {SUBMIT}\n<wait/>",
        f"<!-- {SUBMIT} -->\n<wait/>",
        "I will not call submit_result(5) yet.\nwait()",
        f"```\n<thinking>{SUBMIT}</thinking>\n<wait/>\n```",
    ],
)
def test_what_is_thought_or_only_mentioned_is_not_carried_out(text: str) -> None:
    assert FORM.parse(text).action == WAITED
    alone = FORM.parse(text.replace("<wait/>", "").replace("wait()", ""))
    assert alone.action is None and (alone.error or "").startswith("no call was found")
    assert "submit_result(5)" in text or "outside of thinking and quotations" in (alone.error or "")


@pytest.mark.parametrize(
    "text",
    [
        f"`{SUBMIT}`", f"So:\n- `{SUBMIT}`.", f'"{SUBMIT}"', f"So I submit: {SUBMIT}", f"**{SUBMIT}**",
        f"```\n{SUBMIT}\n```", f"```xml\n{SUBMIT}```", f'{{"thought": "done", "action": "{SUBMIT}"}}',
        f"1. {SUBMIT}", f"Use the tag <think/> if you like. {SUBMIT}", f"My analysis: {SUBMIT} <analysis> is short",
        "submit_result(5)", "So it is 5.\n`submit_result(5)`", "```python\nsubmit_result(answer=5);\n```",
        "- submit_result('5')",
    ],
)  # fmt: skip
def test_what_stands_for_itself_is_carried_out_in_whatever_marks(text: str) -> None:
    assert FORM.parse(text).action == [{"call": "submit_result", "answer": "5"}]


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("submit_result(959)", {"call": "submit_result", "answer": "959"}),
        ("submit_result([1, 2], [3])", {"call": "submit_result", "answer": "[1, 2], [3]"}),
        ('submit_result({"a": 1})', {"call": "submit_result", "answer": '{"a": 1}'}),
        ("send_message(3, the sum is 12)", SENT),
        ('send_message("3", "the sum is 12")', SENT),
        ('send_message(content="the sum is 12", target_id=3)', SENT),
        ("list_files()", {"call": "list_files", "prefix": ""}),
        ("list_files(prefix='a/')", {"call": "list_files", "prefix": "a/"}),
        ("wait()", {"call": "wait"}),
    ],
)
def test_a_function_on_a_line_of_its_own_is_a_call(text: str, call: dict[str, str]) -> None:
    assert FORM.parse(text).action == [call]
    assert FORM.parse(f"I do it.\n{text}\n").action == [call]
    assert FORM.parse(f"I could do {text} later.").action is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("send_message(3)", "content is missing; write <send_message"),
        ("send_message()", "target_id is missing"),
        ("submit_result()", "answer is missing"),
        ("wait(5)", "'5' is too much; write <wait/>"),
    ],
)
def test_a_function_without_its_arguments_is_refused(text: str, why: str) -> None:
    [call] = FORM.parse(text).action
    assert why in call["error"]


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


def test_a_text_without_calls_is_an_error_that_shows_all() -> None:
    for text in ("", "I wait.", "<b>", "say(3, hi)", "<<<>>>", "< >"):
        error = FORM.parse(text).error
        assert error.startswith("no call was found; write one or more of: <send_message target_id=")
        assert all(verb.usage in error for verb in FORM.verbs)


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
            *(
                "<think>",
                "</think>",
                "<thinking>",
                "</reasoning>",
                "<reasoning>",
                "`",
                "``",
                "```",
                "> ",
                "<!--",
                "-->",
            ),
            *("wait(", "submit_result(", ")", ",", "answer="),
        ]
    )
).map("".join)


@given(PIECES)
def test_nothing_thought_or_quoted_is_carried_out_whatever_it_is(piece: str) -> None:
    inside = re.sub(r"think|[`\n<>]", "", piece) + "<submit_result>8</submit_result>"
    submitted = {"call": "submit_result", "answer": "8"}
    assert submitted not in FORM.parse(f"<think>{inside}</think> <wait/>").action
    assert submitted not in FORM.parse(f"Not `{inside}` now. <wait/>").action


@given(st.one_of(st.text(), PIECES))
def test_never_raises(text: str) -> None:
    parsed = FORM.parse(text)
    assert (parsed.action is None) == (parsed.error is not None)
    for call in parsed.action or ():
        assert all(isinstance(value, str | int) for value in call.values())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "piece",
    [
        *("<", "<a", '<send_message target_id="1">', "<wait", '<send_message a="', "</send_message>", "<a_b>"),
        *("<think>", "</think>", "<reasoning>", "<analysis>x", "`<wait/>", "`<wait/>`", "<!--", "> <wait/>"),
        *("wait(", "wait()\n"),
    ],
)
def test_a_long_text_of_anything_is_read(piece: str) -> None:
    """A reading that takes quadratic time would not come back."""
    parsed: Any = FORM.parse(piece * (200_000 // len(piece)))
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
