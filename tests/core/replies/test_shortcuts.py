"""What is read in a quicker way reads as the slow way does."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.extensions.sandbox import _code_lines
from harness.replies import extract, literals
from harness.replies.characters import beginning_with, markers
from harness.replies.literals import NOTHING, NoValueError, objects, read, value_at
from harness.replies.parse_guard import read as read_reply
from harness.replies.strip_reasoning import strip_reasoning
from tests.core.replies.every_form import FORMS

PIECES = st.lists(
    st.sampled_from(["answer", "Answer", "result", " is ", ": ", "**", "_", "x", "\n", "İ", "ı", "ANSWER：", "'"]),
    max_size=12,
).map("".join)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.sampled_from([0.5, -2.0, "so", "0.7", "a\nb", "\\d", '"', "{", "confidence: 1", "Ann", 10**401, "nan"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "reason", "answer"]), inner, max_size=2)
    ),
    max_leaves=4,
)  # fmt: skip
OBJECTS = st.dictionaries(
    st.sampled_from(["reason", "Confidence", "first_choice", "answer", "my reason", "other", "response"]),
    VALUES,
    max_size=5,
)
FLAWS = st.sampled_from(['"', "'", ",}", "}", "NaN", "1e999", ": 1, 2", "[" * 70, "// no\n", "\\"])


@given(text=PIECES)
@example(text="xanswer: answer: Result is")
def test_a_pattern_is_tried_where_its_words_are(text: str) -> None:
    pattern = re.compile(r"(?<!x)(?:answer|result)(?:: | is )?", re.IGNORECASE)
    found = [match.span() for match in beginning_with(("answer", "result"), pattern, text)]
    assert found == [match.span() for match in pattern.finditer(text)]
    assert [match.end() for match in markers("### FINAL **Answer**", "## final answer ##")] == [20]


@given(value=OBJECTS, flaw=FLAWS, place=st.integers(0, 60))
@example(value={"a": 0.5}, flaw="1e999", place=6)
def test_plain_objects_are_what_the_tolerant_parser_makes_of_them(value: Any, flaw: str, place: int) -> None:
    plain = json.dumps(value, ensure_ascii=False)
    single = plain.replace('"', "'")
    for text in (plain, plain[:place] + flaw + plain[place:], f"so {plain} and {plain}", single, f"{single} " * 40):
        for start, end, found in objects(text):
            assert value_at(text, start) == (found, end)
    for text in (f"{plain},", f"{plain}, 1", plain[:place] + flaw + plain[place:] + ", 2"):
        try:
            slow, end = value_at(f"({text})", 0, depth=65)
        except NoValueError:
            slow, end = NOTHING, len(text) + 2
        assert repr(read(text)) == repr(slow if end == len(text) + 2 else NOTHING)


@given(text=PIECES)
@example(text="<b>Answer</b>: 7")
@example(text='<tool_call>{"name": "x", "arguments": {"final_answer": 7}}</tool_call>')
def test_no_field_is_read_in_a_text_without_the_last_word_of_its_name(text: str) -> None:
    names = ("answer", "final answer", "first_choice", "message")
    text = strip_reasoning(text)
    for name, may_be in zip(names, extract.may_name(text, names), strict=True):
        assert may_be or extract.field_of(text, name) is None


def test_a_flood_of_objects_that_never_close_is_not_read_in_vain_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    read_from = list[int]()

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            read_from.extend([idx] if len(s) > 1000 else [])  # a flat object is read by itself
            return super().raw_decode(s, idx)

    monkeypatch.setattr(literals, "_PLAIN", Counting())
    assert list(objects('{"reason": "so", "confidence": 0.5, "answer": {' * 2000)) == []
    assert len(list(objects("{'answer': 1} " * 2000))) == 2000
    assert 0 < len(read_from) < 100  # an error of json takes as long as the text before it is


def test_no_object_is_parsed_where_a_field_s_name_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "objects", lambda text: pytest.fail("it is parsed"))
    assert extract.members_of('{"answer": 1}', ["reason", "answer"]) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["contract", "contract, number last", "contract, value", "contract, action"])
@given(value=OBJECTS, before=st.sampled_from(["", "So.\n", "REASON: b\n", "confidence - 1\n", '{"a": 1}']))
def test_a_contract_reads_an_object_as_it_reads_each_field(name: str, value: Any, before: str) -> None:
    form, text = FORMS[name][0], before + json.dumps(value, ensure_ascii=False)
    once, apart = read_reply(form, text), read_reply(form, f"<\n{text}")  # beside "<" each field is looked for alone
    assert (once.action, once.fallback_action) == (apart.action, apart.fallback_action)


@pytest.mark.parametrize(
    "text", ["ACTION: OFFER amount=3 prıce=2.5 to_whom=Bob", "ACTION: offer\n- Amount: 3\n- prıce: 1"]
)
def test_a_dotless_i_in_the_name_of_a_parameter_is_no_bug(text: str) -> None:
    assert "price is missing" in str(read_reply(FORMS["actions"][0], text).error)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("So the final_answer: 7. It was 12 at first.", 7),
        ("#### 3\nso Final_Answer = 7", 7),
        ('Answer: 3. In short: "final_answer": 7', 3),
        ("Answer: 3. In short: semifinal_answer: 7", 3),
        ("Answer: 3. In short: my_final_answer: 7", 3),
    ],
)
def test_a_final_answer_is_a_label_with_an_underscore_as_well(text: str, action: int) -> None:
    parsed = [read_reply(FORMS[name][0], text) for name in ("number", "number, fraction")]
    assert [one.action for one in parsed] == [action, action]


SIGNS = ["x = 1", "\n", " ", "def f(x):", "#c", "(", ")", "'a'", '"""', "\\\n", "'", "\t", "\\"]


@given(st.lists(st.sampled_from(SIGNS), max_size=14).map("".join))
def test_plain_lines_of_programs_are_read_at_once_as_sign_by_sign(text: str) -> None:
    quick = _code_lines.logical(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_code_lines, "_PLAIN_LINE", re.compile("(?!)"))
        assert quick == _code_lines.logical(text)


@pytest.mark.parametrize("name", ["number", "choice", "action", "yes or no", "letter", "bounded number", "spoken"])
@pytest.mark.parametrize("word", ["answer: ", "only ", "it's, ", "color ", "the, ", "answer is ", "no wait, ", "not "])
def test_a_line_of_many_fillers_is_read_at_once(name: str, word: str) -> None:
    form = FORMS[name][0]
    for end in ("5 x", "x 5 y", "GRAB_LEFT z", "yes z", "(B) z", "Group 1 z"):
        # Two ways to read each filler would be as many ways as atoms in the universe.
        assert read_reply(form, f"Answer: {word * 300}{end}") == read_reply(form, f"Answer: {word * 301}{end}")
