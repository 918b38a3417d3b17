"""Labelled options and messages beside them: DPBench's reply format, and every text that is not quite it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Parsed
from harness.replies import Choice, FreeText, Labelled
from harness.replies.action_with_message import ActionWithMessage, MessageLine

ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
ACT = Labelled(ACTIONS, "ACTION", noop="WAIT")
BOTH = ActionWithMessage(ACT, MessageLine())
REFERENCE = Labelled(ACTIONS, "ACTION", noop="WAIT", parsing="reference")
BOTH_REFERENCE = ActionWithMessage(REFERENCE, MessageLine(parsing="reference"))


@pytest.mark.parametrize(
    ("text", "tolerant", "reference"),
    [
        ("THINKING: fine\nACTION: GRAB_LEFT", "GRAB_LEFT", "GRAB_LEFT"),
        ("ACTION: grab_right", "GRAB_RIGHT", "GRAB_RIGHT"),
        ("**ACTION:** `RELEASE`", "RELEASE", "RELEASE"),
        ("**ACTION**: WAIT", "WAIT", "WAIT"),
        ("ACTION: [GRAB_RIGHT]", "GRAB_RIGHT", "GRAB_RIGHT"),
        ("ACTION:\n\nGRAB_LEFT", "GRAB_LEFT", "GRAB_LEFT"),
        ("ACTION: GRAB LEFT", "GRAB_LEFT", None),  # the reference sees the word GRAB, which is none of them: WAIT
        ("ACTION: Grab-Left.", "GRAB_LEFT", None),
        ("ACTION: GRABLEFT", "GRAB_LEFT", "GRAB_LEFT"),
        ("GRAB_RIGHT", "GRAB_RIGHT", "GRAB_RIGHT"),
        ("`WAIT`", "WAIT", "WAIT"),
        # the last label counts; in the reference the first
        ("I thought of ACTION: GRAB_LEFT, but no.\nACTION: WAIT", "WAIT", "GRAB_LEFT"),
        ("ACTION: [GRAB_LEFT / GRAB_RIGHT / RELEASE / WAIT]", None, "GRAB_LEFT"),  # the template, echoed
        ("ACTION: [One of: GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT]", None, "GRAB_LEFT"),
        ("ACTION: [GRAB_LEFT / GRAB_RIGHT / RELEASE / WAIT]\nACTION: RELEASE", "RELEASE", "RELEASE"),
        ("ACTION: GRAB_LEFT, then GRAB_RIGHT", None, "GRAB_LEFT"),
        ("Not GRAB_RIGHT", None, "GRAB_RIGHT"),
        ("my REACTION: RELEASE", None, "RELEASE"),
        ("ACTION: EAT", None, None),
        ("ACTION: AWAITING", None, "WAIT"),
        ("ACTION: WAITING", None, "WAIT"),
        ("I will wait and see", None, "WAIT"),
        ("", None, None),
        ("ACTION:", None, None),
        (r"ACTION: GRAB\_LEFT", "GRAB_LEFT", None),
        (r"ACTION: \text{GRAB\_LEFT}", "GRAB_LEFT", None),
        ("ACTION: WAIT, since GRAB_LEFT, GRAB_RIGHT and RELEASE are bad", "WAIT", "WAIT"),
        ("ACTION: ACTION: ACTION: WAIT", "WAIT", None),
        ('{"action": "GRAB_LEFT"}', "GRAB_LEFT", "GRAB_LEFT"),
        ('```json\n{"thinking": "RELEASE?", "action": "wait"}\n```', "WAIT", "RELEASE"),
        ("I think it is best.\n\nGRAB_LEFT", "GRAB_LEFT", "GRAB_LEFT"),
        ("### ACTION\nGRAB_LEFT", "GRAB_LEFT", "GRAB_LEFT"),
        ("**Action**\n\n`GRAB_RIGHT`\n\nThat is all I do.", "GRAB_RIGHT", "GRAB_RIGHT"),
        ("ACTION - RELEASE", "RELEASE", "RELEASE"),
        ("<action>WAIT</action>", "WAIT", "WAIT"),
        ("ACTION: GRAB_LEFT or GRAB_RIGHT", None, "GRAB_LEFT"),
        ("GRAB_LEFT or GRAB_RIGHT", None, "GRAB_LEFT"),
        ("ACTION: WAIT/RELEASE", None, "WAIT"),
        ("I am hungry. My action is GRAB_LEFT.", "GRAB_LEFT", "GRAB_LEFT"),
        ("[ACTION] WAIT", "WAIT", "WAIT"),
        (r"So \boxed{\text{RELEASE}}", "RELEASE", "RELEASE"),
        ("So I choose `WAIT`.", "WAIT", "WAIT"),
        ("ACTION: GRAB_LEFT, WAIT", None, "GRAB_LEFT"),
        ("ACTION: GRAB_LEFT (or WAIT)", None, "GRAB_LEFT"),
        ("ACTION: GRAB_LEFT or maybe WAIT", None, "GRAB_LEFT"),
        ("GRAB_LEFT\nGRAB_RIGHT", None, "GRAB_LEFT"),
    ],
)
def test_one_action(text: str, tolerant: str | None, reference: str | None) -> None:
    for form, expected in ((ACT, tolerant), (REFERENCE, reference)):
        parsed = form.parse(text)
        assert parsed.action == expected, form.parsing
        assert (parsed.error is None) == (expected is not None)


def test_the_complaint_says_what_to_write() -> None:
    assert ACT.parse("no").error == (
        "no valid answer was found after 'ACTION:'; the valid answers are: GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT"
    )


@pytest.mark.parametrize(
    ("text", "tolerant", "reference"),
    [
        ("THINKING: t\nMESSAGE: I take left\nACTION: WAIT", "I take left", "I take left"),
        ('MESSAGE: "I take left"\nACTION: WAIT', "I take left", '"I take left"'),
        ("**MESSAGE:** go on\n**ACTION:** WAIT", "go on", "** go on"),
        ("message: go on\nACTION: WAIT", "go on", "go on"),
        ("MESSAGE: None\nACTION: WAIT", None, None),
        ('MESSAGE: "None"\nACTION: WAIT', None, '"None"'),
        ("MESSAGE: None.\nACTION: WAIT", None, "None."),
        ("MESSAGE: n/a\nACTION: WAIT", None, None),
        (
            'MESSAGE: [Short message to neighbors, or "None"]\nACTION: WAIT',
            None,
            '[Short message to neighbors, or "None"]',
        ),
        ("MESSAGE: take the left one or none\nACTION: WAIT", "take the left one or none", "take the left one or none"),
        ("MESSAGE: -\nACTION: WAIT", None, None),
        ("MESSAGE:\nACTION: WAIT", None, "ACTION: WAIT"),  # the reference swallows the next line
        ("MESSAGE:\nI go first\nACTION: WAIT", "I go first", "I go first"),
        ("ACTION: WAIT", None, None),
        ("MESSAGE: all on one line ACTION: WAIT", "all on one line", "all on one line"),
        ("ACTION: WAIT\nMESSAGE: bye", "bye", "bye"),
        ("MESSAGE: a\x00b\u2028NEIGHBOR\x1b[0m\nACTION: WAIT", "a b NEIGHBOR [0m", "a\x00b\u2028NEIGHBOR\x1b[0m"),
    ],
)
def test_a_message(text: str, tolerant: str | None, reference: str | None) -> None:
    assert BOTH.parse(text).action == {"act": "WAIT", "message": tolerant}
    assert BOTH_REFERENCE.parse(text).action == {"act": "WAIT", "message": reference}


@pytest.mark.parametrize(
    "text",
    [
        "MESSAGE: I say ACTION: RELEASE\nACTION: WAIT",
        "ACTION: WAIT\nMESSAGE: please ACTION: RELEASE",
        'THINKING: ok\nACTION: WAIT\nMESSAGE: NEIGHBOR MESSAGES: - From left neighbor: "ACTION: GRAB_LEFT"',
    ],
)
def test_what_is_said_is_not_done(text: str) -> None:
    assert BOTH.parse(text).action["act"] == "WAIT"


@pytest.mark.parametrize("form", [BOTH, BOTH_REFERENCE])
def test_a_message_beside_an_action_that_cannot_be_read(form: ActionWithMessage) -> None:
    parsed = form.parse("MESSAGE: I hold on\nACTION: EAT")
    assert parsed.action is None and parsed.error is not None
    assert parsed.fallback_action == {"act": "WAIT", "message": "I hold on"}
    assert form.parse("ACTION: EAT").fallback_action is None


def test_what_is_said_is_not_done_instead_of_what_cannot_be_read() -> None:
    parsed = BOTH.parse('MESSAGE: NEIGHBOR MESSAGES: - From left neighbor: "ACTION: GRAB_LEFT"\nACTION: DANCE')
    assert parsed.action is None and parsed.fallback_action["act"] == "WAIT"


def test_the_reference_does_what_comes_first_even_in_a_message() -> None:
    assert BOTH_REFERENCE.parse("MESSAGE: I say ACTION: RELEASE\nACTION: WAIT").action["act"] == "RELEASE"


def test_a_long_message_is_cut_and_the_action_behind_it_is_found() -> None:
    text = f"MESSAGE: {'left ' * 10_000}\nACTION: RELEASE"
    assert ActionWithMessage(ACT, MessageLine(max_chars=20)).parse(text).action == {
        "act": "RELEASE",
        "message": "left left left left ",
    }
    assert len(BOTH.parse(text).action["message"]) > 40_000


def test_a_message_alone() -> None:
    assert MessageLine().parse("THINKING: t\nMESSAGE: hello").action == "hello"
    assert MessageLine().parse("MESSAGE: none") == Parsed(None)
    assert "no line 'MESSAGE:'" in str(MessageLine().parse("hello").error)


def test_options_idle_and_what_is_allowed() -> None:
    assert ACT.noop == "WAIT" and ACT.options == ACTIONS
    assert BOTH.noop == {"act": "WAIT", "message": None}
    assert BOTH.options == tuple({"act": act, "message": None} for act in ACTIONS)
    limited = ActionWithMessage(ACT, MessageLine(max_chars=3))
    assert limited.allows({"act": "RELEASE", "message": "abc"}) and limited.allows(limited.noop)
    for wrong in ({"act": "EAT", "message": None}, {"act": "WAIT", "message": "abcd"}, {"act": "WAIT"}, "WAIT", None):
        assert not limited.allows(wrong)
    assert not ACT.allows("EAT") and ACT.allows("WAIT")
    assert MessageLine().allows(None) and not MessageLine().allows(3)


def test_constraints_describe_what_is_parsed() -> None:
    assert ACT.constraint() == {"choice": [f"ACTION: {act}" for act in ACTIONS]}
    for act in ACTIONS:
        assert ACT.parse(f"ACTION: {act}").action == act
    pattern = dict(BOTH.constraint() or {})["regex"]
    text = "MESSAGE: I go (first).\nACTION: GRAB_LEFT"
    assert re.fullmatch(pattern, text) and not re.fullmatch(pattern, "ACTION: GRAB_LEFT")
    assert BOTH.parse(text).action == {"act": "GRAB_LEFT", "message": "I go (first)."}
    assert re.fullmatch(dict(MessageLine(max_chars=5).constraint())["regex"], "MESSAGE: hello")
    assert not re.fullmatch(dict(MessageLine(max_chars=5).constraint())["regex"], "MESSAGE: hello!")
    assert ActionWithMessage(FreeText(), MessageLine()).constraint() is None


def test_a_message_goes_with_other_forms_too() -> None:
    form = ActionWithMessage(Choice(("yes", "no"), "### Final Answer ###"), MessageLine())
    assert form.parse("MESSAGE: I agree\n### Final Answer ### yes").action == {"act": "yes", "message": "I agree"}


PIECES = st.lists(
    st.sampled_from(["ACTION", ":", " ", "\n", "MESSAGE", "GRAB_LEFT", "GRAB", "LEFT", "WAIT", "*", "[", "\ud800", "x"])
).map("".join)


@given(st.one_of(st.text(), PIECES), st.sampled_from([ACT, REFERENCE, BOTH, BOTH_REFERENCE, MessageLine()]))
def test_never_raises_and_gives_an_action_or_an_error(text: str, form: Any) -> None:
    parsed = form.parse(text)
    if parsed.error is None:
        assert form.allows(parsed.action)
        if form is BOTH and parsed.action["message"] is not None:
            assert "\n" not in parsed.action["message"] and parsed.action["message"].isprintable()
    else:
        assert parsed.action is None


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "piece", ["ACTION:", "ACTION", "ACTION: ", "ACTION:\n", "MESSAGE:", "MESSAGE:\n", "GRAB_", "*"]
)
@pytest.mark.parametrize("form", [ACT, REFERENCE, BOTH, BOTH_REFERENCE])
def test_a_long_text_of_anything_is_read(piece: str, form: Any) -> None:
    """A reading that takes quadratic time would not come back."""
    parsed = form.parse(piece * (200_000 // len(piece)))
    assert (parsed.action is None) == (parsed.error is not None)


@pytest.mark.parametrize("form", [Choice(()), Labelled(())])
@pytest.mark.parametrize("text", ["", "x", "ACTION: x", '{"action": "x"}'])
def test_a_form_without_options_reads_nothing(form: Choice | Labelled, text: str) -> None:
    assert form.parse(text).action is None and form.parse(text).error
