"""Actions with parameters: how models write them, and what is no action."""

import json
import re
from typing import Any

import pytest

from harness.extensions.games.actions import ActionForm, ActionParameter, Actions, action_text
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from tests.core.replies.every_form import MOVES

FISH = Actions((ActionForm("FISH", (ActionParameter("tonnes", "integer", 1, 10),)), ActionForm("REST")))
MOVE = Actions(
    (ActionForm("MOVE", (ActionParameter("to", "one_of", values=("north", "north-east")),)), ActionForm("STAY"))
)


@pytest.mark.parametrize(
    ("text", "tonnes"),
    [
        ("ACTION: FISH tonnes=3", 3),
        ("ACTION: FISH 3", 3),
        ("ACTION: FISH(3)", 3),
        ("ACTION: FISH(tonnes=3)", 3),
        ("ACTION: FISH tonnes = 3.", 3),
        ("ACTION: FISH, tonnes: 3 tonnes", 3),
        ("ACTION: FISH 3 tonnes", 3),
        ("ACTION: FISH 3 (of 10 possible)", 3),
        ("ACTION: FISH 3.0", 3),
        ("ACTION: FISH {\"tonnes\": 3}", 3),
        ("**ACTION:** `FISH tonnes=3`", 3),
        ("ACTION: **FISH** tonnes=**3**", 3),
        ("action: fish 3", 3),
        ("ACTION:\nFISH 3", 3),
        ("ACTION: FISH\nTONNES: 3", 3),
        ("tonnes: 3\nACTION: FISH", 3),
        ("ACTION: FISH 9\nNo, that is too much.\nACTION: FISH 3", 3),
        ("I could FISH 9.\n\nFISH 3", 3),
        ('```json\n{"action": "FISH", "tonnes": 3}\n```', 3),
        ('{"action": "fish", "arguments": {"tonnes": "3"}}', 3),
        ('{"action": {"name": "FISH", "tonnes": 3}}', 3),
        ('{"name": "FISH", "arguments": {"tonnes": 3}}', 3),
        ("ACTION: FISH", "tonnes is missing; it must be a whole number from 1 to 10. Write 'ACTION: "),
        ("ACTION: FISH 11", "tonnes is '11'; it must be a whole number from 1 to 10."),
        ("ACTION: FISH -1", "tonnes is '-1'"),
        ("ACTION: FISH 2.5", "tonnes is '2.5'"),
        ("ACTION: FISH 3 or 4", "tonnes is '3 or 4'"),
        ("ACTION: FISH 3-5", "tonnes is '3-5'"),
        ("ACTION: FISH some", "tonnes is 'some'"),
        ("ACTION: FISH or REST", "no valid action was found after 'ACTION:'; the actions are: FISH tonnes="),
        ("I do nothing.", "no valid action"),
        ("", "no valid action"),
    ],
)  # fmt: skip
def test_one_parameter(text: str, tonnes: Any) -> None:
    parsed = FISH.parse(text)
    if isinstance(tonnes, int):
        assert parsed.action == {"action": "FISH", "tonnes": tonnes}
    else:
        assert parsed.action is None and tonnes in str(parsed.error)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("ACTION: OFFER 3 2.5 Bob", ["OFFER", 3, 2.5, "Bob"]),
        ("ACTION: OFFER 3, 2.5, Bob", ["OFFER", 3, 2.5, "Bob"]),
        ("ACTION: offer(3, 2.5, to_whom=ann)", ["OFFER", 3, 2.5, "Ann"]),
        ("ACTION: OFFER to whom: 3, price: $2, amount: 1", ["OFFER", 1, 2, 3]),
        ("ACTION: SAY text=hello there, Bob: go!", ["SAY", "hello there, Bob: go!"]),
        ("ACTION: SAY hello (or not)", ["SAY", "hello (or not)"]),
        ('ACTION: SAY("hello")', ["SAY", "hello"]),
        ("ACTION: SAY " + "x" * 60, ["SAY", "x" * 40]),
        ("ACTION: WAIT.", ["WAIT"]),
        ("I'd better do nothing.\nWAIT", ["WAIT"]),
    ],
)
def test_several_parameters(text: str, action: list[Any]) -> None:
    parsed = MOVES.parse(text)
    assert parsed.error is None and list(parsed.action.values()) == action and MOVES.allows(parsed.action)


def test_options_and_what_is_allowed() -> None:
    assert FISH.options == (*({"action": "FISH", "tonnes": k} for k in range(1, 11)), {"action": "REST"})
    assert MOVES.options is None  # a text can be anything
    assert Actions((ActionForm("A", (ActionParameter("k", "integer", 1, 10**9),)),)).options is None  # too many
    wrong = [
        None, "REST", {"action": "FISH"}, {"action": "FISH", "tonnes": 0}, {"action": "FISH", "tonnes": True},
        {"action": "FISH", "tonnes": 2.0}, {"action": "REST", "tonnes": 2}, {"action": "GO"}, {"tonnes": 2}, [],
    ]  # fmt: skip
    assert not any(FISH.allows(action) for action in wrong) and all(map(FISH.allows, FISH.options))
    assert MOVE.parse("ACTION: MOVE to=north-east").action == {"action": "MOVE", "to": "north-east"}


@pytest.mark.parametrize("form", [FISH, MOVE, MOVES])
def test_what_constrained_decoding_writes_is_read(form: Actions) -> None:
    constraint = form.constraint()
    texts = constraint.get("choice", ["ACTION: SAY text=a (b) c=d", "ACTION: WAIT"])
    for text in texts:
        assert form.parse(text).error is None
        assert "regex" not in constraint or re.fullmatch(constraint["regex"], text)
    for option in form.options or ():
        assert (
            f"ACTION: {action_text(option)}" in texts and form.parse(f"ACTION: {action_text(option)}").action == option
        )
    both = ActionWithMessage(form, MessageLine())
    pattern = (both.constraint() or {})["regex"]
    for text in texts:
        assert re.fullmatch(pattern, f"MESSAGE: hello\n{text}")
        assert both.parse(f"MESSAGE: hello\n{text}").action == {"act": form.parse(text).action, "message": "hello"}
        assert both.parse(f"MESSAGE: hello {text}").error is None  # all on one line
    assert json.dumps(constraint)
