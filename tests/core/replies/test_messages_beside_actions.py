"""A message is read wherever the action of the same reply is, and a reply without one can be told from silence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.games.actions import ActionForm, ActionParameter, Actions
from harness.extensions.games.legal import LegalAction
from harness.replies import Labelled
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from tests.helpers.linear import steps

ACTIONS = ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT")
LINE = MessageLine()
FORM = ActionWithMessage(Labelled(ACTIONS, "ACTION", "WAIT"), LINE)
OFFERS = ActionWithMessage(Actions((ActionForm("OFFER", (ActionParameter("amount", "integer", 1, 9),)),)), LINE)
MOVES = ActionWithMessage(LegalAction(ACTIONS), LINE)
SAID = "I take left, you wait"

FRAMES = {
    "labels": "THINKING: ok\nMESSAGE: {m}\nACTION: {a}",
    "labels, action first": "ACTION: {a}\nMESSAGE: {m}",
    "bold labels": "**Message:** {m}\n**Action:** `{a}`",
    "bold colons": "**MESSAGE**: {m}\n**ACTION**: {a}",
    "a list": "- Message: {m}\n- Action: {a}",
    "labels alone": "MESSAGE:\n{m}\n\nACTION:\n{a}",
    "headings": "### THINKING\nhm\n\n### MESSAGE\n{m}\n\n### ACTION\n{a}",
    "headings with colons": "## Message:\n\n{m}\n\n## Action:\n\n{a}",
    "bold headings": "**Message**\n{m}\n\n**Action**\n{a}",
    "bare headings": "Message\n{m}\n\nACTION: {a}",
    "headings to neighbors": "### Message to neighbors\n{m}\n### Action\n{a}",
    "elements": "<thinking>hm</thinking>\n<message>{m}</message>\n<action>{a}</action>",
    "elements on lines": "<message>\n{m}\n</message>\n<action>\n{a}\n</action>",
    "elements with attributes": '<message to="all">{m}</message><action>{a}</action>',
    "elements in capitals": "<MESSAGE>{m}</MESSAGE>\n<ACTION>{a}</ACTION>",
    "an open element": "<message>{m}\n<action>{a}</action>",
    "brackets": "[MESSAGE] {m}\n[ACTION] {a}",
    "dashes": "MESSAGE - {m}\nACTION - {a}",
    "bold dashes": "**MESSAGE** – {m}\n**ACTION** – {a}",
    "arrows": "MESSAGE -> {m}\nACTION: {a}",
    "equals": "MESSAGE = {m}\nACTION = {a}",
    "to neighbors": "MESSAGE TO NEIGHBORS: {m}\nACTION: {a}",
    "bold to neighbors": "**Message to my neighbors:** {m}\n**Action:** {a}",
    "in brackets to": "MESSAGE (to both neighbors): {m}\nACTION: {a}",
    "my message": "My message: {m}\nMy action: {a}",
    "json": '{{"thinking": "hm", "message": "{m}", "action": "{a}"}}',
    "json, action first": '{{"action": "{a}", "message": "{m}"}}',
    "json in a fence": 'Here it is:\n```json\n{{\n  "message": "{m}",\n  "action": "{a}"\n}}\n```',
    "json below a label": 'Here is my message:\n```json\n{{"message": "{m}", "action": "{a}"}}\n```',
    "json in capitals": '{{"THINKING": "hm", "MESSAGE": "{m}", "ACTION": "{a}"}}',
    "json in json": '{{"response": {{"message": "{m}", "action": "{a}"}}}}',
    "json to neighbors": '{{"message_to_neighbors": "{m}", "action": "{a}"}}',
    "json with single quotes": "{{'message': '{m}', 'action': '{a}'}}",
    "json with a comment": '{{"message": "{m}", // for both\n "action": "{a}"}}',
    "json without its end": '{{"message": "{m}", "action": "{a}"',
    "json with quotes in it": '{{"thinking": "the "left" one", "message": "{m}", "action": "{a}"}}',
    "json beside a label": 'MESSAGE: {m}\n{{"action": "{a}"}}',
    "thinking that mentions both": (
        '{{"thinking": "I could say MESSAGE: no and ACTION: RELEASE", "message": "{m}", "action": "{a}"}}'
    ),
    "thinking in an element": "<think>MESSAGE: no\nACTION: RELEASE</think>\nMESSAGE: {m}\nACTION: {a}",
    "label, fenced": "MESSAGE:\n```\n{m}\n```\nACTION: {a}",
    "label, fenced last": "ACTION: {a}\nMESSAGE:\n```\n{m}\n```",
    "label, fenced as text": "MESSAGE:\n\n```text\n{m}\n```\n\nACTION:\n```\n{a}\n```",
    "label, fence on its line": "MESSAGE: ```\n{m}\n```\nACTION: {a}",
    "label, fence as text on its line": "**MESSAGE:** ```text\n{m}\n```\n**ACTION:** {a}",
    "label, fence never closed": "MESSAGE:\n```\n{m}\nACTION: {a}",
    "label to neighbors, fenced": "MESSAGE TO NEIGHBORS:\n```\n{m}\n```\nACTION: {a}",
    "heading, fenced": "### MESSAGE\n```\n{m}\n```\n\n### ACTION\n{a}",
    "heading, fenced as text": "**Message**\n\n```text\n{m}\n```\n\n**Action**\n\n```text\n{a}\n```",
    "element, fenced": "<message>\n```text\n{m}\n```\n</message>\n<action>{a}</action>",
    "both in one fence": "```\nMESSAGE:\n{m}\nACTION: {a}\n```",
    "both in the fence of the message": "MESSAGE:\n```\n{m}\nACTION: {a}\n```",
    "json in a fence on the label's line": 'My message: ```json\n{{"message": "{m}", "action": "{a}"}}\n```',
    "broken json in a fence below a label": 'Message:\n```json\n{{"message": "{m}", "action": "{a}"\n```',
    "json without a comma": '{{"message": "{m}" "action": "{a}"}}',
    "json without a comma, action first": '{{"action": "{a}" "message": "{m}"}}',
    "json with an object of one text": '{{"Message": {{"text": "{m}"}}, "Action": "{a}"}}',
    "json with an addressed object": '{{"message": {{"to": "all", "content": "{m}"}}, "action": "{a}"}}',
    "json with a list of one text": '{{"message": [{{"type": "text", "text": "{m}"}}], "action": "{a}"}}',
    "object of one text behind a label": 'MESSAGE: {{"text": "{m}"}}\nACTION: {a}',
    "object of one text below a label": 'MESSAGE:\n{{"text": "{m}"}}\nACTION: {a}',
    "object of one text in a fence": 'MESSAGE:\n```json\n{{"text": "{m}"}}\n```\nACTION: {a}',
    "one line": "MESSAGE: {m} ACTION: {a}",
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("action", ["GRAB_LEFT", "WAIT"])
def test_the_message_is_read_where_the_action_is(frame: str, action: str) -> None:
    text = FRAMES[frame].format(m=SAID, a=action)
    assert FORM.parse(text).action == {"act": action, "message": SAID}
    assert LINE.parse(text).error is None


@pytest.mark.parametrize("frame", FRAMES)
def test_none_is_silence_in_every_form(frame: str) -> None:
    text = FRAMES[frame].format(m="None", a="RELEASE")
    assert FORM.parse(text).action == {"act": "RELEASE", "message": None}
    assert LINE.parse(text).error is None


@pytest.mark.parametrize("frame", [frame for frame in FRAMES if frame not in ("one line", "json with quotes in it")])
def test_what_is_said_is_not_done_in_any_form(frame: str) -> None:
    text = FRAMES[frame].format(m="no, ACTION: RELEASE", a="GRAB_RIGHT")
    assert FORM.parse(text).action == {"act": "GRAB_RIGHT", "message": "no, ACTION: RELEASE"}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_message_alone_is_read_in_every_form(frame: str) -> None:
    if frame != "one line":
        assert LINE.parse(FRAMES[frame].format(m=SAID, a="WAIT")).action == SAID


@pytest.mark.parametrize(
    "text",
    [
        "ACTION: WAIT",
        "THINKING: a message would not help.\nACTION: WAIT",
        '{"thinking": "no message: none", "action": "WAIT"}',
        "<thinking>MESSAGE: I could say so</thinking>\nACTION: WAIT",
        "The message-passing is over.\nACTION: WAIT",
        "I send nothing.\n\nWAIT",
        "",
    ],
)
def test_a_reply_without_a_message_is_told_from_silence(text: str) -> None:
    assert LINE.parse(text).error is not None
    assert (FORM.parse(text).action or {"message": None})["message"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"message": null, "action": "WAIT"}', None),
        ('{"message": "", "action": "WAIT"}', None),
        ('{"message": {"left": "wait"}, "action": "WAIT"}', '{"left": "wait"}'),
        ('{"message": "two\\nlines", "action": "WAIT"}', "two lines"),
        ("### MESSAGE\nI take left.\nYou wait.\n### ACTION\nWAIT", "I take left. You wait."),
        ("MESSAGE:\n```\nI take left.\n\nYou wait.\n```\nACTION: WAIT", "I take left. You wait."),
        ("MESSAGE:\n```\nplan: left\nACTION: RELEASE\n```\nACTION: WAIT", "plan: left ACTION: RELEASE"),
        ("MESSAGE:\n```\n```\nACTION: WAIT", None),
        ('MESSAGE:\n```json\n{"left": "go"}\n```\nACTION: WAIT', '{"left": "go"}'),
        ('MESSAGE:\n```json\n{"action": "WAIT"}\n```', None),
        ('MESSAGE:\n{"action": "WAIT"}', None),
        ('{"message": {"text": "a", "content": "b"}, "action": "WAIT"}', '{"text": "a", "content": "b"}'),
        ('{"message": {"text": null}, "action": "WAIT"}', None),
        ('{"message": {"text": {"body": "a"}}, "action": "WAIT"}', "a"),
        ("MESSAGE:\nI take left.\nWAIT", "I take left."),
        ("MESSAGE: <message>hi</message>\nACTION: WAIT", "hi"),
        ('MESSAGE: {"left": "go", "right": "wait"}\nACTION: WAIT', '{"left": "go", "right": "wait"}'),
        ('THINKING: Ann wrote {"message": "old", "action": "GRAB_LEFT"}\nMESSAGE: new\nACTION: WAIT', "new"),
        ("MESSAGE TO LEFT: a\nMESSAGE TO RIGHT: b\nACTION: WAIT", "b"),
    ],
)
def test_messages(text: str, message: str | None) -> None:
    assert FORM.parse(text).action == {"act": "WAIT", "message": message}


def test_other_forms_of_actions_have_messages_in_every_form_too() -> None:
    said = {"message": "deal?", "action": "OFFER", "amount": 3}
    for text in (
        json.dumps(said),
        "MESSAGE - deal?\nACTION: OFFER 3",
        "### Message\ndeal?\n\n### Action: OFFER amount=3",
    ):
        assert OFFERS.parse(text).action == {"act": {"action": "OFFER", "amount": 3}, "message": "deal?"}
    assert MOVES.parse('{"message": "check", "action": "WAIT"}').action == {"act": "WAIT", "message": "check"}


plain = st.text(
    st.characters(categories=("L", "N", "P", "Zs"), exclude_characters="\"\\{}[]()<>*_`'“”‘’«»:："), min_size=1
)


@given(plain.map(str.strip).filter(lambda text: text.strip(" .!-–—") and text[0].isalnum() and text[-1].isalnum()))
def test_a_json_reply_says_what_a_labelled_one_says(message: str) -> None:
    labels = FORM.parse(f"MESSAGE: {message}\nACTION: WAIT")
    assert FORM.parse(json.dumps({"message": message, "action": "WAIT"})) == labels
    assert FORM.parse(f"<message>{message}</message><action>WAIT</action>") == labels


PIECES = st.lists(
    st.sampled_from([
        *("MESSAGE", "message", "ACTION", ":", " ", "\n", "WAIT", "GRAB_LEFT", "{", "}", '"', ",", "<", ">", "/"),
        *("### ", "- ", "[", "]", "<message>", "</message>", "<think>", "</think>", " to ", "```", "//", "null"),
        *('"message": "', "```\n", "MESSAGE:\n```\n", '{"text": "', '"}'),
    ])
).map("".join)  # fmt: skip


@given(PIECES | st.text())
def test_no_text_raises_and_a_message_is_one_line(text: str) -> None:
    for form in (FORM, OFFERS, MOVES):
        parsed = form.parse(text)
        assert parsed.error is not None or form.allows(parsed.action)
        message = (parsed.action or parsed.fallback_action or {"message": None})["message"]
        assert message is None or (message.isprintable() and LINE.parse(text).error is None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "text",
    [
        *("MESSAGE:\n```\n", "### MESSAGE\n```\nx\n", "MESSAGE: ```\n", "```\n", "MESSAGE:\n_", "MESSAGE:\n{"),
        *('MESSAGE:\n```json\n{"text": "', '{"message": {"text": ', '"message": "x" ', '{"message": "x" "action": '),
    ],
)
def test_messages_are_read_in_linear_time(text: str) -> None:
    for long in (lambda n: text * (n // len(text)), lambda n: text + "_" * n, lambda n: text + "x\n" * (n // 2)):
        assert steps(FORM, long(20_000)) <= 2.3 * steps(FORM, long(10_000)) + 300


@pytest.mark.parametrize("form", [FORM, MOVES], ids=["with an idle act", "without one"])
def test_a_message_beside_an_unreadable_action_is_heard(form: ActionWithMessage) -> None:
    parsed = form.parse("MESSAGE: hi all\nACTION: zzz")
    assert parsed.error is not None
    assert parsed.fallback_action == {"act": form.act.noop, "message": "hi all"}
