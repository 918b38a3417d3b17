"""`AnswerWithConfidence`: an answer with a confidence, and whether the reply keeps to the form."""

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence, split_confidence
from harness.extensions.sandbox.code import Code
from harness.extensions.yaml_tasks.conformance import check_reply
from harness.replies import FreeText

LETTER = Letter(("Lyon", "Paris", "Nice"))
FORMS = [LETTER, Boxed(), Number(), Label(("yes", "no")), FreeText()]


def read(text: str, inner: Any = LETTER, style: Any = "line") -> tuple[Any, float | None, bool]:
    parsed = AnswerWithConfidence(inner, style).parse(text)
    assert parsed.error is None, parsed.error
    return split_confidence(parsed.action)


@pytest.mark.parametrize("inner", FORMS)
@pytest.mark.parametrize("style", ["none", "line", "json"])
def test_every_form_keeps_its_contract(inner: Any, style: Any) -> None:
    assert check_reply(AnswerWithConfidence(inner, style)) == []


@pytest.mark.parametrize(
    ("line", "stated"),
    [
        ("Confidence: 0.85", 0.85),
        ("**Confidence:** 85%", 0.85),
        ("Confidence: 90", 0.9),
        ("Confidence: 8/10", 0.8),
        ("Confidence: 9 out of 10", 0.9),
        ("Confidence: 85 out of 100 (quite sure)", 0.85),
        ("Confidence: 0,85", 0.85),
        ("Confidence: ~0.9", 0.9),
        ("Confidence: 0.9 (quite sure)", 0.9),
        ("Confidence: 0.9\nConfidence: …", 0.9),
        ("Confidence: 1.2", None),
        ("Confidence: 5", None),
        ("Confidence: 85 %", 0.85),
        ("> Confidence: .7", 0.7),
        ("Confidence: 1", 1.0),
        ("Confidence: 0", 0.0),
        ("Confidence: nan", None),
        ("Confidence: -0.3", None),
        ("Confidence: 400", None),
        ("Confidence: high", None),
        ("Confidence:", None),
        ("", None),
    ],
)
def test_a_line_states_the_confidence(line: str, stated: float | None) -> None:
    assert read(f"Work.\nThe answer is (B).\n{line}") == ("B", stated, False)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Answer: B\nConfidence: Confidence: 0.3", 0.3),
        ("My confidence: high\nAnswer: B Confidence: 0.3", 0.3),
        ("Confidence: high (confidence: 0.8)\nAnswer: B", 0.8),
    ],
)
def test_the_last_confidence_that_is_a_number_counts(text: str, stated: float) -> None:
    assert read(text)[:2] == ("B", stated)


def test_the_line_is_no_part_of_the_answer() -> None:
    assert read("#### 12\nConfidence: 0.5", Number()) == (12, 0.5, False)
    assert read("It makes 12\nConfidence: 0.5", Number()) == (12, 0.5, True), "readable, but in no form"
    assert read("Paris\nConfidence: 0.9", FreeText()) == ("Paris", 0.9, False)
    assert read("Confidence: 0.2\nThe answer is (A).\nConfidence: 0.9")[:2] == ("A", 0.9), "the last one counts"


def test_a_confidence_may_stand_at_the_end_of_the_answer_s_line() -> None:
    assert read("Answer: C, Confidence: 0.9") == ("C", 0.9, True)
    assert read("The answer is (B). Confidence: 0.7") == ("B", 0.7, False)
    assert read("My confidence: it is B.\nThe answer is (B).") == ("B", None, False)


def test_an_answer_may_follow_the_confidence_on_its_line() -> None:
    assert read("I wait. Confidence: 0.5 Answer: B")[:2] == ("B", 0.5)
    assert read("The answer is (B). Confidence: 0.9 that the answer is right") == ("B", 0.9, False)
    assert read("Is the answer (A)?\nConfidence: 0.5 Answer: B")[:2] == ("B", 0.5)


def test_a_reason_beside_the_confidence_is_no_answer_where_one_stands_above() -> None:
    assert read("Answer: B\nConfidence: 85% (my earlier answer: A was wrong)")[:2] == ("B", 0.85)
    assert read("**Final Answer:** B\nConfidence: 0.6, as the result: A is odd")[:2] == ("B", 0.6)


def test_marks_before_the_line_are_no_part_of_the_answer() -> None:
    assert read("* **Confidence:** 0.8\n* Rome", FreeText())[:2] == ("* Rome", 0.8)


def test_a_program_s_own_lines_are_no_confidence() -> None:
    program = "def f(x):\n    confidence = 0.5\n    confidence: float = 0.25\n    return x * confidence"
    code = AnswerWithConfidence(Code("f"), "line")
    for text in (f"```python\n{program}\n```", program):
        alone = Code("f").parse(text).action
        assert split_confidence(code.parse(text).action) == (alone, None, False)
        assert split_confidence(code.parse(f"{text}\nConfidence: 0.9").action)[:2] == (alone, 0.9)


@pytest.mark.parametrize("inner", [LETTER, Boxed(), Number(), Label(("yes", "no"))])
@pytest.mark.parametrize("answer", ["null", '""', '" "', '"\\u2060"', '"?"'])
def test_an_object_without_an_answer_gives_none(inner: Any, answer: str) -> None:
    """The confidence beside it was taken for the number that was asked for, and the whole object for a formula."""
    parsed = AnswerWithConfidence(inner, "json").parse(f'{{"answer": {answer}, "confidence": 0.85}}')
    assert parsed.action is None and (parsed.error or "").startswith("the field 'answer'")


@pytest.mark.parametrize(
    ("inner", "asked", "other"),
    [
        (LETTER, "The answer is (B).", "(B)"),
        (Boxed(), "So \\boxed{7}.", "The answer is 7"),
        (Number(), "The answer is 7.", "that makes 7"),
        (Label(("yes", "no")), "Final Answer: yes", "Yes."),
    ],
)
def test_malformed_is_readable_in_another_form(inner: Any, asked: str, other: str) -> None:
    assert read(asked, inner, "none")[2] is False
    assert read(other, inner, "none")[2] is True
    assert read(asked, inner, "none")[0] == read(other, inner, "none")[0]


def test_json_replies() -> None:
    whole = '{"reasoning": "The \\frac{1}{2} {of} it", "answer": "B", "confidence": 0.7}'
    assert read(whole, style="json") == ("B", 0.7, False)
    assert read(f"```json\n{whole}\n```", style="json") == ("B", 0.7, False)
    assert read(f"Here it is: {whole} Bye.", style="json") == ("B", 0.7, True)
    assert read('{"answer": "x+1", "confidence_level": "85%"}', Boxed(), "json") == ("x+1", 0.85, False)
    assert read('{"answer": 12, "confidence": "nan"}', Number(), "json") == (12, None, False)
    assert read("The answer is (C).", style="json") == ("C", None, True)
    assert read('{"answer": "\\\\frac{1}{2}", "confidence": 1}', Boxed(), "json")[0] == "\\frac{1}{2}"


def test_what_cannot_be_read_is_reported_in_the_inner_form_s_words() -> None:
    for style in ("none", "line", "json"):
        parsed = AnswerWithConfidence(LETTER, style).parse("I do not know.\nConfidence: 0.9")  # type: ignore[arg-type]
        assert parsed.action is None and "no answer was found" in str(parsed.error)


def test_policies_may_answer_plainly() -> None:
    reply = AnswerWithConfidence(LETTER, "line")
    assert reply.options == ("A", "B", "C") and reply.allows("A") and not reply.allows("D")
    assert reply.allows({"answer": "A", "confidence": 0.5, "malformed": False})
    assert reply.allows({"answer": "A", "confidence": None, "malformed": True})
    for wrong in (1.5, "0.5", True, float("nan")):
        assert not reply.allows({"answer": "A", "confidence": wrong, "malformed": False})
    assert not reply.allows({"answer": "D", "confidence": 0.5, "malformed": False})
    assert split_confidence("A") == ("A", None, False) and split_confidence(None) == (None, None, False)


@given(st.text(), st.sampled_from(FORMS), st.sampled_from(["none", "line", "json"]))
def test_any_text_is_read_or_refused(text: str, inner: Any, style: Any) -> None:
    reply = AnswerWithConfidence(inner, style)
    parsed = reply.parse(text)
    assert (parsed.action is None) == (parsed.error is not None)
    if parsed.action is not None:
        answer, stated, malformed = split_confidence(parsed.action)
        assert answer is not None and isinstance(malformed, bool) and reply.allows(parsed.action)
        assert stated is None or 0 <= stated <= 1
        assert reply.well_formed(text) is not malformed


@given(st.sampled_from("ABC"), st.integers(0, 100))
def test_what_constrained_decoding_may_write_is_well_formed(letter: str, hundredths: int) -> None:
    text = f"The answer is ({letter}).\nConfidence: {hundredths / 100 if hundredths < 100 else 1.0:.2f}"
    text = text.replace("1.00", "1.0")
    constraint = AnswerWithConfidence(Letter(3, work=False)).constraint()
    assert constraint is not None and re.fullmatch(constraint["regex"], text)
    assert read(text, Letter(3)) == (letter, hundredths / 100, False)
    schema = AnswerWithConfidence(LETTER, "json").constraint()
    assert schema is not None and schema["json"]["properties"]["answer"] == {"enum": ["A", "B", "C"]}
    assert read(json.dumps({"reasoning": "", "answer": letter, "confidence": 0.5}), style="json") == (
        letter,
        0.5,
        False,
    )


WHOLE = '{"reasoning": "so", "answer": "12", "confidence": 0.9}'


@pytest.mark.parametrize(
    "text",
    [
        WHOLE[:-1],  # no brace
        WHOLE.replace('"so"', '"so "so""'),
        WHOLE.replace('"', "'"),
        WHOLE.replace("}", ",}"),
        WHOLE.replace("0.9", "0.9 // sure"),
        WHOLE.replace('"so"', '"so\nthen"'),
        WHOLE.replace('"so"', "NaN"),
        WHOLE.replace('"so"', "True"),
        WHOLE.replace('"so"', '"\\sqrt{2}"'),
        WHOLE + WHOLE,
        f"{WHOLE} {{}}",
        f"Sure! {WHOLE}",
        f"```json\n{WHOLE}\n``` Done.",
        f"[{WHOLE}]",
        '{"answer": "12", "confidence": 0.9, "reasoning": "it was cut of',
        '{"answer": "12", "reasoning": "because \\"1',
        '{"answer": "12", "confid',
        '{"answer": "12"',
        '{"answer": "12",',
    ],
)
def test_broken_json_is_read_and_malformed(text: str) -> None:
    """It begins and ends with braces more often than not; DarkForest weighs it by its penalty."""
    assert read(text, Number(), "json")[::2] == (12, True)
    assert not AnswerWithConfidence(Number(), "json").well_formed(text)


@pytest.mark.parametrize(
    "text", [WHOLE, f" {WHOLE}\n", f"```json\n{WHOLE}\n```", f"```\n{WHOLE}```", json.dumps({"answer": "12"})]
)
def test_whole_json_is_well_formed(text: str) -> None:
    assert read(text, Number(), "json")[::2] == (12, False)
    assert read(f"<think>Is it {WHOLE[:20]}?</think>\n{text}", Number(), "json")[::2] == (12, False)


@pytest.mark.parametrize(
    "text", ['{"answer": "12', '{"answer": 12', '{"reasoning": "so", "answer": "1', '{"answer": -']
)
def test_an_answer_that_may_go_on_is_none(text: str) -> None:
    """12 may have become 125."""
    for inner in (Number(), FreeText(), Boxed()):
        assert AnswerWithConfidence(inner, "json").parse(text).error == "the field 'answer' is cut off"


def test_a_confidence_that_may_go_on_is_none() -> None:
    assert read('{"answer": "12", "confidence": 0.', Number(), "json") == (12, None, True)
    assert read('{"answer": "12", "confidence": 0.9\n', Number(), "json")[0] == 12


MEMBERS = {
    "plain": {"answer": '"12"', "reasoning": '"abc"', "confidence": "0.9"},
    "quotes within": {"answer": '"12"', "reasoning": '"I said "half" "', "confidence_level": "0.9"},
    "a word in quotes at the end": {"answer": '"12"', "reasoning": '"so "5""', "confidence": "0.9"},
    "a number": {"answer": "12", "reasoning": '"abc 5"', "confidence": "0.9"},
    "a number, quotes within": {"answer": "12", "reasoning": '"I said "5", or "half" "', "confidence": '"90%"'},
    "formulas": {"answer": '"12"', "reasoning": '"\\\\frac{24}{2}, x = 5\\nso {1, 2}"', "confidence": "0.9"},
    "raw lines": {"answer": '"12"', "reasoning": '"the answer is 5?\nx = 5\n\\boxed{7}\nx+5"', "confidence": "0.9"},
    "single quotes": {"answer": "'12'", "reasoning": "'it's 5'", "confidence": "0.9"},
    "curly quotes": {"answer": "“12”", "reasoning": "“a “half” 5”", "confidence": "0.9"},
    "another member": {"answer": '"12"', "explanation": '"a "b" c"', "confidence": "0.9"},
}
"""Three members of a reply each, as they are written."""
FRAMES = ("{{{}}}", "```json\n{{\n  {}\n}}\n```")


def member(key: str, value: str) -> str:
    quotes = {"'": "''", "“": "“”"}.get(value[0], '""')
    return f"{quotes[0]}{key}{quotes[1]}: {value}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("comma", [", ", ",\n  ", " ", "\n"], ids=["commas", "lines", "blanks", "breaks"])
def test_wherever_it_is_cut_off_the_answer_is_read_or_none(name: str, comma: str) -> None:
    for frame, order in itertools.product(FRAMES, itertools.permutations(MEMBERS[name].items())):
        text = frame.format(comma.join(member(*pair) for pair in order))
        for inner, answer in ((Boxed(), "12"), (Number(), 12)):
            form = AnswerWithConfidence(inner, "json")
            for end in range(len(text) + 1):
                parsed = form.parse(text[:end])
                assert parsed.action is None or parsed.action["answer"] == answer, text[:end]
            if comma.strip() or order[0][0] == "answer":
                assert form.parse(text).action is not None, text
        for end in range(len(text) + 1):
            if "boxed" not in text and "answer is" not in text:
                assert Boxed().parse(text[:end]).action in (None, "12"), text[:end]


@pytest.mark.parametrize(
    ("text", "answer", "stated"),
    [
        ('{"answer": "12", "reasoning": "abc", "confidence": 0.', "12", None),
        ('{"answer": "12", "reasoning": "I said "half" ", "confidence_level": 0.9}', "12", 0.9),
        ('{"answer": 12, "reasoning": "ab', "12", None),
        ('{"answer": 12, "reasoning": "step 1', "12", None),
        ('{"answer": "12" "confidence": 0.9}', "12", 0.9),
        ('{"answer": 12 "confidence": 0.9}', "12", 0.9),
        ('{"confidence": 0.9 "answer": "12"}', "12", 0.9),
        ('{"answer": "12" "reasoning": "abc" "confidence": 0.9}', "12", 0.9),
        ('{"answer": [1, 2], "reasoning": "ab', "[1, 2]", None),
        ('{"answer": {"x": 1, "y": 2}, "reasoning": "ab', '{"x": 1, "y": 2}', None),
        ('{"answer": [0, 1), "reasoning": "ab "c"", "confidence": 0.9}', "[0, 1)", 0.9),
        ('{"answer": \\frac{1}{2}, "reasoning": "ab', "\\frac{1}{2}", None),
    ],
)
def test_an_answer_ends_where_another_member_begins(text: str, answer: str, stated: float | None) -> None:
    assert read(text, Boxed(), "json") == (answer, stated, True)


@pytest.mark.parametrize("inner", FORMS)
@pytest.mark.parametrize(
    "text", ["{", '{"', '{"reasoning": "so x = 5', '{"confidence": 0.9, "ans', '```json\n{"confidence": 0.9']
)
def test_an_object_cut_off_before_its_answer_has_none(inner: Any, text: str) -> None:
    parsed = AnswerWithConfidence(inner, "json").parse(text)
    assert parsed.action is None and parsed.error == "the field 'answer' is cut off"
