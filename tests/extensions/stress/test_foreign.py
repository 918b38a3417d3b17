"""Replies in styles by an author who had not seen the readers: none is misread, none loses a field in silence."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from harness.api import Completion, Reply
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.extensions.datasets.label import Label, canonical_label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.games.actions import ActionParameter
from harness.extensions.games.legal import LegalAction
from harness.extensions.networks.answers import INTEGER, NUMBER, NUMBERS, TEXT, Answer, one_of
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.ballots import Ranking
from harness.extensions.stress.foreign_replies import Foreign, foreign_styles, foreign_trials, kind_of, tried
from harness.extensions.stress.parse_verdicts import Trial, is_exact
from harness.extensions.stress.stress_command import forms_of
from harness.extensions.yaml_tasks.contract import ActWithFields
from harness.replies import Choice, Labelled
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.parse_guard import read_completion
from tests.core.replies.every_form import ACT, FORMS, MARKER, NETWORK

VALUES = {
    "integer": [("42", "17", "358"), ("183", "64", "29")],
    "number": [("12.75", "3.5", "80.25")],
    "letter": [("B", "C", "D"), ("C", "A", "D"), ("A", "D", "B")],
    "text": [("Mount Kilimanjaro", "Lake Victoria", "Nile"), ("Marie Curie", "Rosalind", "Ada")],
    "list": [("14", "25", "36", "77", "88"), ("3.5", "-12", "8", "41", "59")],
    "ranking": [("Ann", "Bob", "Cem", "", ""), ("B", "A", "C", "", "")],
    "message_action": [("GRAB_LEFT", "GRAB_RIGHT", "HOLD")],
    "json": [("Lyon", "Paris", "Nice")],
    "answer_confidence": [("42", "17", "358"), ("B", "C", "D"), ("Lyon", "Paris", "Nice")],
}


def forms(style: Foreign, values: tuple[str, ...]) -> list[Reply]:
    """The forms of a kind of prompt, with the options that the style has."""
    kind, given = style.kind, style.options
    options = tuple(given) if isinstance(given, list) else ("GRAB_LEFT", "GRAB_RIGHT", "HOLD")
    inner = Number() if values[0].isdigit() else Letter(4) if len(values[0]) == 1 else Label(("Lyon", "Paris", "Nice"))
    whole = [NETWORK.BoundedNumber(marker, None, None, True) for marker in ("Answer:", MARKER)]
    texts = tuple(given.values()) if isinstance(given, dict) else 4
    return {
        "integer": [Number(), *whole, Answer(INTEGER, "Answer:")],
        "number": [Number(), NETWORK.BoundedNumber("Answer:", None, None, False), Answer(NUMBER, "Answer:")],
        "letter": [Letter(texts), Label(("a", "b", "c", "d")), Choice(("A", "B", "C", "D"), "Answer:")],
        "choice": [
            *(Choice(options, "Answer:"), Labelled(options, "ANSWER")),
            *([Label(options)] if len(set(map(canonical_label, options))) == len(options) else []),
            *(Answer(one_of(options), "Answer:"), LegalAction(options, "ANSWER")),
        ],
        "message_action": [
            ActionWithMessage(Labelled(options), MessageLine()),
            ActionWithMessage(LegalAction(options), MessageLine()),
            ActWithFields(Labelled(options), (ActionParameter("message", "text", chars=200),), 1),
        ],
        "answer_confidence": [AnswerWithConfidence(inner, "line")],
        "ranking": [Ranking(values[:3])],
        "text": [Answer(TEXT, "Final answer:")],
        "json": [AnswerWithConfidence(inner, "json"), Choice(values, "Answer:"), Labelled(values, "ANSWER"), inner],
        "list": [Answer(NUMBERS, "Answer:")],
    }.get(kind, [])


def all_trials(style: Foreign) -> Iterator[Trial]:
    options = tuple(style.options or ()) if style.kind in ("choice", "message_action") else ()
    many: Any = [(options * 3)[:3]] if options else VALUES.get(style.kind, [])
    many = VALUES["integer"] if style.more.get("vtype") == "integer" else many
    for values in many:
        for form in forms(style, values):
            yield tried(form, style, values)


@pytest.mark.sampled(150)
@pytest.mark.parametrize("style", [one for one in foreign_styles() if not one.left], ids=lambda one: one.id)
def test_no_style_is_misread_or_lost(style: Foreign) -> None:
    assert [(one.form, one.text, one.got) for one in all_trials(style) if one.verdict in ("misread", "dropped")] == []


def test_nearly_all_styles_that_state_a_value_are_read() -> None:
    read, asked = Counter[str](), Counter[str]()
    for style in foreign_styles():
        for one in all_trials(style) if style.expect == "value" else ():
            asked[style.kind] += 1
            read[style.kind] += one.verdict == "read"
    assert read.total() >= 0.95 * asked.total(), {kind: (read[kind], asked[kind]) for kind in asked}
    assert all(read[kind] >= 0.75 * asked[kind] for kind in asked), {kind: (read[kind], asked[kind]) for kind in asked}


SPECS = (
    *("agentsnet_quick", "arithmetic", "dpbench_quick", "mmlu_pro", "legalbench", "silo_quick", "social_deduction"),
    *("negotiation", "networks/consensus", "worlds/search_party", "darkforest_quick", "arithmetic_votes", "tournament"),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SPECS)
def test_forms_of_shipped_specs_misread_none(name: str) -> None:
    project = builtin()
    plan = resolve.plan(load(name, project, [], limit=1), project, Mock())
    found = [one for form in forms_of(plan) if not is_exact(form) for one in foreign_trials(form)]
    bad = [one for one in found if one.verdict in ("misread", "dropped")]
    assert [(one.form, one.style.name, one.text, one.got) for one in bad] == []


def test_every_kind_has_a_form_that_declares_it() -> None:
    kinds = {kind for form, _ in FORMS.values() if (kind := kind_of(form)) is not None}
    assert {"integer", "number", "letter", "choice", "message_action", "answer_confidence", "ranking", "list"} <= kinds


@pytest.mark.parametrize(
    ("form", "text", "action"),
    [
        (NETWORK.BoundedNumber(MARKER, 0, 9, True), "### Final Answer ###\n3 (room 4 is taken)", 3),
        (Number(), "**Answer:**\n- 42", 42),
        (Number(), "Answer: 42 (= 6 × 7)", 42),
        (Number(), "I choose 42 instead of 7.", 42),
        (Number(), "Answer: minus 42", -42),
        (Number(), "Answer: -42", -42),
        (Number(), "Answer: 10-12", None),
        (Number(), "Hence the total is **42**.", 42),
        (Letter(4), "The answer is D.\n\n- A: too small\n- B: too small", "D"),
        (Letter(4), "The answer is A, B, C, and D.", None),
        (Choice(("red", "green", "blue"), MARKER), f"{MARKER} red, green, and blue", None),
        (Label(("red", "green", "blue")), "The answer is red, green, and blue.", None),
        (LegalAction(("red", "green", "blue")), "ACTION: red, green, and blue", None),
        (Letter(4), "The best choice here must be A) 15 m/s", "A"),
        (Letter(26), "It must be ( A ).", "A"),
        (Letter(26), "（H）", "H"),
        (Letter(26), "答案：A", "A"),
        (FORMS["boxed"][0], "From this the equation gives x = 3.", "x = 3"),
        (FORMS["boxed"][0], "Hence the total is **42**.", "42"),
    ],
    ids=map(str, range(19)),
)
def test_replies_that_were_misread(form: Reply, text: str, action: object) -> None:
    assert form.parse(text).action == action


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("**MESSAGE:**\n**I go first.**\n\n**ACTION:**\n**GRAB_LEFT**", "I go first."),
        ("MESSAGE:\nP1: you take right.\n\nACTION: GRAB_LEFT", "P1: you take right."),
        ("### Message\nP1: you take right.\n\n### Action\nGRAB_LEFT", "P1: you take right."),
        ("MESSAGE:\nACTION: GRAB_LEFT", None),
    ],
    ids=("bold", "label", "heading", "none"),
)
def test_what_stands_below_a_label(text: str, message: str | None) -> None:
    form = ActionWithMessage(ACT, MessageLine())
    assert form.parse(text).action == {"act": "GRAB_LEFT", "message": message}


@pytest.mark.parametrize(
    ("form", "text", "cut_off", "whole"),
    [
        (Number(), "The answer is 4", None, 4),
        (Number(), "The answer is 42 apples, because", 42, 42),
        (Number(), "We add 17 and we add", None, 17),
        (Choice(("Group 1", "Group 12"), MARKER), f"{MARKER} Group 1", None, "Group 1"),
        (ACT, "ACTION: WAIT\nI do so bec", "WAIT", "WAIT"),
        (FORMS["free text"][0], "It rains and", "It rains and", "It rains and"),
    ],
    ids=map(str, range(6)),
)
def test_a_value_where_a_reply_was_cut_off_is_not_final(form: Reply, text: str, cut_off: object, whole: object) -> None:
    assert read_completion(form, Completion(text, finish_reason="length")).action == cut_off
    assert read_completion(form, Completion(text, finish_reason="stop")).action == whole
