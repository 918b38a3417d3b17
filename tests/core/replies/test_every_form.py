"""What holds for every reply form: no character raises, and time grows as the text does."""

import itertools
import json
import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Parsed, Reply
from harness.replies import Likelihoods
from harness.replies.reading import MAX_CHARS, read
from tests.core.replies.every_form import ACTIONS, FORMS, MARKER, every_name, name_of
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


# ------------------------------------------------------------------------------------------- growth

BRACKETS = ("\\boxed{", "\\boxed{ ", "{", "[", "(", '{"answer":', "<", "<a ", "</", "`", "```\n", '"', "'", "$", "\\")
WORDS = (
    *(
        "answer: ",
        "answer is ",
        "the answer is definitely ",
        "Answer:\n",
        "ACTION: ",
        "ACTION - ",
        "<action>",
        "MESSAGE: ",
    ),
    *(
        "### ",
        "#### ",
        MARKER + " ",
        "Verdict: ",
        "Program: ",
        "Program: add(",
        "confidence: ",
        "add(1, ",
        "GRAB_LEFT ",
    ),
    *(
        "yes or ",
        "no ",
        "not ",
        "(A) ",
        "option A ",
        "A, ",
        "Paris ",
        "1,",
        "1/",
        "1,234 ",
        "-",
        "1 ",
        "0",
        ".5",
        "12345 ",
    ),
    *(
        "send_message ",
        "<send_message>",
        "<wait/>",
        "def f(x):\n ",
        "return 1\n",
        "x = (\n",
        "# c\n",
        " ",
        "\n",
        "\t\n",
    ),
)


def again(word: str) -> Callable[[int], str]:
    """A word so often that the text has so many characters."""
    return lambda n: word * (n // len(word))


TEXTS: dict[str, Callable[[int], str]] = {
    **{repr(word): again(word) for word in (*BRACKETS, *WORDS)},
    "closed boxes": lambda n: "\\boxed{" * (n // 8) + "}" * (n // 8),
    "boxes with room": lambda n: "\\boxed{ " * (n // 10) + "} " * (n // 10),
    "one open box": lambda n: "\\boxed{" + "\\boxed{1}" * (n // 10),
    "empty boxes": lambda n: "\\boxed{}" * (n // 9),
    "nested objects": lambda n: '{"answer":' * (n // 11) + "1" + "}" * (n // 11),
    "one key and a flood": lambda n: '{"answer": "' + "x\n" * (n // 2),
    "one label and a flood": lambda n: "Answer: " + "x" * n,
    "a flood and one label": lambda n: "x " * (n // 2) + "\nAnswer: ",
    "all options": lambda n: f"ACTION: {' / '.join(ACTIONS)}\n" * (n // 50),
    "one line of options": lambda n: " / ".join(ACTIONS) * (n // 40),
    "words": lambda n: "word " * (n // 5),
    "lines": lambda n: "a line of words.\n" * (n // 17),
    "one word": lambda n: "x" * n,
}


def best(form: Reply, text: str, tries: int) -> float:
    """Processor time of the quickest of some readings, in seconds."""
    costs = []
    for _ in range(tries):
        start = time.process_time()
        form.parse(text)
        costs.append(time.process_time() - start)
    return min(costs)


@pytest.mark.slow
@pytest.mark.parametrize("name", {repr(form): name for name, (form, _) in FORMS.items()}.values())
def test_time_grows_as_the_text_does(name: str) -> None:
    """Ten times the text takes ten times the time, and where it looks like more, a hundred times no more than a
    thousand: a quadratic reading takes ten thousand."""
    form, text = FORMS[name]
    own: dict[str, Callable[[int], str]] = {
        "the example": again(f"{text}\n"),
        "blanks, then the example": lambda n: " " * n + text,
        "the example, then blanks": lambda n: text + "\n" * n,
    }
    for kind, item in {**TEXTS, **own}.items():
        long = best(form, item(MAX_CHARS // 40), 1)
        short = best(form, item(MAX_CHARS // 400), 2)
        if long > max(12 * short, 0.01):
            assert best(form, item(MAX_CHARS), 2) <= 1000 * best(form, item(MAX_CHARS // 100), 5), kind


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


@pytest.mark.sampled(8)
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
