"""The answer forms of data sets: boxed mathematics, numbers, free text, and what all forms promise."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Reply
from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.forms import form_of
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.number import Number
from harness.extensions.yaml_tasks import conformance
from harness.replies import FreeText, json_fields
from tests.helpers.linear import steps
from tests.helpers.samples import examples

FORMS: dict[str, Reply] = {
    "boxed": Boxed(),
    "letter": Letter(("Paris", "Rome", "New York", "5")),
    "letters": Letter(10),
    "yes": Label(("Yes", "No")),
    "classes": Label(("relevant", "irrelevant", "choice of law")),
    "label letters": Label(("a", "b", "c")),
    "digits": Label(("0", "1", "2")),
    "number": Number(),
    "percent": Number(percent=True),
    "text": FreeText(),
    "marked text": FreeText("ANSWER:", stop=("END",)),
}
WRITTEN = {
    "boxed": r"\boxed{\frac{1}{2}}", "letter": "The answer is (B).", "letters": "The answer is (J).",
    "yes": "Final Answer: No",
    "classes": "Final Answer: choice of law", "label letters": "Final Answer: a", "digits": "Final Answer: 2",
    "number": "The answer is -12.5.", "percent": "The answer is 12%.",
}  # fmt: skip
NASTY: dict[str, Callable[[int], str]] = {
    "boxes": lambda n: "\\boxed{" * (n // 7),
    "bare boxes": lambda n: "\\boxed" * (n // 6),
    "closed boxes": lambda n: "\\boxed{}" * (n // 8),
    "open braces": lambda n: "{" * n,
    "closing braces": lambda n: "}" * n,
    "backslashes": lambda n: "\\" * n,
    "labels": lambda n: "answer:" * (n // 7),
    "labels on lines": lambda n: "answer:\n" * (n // 8),
    "said labels": lambda n: "answer is " * (n // 10),
    "the answer to": lambda n: "answer to " + "x" * n,
    "definitely": lambda n: "answer is " + "definitely " * (n // 11),
    "blanks": lambda n: "answer is" + " " * n,
    "breaks": lambda n: "answer:" + " \n" * (n // 2),
    "stars": lambda n: "*" * n,
    "hashes": lambda n: "#" * n,
    "digits": lambda n: "1" * n,
    "thousands": lambda n: "1,234" * (n // 5),
    "fractions": lambda n: "1/" * (n // 2),
    "dollars": lambda n: "$" * n,
    "yes or": lambda n: "yes or " * (n // 7),
    "no": lambda n: "no " * (n // 3),
    "not": lambda n: "not " * (n // 4),
    "(A)": lambda n: "(A) not " * (n // 8),
    "keys": lambda n: '{"answer":' * (n // 10),
    "open strings": lambda n: '{"answer": "' * (n // 12),
    "quotes": lambda n: '"' * n,
    "quotes and braces": lambda n: '{"answer": "' + '" }' * (n // 3),
    "lists": lambda n: '{"answer": ' + "[" * n,
    "NUL": lambda n: "\0" * n,
    "surrogates": lambda n: "\ud800" * n,
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NASTY)
def test_a_long_text_of_anything_is_read(name: str) -> None:
    text = NASTY[name](60_000)
    for form in FORMS.values():
        parsed = form.parse(text)
        assert (parsed.action is None) == (parsed.error is not None)
    assert set(json_fields(text, ("answer",))) <= {"answer"}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NASTY)
def test_twice_the_text_takes_twice_the_steps(name: str) -> None:
    for form in FORMS.values():
        assert steps(form, NASTY[name](4_000)) <= 2.2 * steps(form, NASTY[name](2_000)) + 500


words = st.sampled_from(
    ["answer", " is ", "Answer: ", "Final Answer", ":", "(", ")", "A", "B", "a", "I", "yes", "No", " or ", "not ",
     "\n", "**",
     "1", ",", ".", "2/3", "%", "$", "\\boxed{", "}", "{", '"answer"', '"', "relevant", "END", "####", " ", "\\frac",
     "-"]
)  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=examples(60))
@given(text=st.lists(words, max_size=25).map("".join) | st.text(max_size=60))
def test_no_text_raises_and_every_action_is_legal(name: str, text: str) -> None:
    parsed = FORMS[name].parse(text)
    assert (parsed.action is None) == (parsed.error is not None)
    assert parsed.action is None or FORMS[name].allows(parsed.action)
    json.dumps(parsed.action, allow_nan=False).encode("utf-8")


@pytest.mark.parametrize("name", FORMS)
def test_the_forms_keep_what_replies_promise(name: str) -> None:
    assert conformance.check_reply(FORMS[name]) == []


@pytest.mark.parametrize("name", WRITTEN)
def test_what_constrained_decoding_writes_is_read(name: str) -> None:
    constraint = FORMS[name].constraint()
    assert constraint is not None
    if "choice" in constraint:
        assert WRITTEN[name] in constraint["choice"]
        assert [FORMS[name].parse(text).action for text in constraint["choice"]] == list(FORMS[name].options or ())
    else:
        assert re.fullmatch(constraint["regex"], f"Some work.\n{WRITTEN[name]}")
        assert FORMS[name].parse(f"Some work.\n{WRITTEN[name]}").action is not None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"so \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"\boxed{1}, no: \boxed{2}", "2"),
        (r"\boxed{1}, no: \boxed{\boxed{2}}", "2"),
        (r"$\boxed 5$", "5"), (r"$\boxed5$", "5"), (r"\boxed\frac12", r"\frac12"), (r"\fbox{3}", "3"),
        (r"\boxed{\{1,2\}}", r"\{1,2\}"), ("{ \\boxed{9}", "9"), ("} \\boxed{9}", "9"), ("\\boxed{8} {\\boxed{9}", "9"),
        (r"put it into \boxed{}. Answer: 7", "7"), (r"\boxed{a} as \boxed{\text{your answer}}", "a"),
        (r"\boxed{4", None), (r"\boxed{3} or \boxed{4", "3"),
        ("The final answer is $5$. I hope it is correct.", "5"), ("**Answer:** 3.5", "3.5"),
        ("The answer is 3.5. Done.", "3.5"),
        ("## Final Answer\n\n**12**", "12"), ("Final Answer:\n\n  x = 3", "x = 3"), ("Answer: Evelyn", "Evelyn"),
        ("Answer: 4\nNo, the answer is 5", "5"), ("the answer: \\(x\\) ok", "x"), ("the answer is $$x$$", "x"),
        ("The answer to the question is 12 square inches.", "12 square inches"),
        ("The answer is therefore obtained by adding the two numbers together", None),
        ("So\n2+3 = 5.", "2+3 = 5"), ("Thus, x = 7", "x = 7"), ("yes", "yes"),
        ("I am not sure (sorry, really not)", None), ("- \n- \n", None), ("", None),
    ],
)  # fmt: skip
def test_boxed(text: str, answer: str | None) -> None:
    assert Boxed().parse(text).action == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{"answer": "12"', "12"), ('{"reasoning":"abc", "answer": "12"', "12"), ('{"answer": 12}', "12"),
        ('{"answer": "12"}', "12"), ('```json\n{"reasoning": "so 5", "answer": "12"}\n```', "12"),
        ('Here it is: {"reasoning": "Is the answer: 5?", "answer": "x = 12"} Bye.', "x = 12"),
        ('{"reasoning": "\\\\boxed{5}?", "answer": "\\\\boxed{12}"}', "12"), ('{"Final_Answer": "12"}', "12"),
        ('{"reasoning": "\\boxed{5} or "6"", "answer": "12"', "12"), ("{'answer': '\\frac{1}{2}'}", r"\frac{1}{2}"),
        ('{"answer": "12", "confidence": 0.9', "12"), ('{"answer": "12" "confidence": 0.9}', "12"),
        ('I read {"answer": "11"}. So \\boxed{12}', "12"), ('{"answer": "11"}\nNo, the answer is 12.', "12"),
        ('{"answer": "11"}\nNo: {"answer": "12"}', "12"), ('{"answer": [1, 2]}', "[1, 2]"),
        ('{"answer": "12', None), ('{"answer": 12', None), ('{"answer": ""}', None), ('{"answer": null}', None),
        ('{"confidence": 0.9}', None), ('{\n"reasoning": "x",\n"confidence": 0.9\n}', None),
        ('{"reasoning": "so\nx = 5', None), ('{"answer": "As an AI (v3) I cannot answer"}', None),
        ('{"answer": "I have no idea"}', None), ('{"answer": "I cannot solve x+1"}', None),
        ("As an AI (v3) I cannot solve x+1", None), ("Answer: I cannot solve x+1", None),
        ("Answer: 12 as I said", "12 as I said"), ('{"answer": "a long tale of what (not) to say here"}', None),
        ("{1, 2}", "{1, 2}"), (r"\{1, 2\}", r"\{1, 2\}"), ("{x : x < 3}", "{x : x < 3}"),
    ],
)  # fmt: skip
def test_boxed_reads_the_answer_in_json(text: str, answer: str | None) -> None:
    assert Boxed().parse(text).action == answer


DECLINED = (
    "I have no idea.", "I have no idea", "No idea.", "No answer", "No answer.", "No answer found.",
    "N/A", "n/a", "NA", "N.A.",
    "I don't know.", "I don’t know", "I do not know the answer.", "We cannot determine it.", "I can't say.", "Unknown",
    "I am not sure.", "I'm unsure", "Not sure.", "Sorry, I cannot solve this.", "There is no answer.",
    "Not available", "idk", "null", "As an AI (v3) I cannot answer", "As an AI model (v3), I can't answer that.",
    "I'm sorry, as a language model (v3) I am unable to solve it", "As an AI (v3), I do not know",
)  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("words", DECLINED)
@pytest.mark.parametrize(
    "frame",
    ["{}", "Hm.\n\n{}", "Answer: {}", "The final answer is **{}**", "\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$"],
)
def test_who_has_no_answer_gives_none(words: str, frame: str) -> None:
    """Two such members of a vote once had one answer, and outvoted a right one."""
    text = frame.format(words)
    for form in (Boxed(), Number(), Letter(4), Letter(("Paris", "Rome")), Label(("Yes", "No")), Label(("a", "b"))):
        assert form.parse(text).action is None, form
    assert FreeText().parse(words).action == words, "any text is a text"


@pytest.mark.parametrize(
    ("form", "text", "answer"),
    [
        (Boxed(), r"\boxed{\text{None}}", r"\text{None}"),
        (Boxed(), r"\boxed{\text{no solution}}", r"\text{no solution}"),
        (Boxed(), r"\boxed{\varnothing}", r"\varnothing"),
        (Boxed(), "I don't know, but \\boxed{7}", "7"),
        (Letter(("Paris", "No answer")), "No answer", "B"),
        (Label(("N/A", "Yes")), "N/A", "N/A"),
        (Letter(4), "I think C, but I am not sure", "C"),
        (Letter(4), "I am not sure, but I think it is (C).", "C"),
        (Boxed(), "I think C, but I am not sure", None),
        (Number(), "I am not sure, maybe 42", None),
        (Boxed(), "I am not sure, maybe 42", None),
    ],
)
def test_what_is_an_answer_all_the_same(form: Reply, text: str, answer: Any) -> None:
    assert form.parse(text).action == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Therefore, **42**", "42"), ("Therefore, **42**.", "42"), ("So it equals 42.", "42"), ("It equals 42.", "42"),
        ("It is 42.", "42"), ("This gives **42**.", "42"), ("Hence, $x = 7$.", "$x = 7$"), ("Therefore 42", "42"),
        ("```python\nresult = 6 * 7\nprint(result)\n```", None), ("```\nprint(result)\n```", None),
        ("print(result)", None),
        ("```python\nx = 3 + 4\n```", None), ("```python\nx = 3\n```\nSo\n42", "42"), ("```\n42\n```", "42"),
        ("return x + 1", None), ("no", "no"), ("Therefore, yes.", "yes"),
    ],
)  # fmt: skip
def test_last_lines_without_a_box(text: str, answer: str | None) -> None:
    assert Boxed().parse(text).action == answer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#### 12", 12), ("#### 1,234.50", 1234.5), ("#### $5", 5), ("#### 3\nAnswer: 4", 4),
        ("Answer: 4\n#### 3\n", 3),
        ("The answer is $12.50.", 12.5), ("answer: -3", -3), ("Answer:\n\n**42**", 42), ("The answer is .5", 0.5),
        ("The answer is 5 + 3 = 8.", 8), ("The answer is 12 apples out of 20", 12), (r"\boxed{\frac{1}{2}}", 0.5),
        (r"\boxed{1{,}234}", 1234), ("it is 7/8", 0.875), ("1e3", 1000), ("7.0", 7), ("-$5", -5), ("$-5", -5),
        ("−7", -7),
        ("£3", 3), ("1,234,567", 1234567), ("1,2", None), ("12,34", None),
        ("In 2019 it was 5", 5), ("a range 10-12", None),
        ("12%", 12), ("12.5 percent", 12.5), ("So 2+3 = 5\n", 5), ("x2", None), ("1/0", None), ("1e999", None),
        ("", None),
        ("none", None), ("5 first\nthen words", None), ("9" * 500, None), ("#" * 9, None),
    ],
)  # fmt: skip
def test_numbers(text: str, number: float | None) -> None:
    action = Number().parse(text).action
    assert action == number and type(action) is type(number)


def test_percent_is_a_hundredth_if_so_wanted() -> None:
    assert [Number(percent=True).parse(text).action for text in ("12%", r"12\%", "12", "200%")] == [0.12, 0.12, 12, 2]


@given(st.integers(-(10**12), 10**12), st.sampled_from(["{:,}", "{}", "${:,}.00", "**{}**", "{} apples"]))
def test_written_integers_are_read(number: int, way: str) -> None:
    assert Number().parse(f"1 2 3\nThe answer is {way.format(number)}.").action == number


@given(st.floats(-1e9, 1e9, allow_nan=False))
def test_written_floats_are_read(number: float) -> None:
    assert Number().parse(f"#### {number!r}").action == number


@pytest.mark.parametrize(
    ("form", "text", "answer"),
    [
        (FreeText(), "  some words\n", "some words"),
        (FreeText(), " \n", None),
        (FreeText("ANSWER:"), "ANSWER: no ANSWER: a poem\nof two lines", "a poem\nof two lines"),
        (FreeText("ANSWER:"), "a poem", None),
        (FreeText("ANSWER:"), "ANSWER: ", None),
        (FreeText(stop=("END", "###")), "one\ntwo\n ### \nthree\nEND", "one\ntwo"),
        (FreeText(stop=("END",)), "no END here", "no END here"),
    ],
)
def test_free_text(form: FreeText, text: str, answer: str | None) -> None:
    parsed = form.parse(text)
    assert parsed.action == answer and (parsed.error is None) == (answer is not None)


def test_the_complaints_say_what_to_write() -> None:
    def complaint(form: Reply) -> Any:
        return form.parse("hm").error

    assert "in a box, \\boxed{}" in complaint(Boxed())
    assert "'The answer is (X).'" in complaint(Letter(4)) and "A to D" in complaint(Letter(4))
    assert complaint(Label(("yes", "no"))).endswith("'Final Answer: ' and one of: yes, no")
    assert "'The answer is <number>.'" in complaint(Number())
    assert "'ANSWER:' was not found" in complaint(FreeText("ANSWER:"))


@pytest.mark.parametrize("text", ["1" + "0" * 600, "#### 1" + "0" * 600, "1" * 600 + " " + "x" * 200])
def test_the_end_of_a_very_long_number_is_no_number(text: str) -> None:
    assert Number().parse(text).action is None


@pytest.mark.parametrize("name", ["letter", "label", "boxed", "number"])
def test_prompts_show_the_line_that_the_form_declares_and_writes(name: str) -> None:
    form = form_of({"form": name})
    reply = form.reply(None if name in ("boxed", "number") else ("a", "b"))
    [field] = reply.fields
    text = reply.written(reply.examples[0])
    assert field.lead in form.instruction and text.startswith(field.lead or "\\boxed{")
    allowed = dict(reply.constraint() or {}).get("regex")
    assert allowed is None or re.fullmatch(allowed, f"So.\n{text}")
