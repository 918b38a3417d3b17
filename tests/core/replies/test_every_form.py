"""What holds for every reply form: no character raises. (Its speed: `benchmarks/reply_growth.py`.)"""

import itertools
import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Parsed
from harness.engines.likelihoods import Likelihoods
from harness.replies.parse_guard import MAX_CHARS, read
from tests.core.replies.every_form import FORMS, every_name, name_of
from tests.helpers.samples import examples

ODD = [
    *(chr(c) for c in range(0x10000) if unicodedata.category(chr(c)) in ("Zs", "Zl", "Zp", "Cc", "Cf")),
    *("\ud800", "\udbff", "\udc00", "\udfff", "\ufffe", "\uffff", "\U0010ffff"),
    # digits, letters and marks that functions of text disagree about
    *"²½٣①Ⅷ\U0001d7d8ßİıſŉǰΐﬁ−–—：＝（）“”‘’«»…",
]
"""Every Unicode space, control and format character, surrogates, and what else is seldom thought of."""


def sound(parsed: Parsed) -> None:
    json.dumps([parsed.action, parsed.fallback_action])
    assert parsed.error is None or (parsed.error and parsed.action is None)


def test_every_form_is_here() -> None:
    reads_no_text = {name_of(Likelihoods)}
    assert set(every_name()) - reads_no_text == {name_of(type(form)) for form, _ in FORMS.values()}


@pytest.mark.parametrize("name", FORMS)
def test_each_reads_its_example(name: str) -> None:
    form, text = FORMS[name]
    parsed = form.parse(text)
    assert parsed.error is None and parsed.action is not None and form.allows(parsed.action)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FORMS)
def test_no_character_at_any_place_raises(name: str) -> None:
    """At every border between a word and what is none, instead of what follows it, and in place of all that follows."""
    form, text = FORMS[name]
    borders = [i for i in range(len(text) + 1) if not (text[i - 1 : i].isalnum() and text[i : i + 1].isalnum())]
    for odd in ODD:
        sound(form.parse(odd))
        for i in borders:
            sound(form.parse(text[:i] + odd + text[i:]))
            sound(form.parse(text[:i] + odd))
            sound(form.parse(text[:i] + odd * 3 + text[i + 1 :]))


PIECES = st.sampled_from([*ODD, " ", "\n", ":", "1", "0", "/", "of", "%", "(", ")", "{", "}", '"', "\\", ",", ".", "-"])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_no_text_raises(name: str, data: st.DataObject) -> None:
    form, text = FORMS[name]
    cut, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    odd = data.draw(st.lists(PIECES | st.text(max_size=4), max_size=8).map("".join))
    sound(form.parse(text[:cut] + odd + text[end:]))


def test_what_is_too_long_is_not_read_at_all() -> None:
    for form, text in FORMS.values():
        assert read(form, text).error is None
        parsed = read(form, text + " " * MAX_CHARS)
        assert parsed.error == f"too long: {len(text) + MAX_CHARS:,} characters, at most 1,000,000 are read"
        assert parsed.action is None


# ------------------------------------------------------------------------------- what holds for what is read

AS_WRITTEN = {
    *("free text", "free text, marked", "raw text", "filtered", "pattern", "answer", "answers", "table", "integers"),
    *("code", "code, bare", "ballot", "short", "feedback", "rewritten", "roster"),
    *(name for name in FORMS if "reference" in name),
}
"""Forms that take a text as it is: their tasks, other packages or published code say what is read of it."""
THOUGHTS = ("<think>{}</think>\n", "<thinking>\n{}\n</thinking>\n\n", "<reasoning>{}</reasoning> ", "{}</think>\n")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", sorted(FORMS.keys() - AS_WRITTEN))
def test_what_is_thought_is_not_read(name: str) -> None:
    """Alone it gives nothing; before or behind a reply it changes nothing."""
    form, text = FORMS[name]
    alike = [said for other, said in FORMS.values() if type(other) is type(form)]
    for thought in THOUGHTS:
        assert form.parse(thought.format(text)).action is None
        for said in alike:
            assert form.parse(thought.format(said) + text) == form.parse(text)
            assert form.well_formed(thought.format(said) + text) == form.well_formed(text)
        if thought.startswith("<"):
            assert form.parse(f"{text}\n{thought.format('I could also say: ' + text)}") == form.parse(text)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FORMS)
def test_a_number_of_any_length_raises_nowhere(name: str) -> None:
    """In place of every number of the example, of every value of JSON, and where none is expected."""
    form, text = FORMS[name]
    for digits, sign in itertools.product((1, 15, 17, 308, 309, 400, 401, 4300, 4301, 50_000), ("", "-", "0.", "1e")):
        number = sign + "9" * digits
        for written in (re.sub(r"-?\d+(?:\.\d+)?", number, text), re.sub(r'(?<=": )"?[^",{}\[\]]+"?', number, text)):
            sound(form.parse(written))
            form.well_formed(written)
        sound(form.parse(json.dumps({"rating": 1, "answer": 1, "better": 1}).replace("1", number)))
