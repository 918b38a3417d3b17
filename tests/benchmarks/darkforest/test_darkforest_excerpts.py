"""Reasoning that the coordinator is shown: what stands before the answer, and neither the answer nor its confidence."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.datasets.boxed import Boxed
from harness.extensions.datasets.label import Label
from harness.extensions.datasets.letter import Letter
from harness.extensions.datasets.mathematics import math_canonical
from harness.extensions.datasets.number import Number
from harness.extensions.sandbox.code import Code
from tests.benchmarks.darkforest.darkforest_kit import A, DarkForest, converse, excerpts, opinion, question

excerpt = excerpts.excerpt
PROGRAM = "def f(x):\n    y = x\n    return y"
HALF = math_canonical("\\frac{1}{2}")
LETTER, LABEL = Letter(("ant", "bee", "cat", "dog")), Label(("Yes", "No"))


def reader(form: Any) -> Any:
    """The candidate of a text, by the form alone."""

    def read(text: str) -> str | None:
        action = form.parse(text).action
        return None if action is None else math_canonical(action) if isinstance(form, Boxed) else str(action)

    return read


def cut(form: Any, text: str, candidate: str | None, length: int = 900, **options: bool) -> str:
    result: str = excerpt(replace(opinion(A, candidate), text=text), length, reader(form), **options)
    return result


@pytest.mark.parametrize(
    ("form", "candidate", "text", "expected"),
    [
        (LETTER, "C", "Mass is conserved.\nThe answer is (C).\nConfidence: 0.9", "Mass is conserved."),
        (LETTER, "B", "One.\nTwo.\nThe answer is (B)", "One. Two."),
        (LETTER, "B", "The answer is (B)", ""),
        (LETTER, "B", "B is likely.\nAnswer: B\nConfidence: 1", ""),  # the first line says the answer too
        (LETTER, "B", "It buzzes.\n**Answer:**\n\nB", "It buzzes."),
        (LETTER, "B", "It buzzes.\nB. bee\nConfidence: 0.4\nThe answer is (B).", "It buzzes."),
        (LETTER, "D", "no such text", "no such text"),
        (LETTER, None, "nothing was read\nConfidence: 0.9", "nothing was read"),
        (LETTER, "B", "", ""),
        (Number(), "9", "3*3 is nine.\nThe answer is 9.\nConfidence: 0.9", "3*3 is nine."),
        (Number(), "1234", "sum it\nThe answer is 1,234.\nConfidence: 0.7", "sum it"),
        (Number(), "9", "We add.\n4 + 5 = 9\nThat is all.\n#### 9", "We add."),
        (LABEL, "Yes", "Reason.\nFinal Answer: Yes\nConfidence: 0.8", "Reason."),
        (Boxed(), HALF, "Reason.\nTherefore \\boxed{\\frac12}.\nConfidence: 0.8", "Reason."),
        (Boxed(), HALF, "Reason.\nTherefore \\boxed{\n\\frac12\n}", "Reason. Therefore \\boxed{"),
        (LETTER, "B", '{"reasoning": "It buzzes.\\nSo it is\\nB.", "answer": "B"}', "It buzzes. So it is"),
        (LETTER, "B", '{"answer": "B", "confidence": 0.9, "reasoning": ["It buzzes.", "It stings."]}',
         "It buzzes. It stings."),
        (LETTER, "B", 'It buzzes.\n```json\n{"confidence": 0.9,\n"answer": "B"}\n```', "It buzzes."),
        (LETTER, "B", '{"answer": "B", "confidence": 0.9}', ""),
        (LETTER, "B", "It buzzes.\nI am 90% confident of that.\nConfidence:\n0.9\nConfidence level = high\nIt stings.",
         "It buzzes. It stings."),
        (LETTER, "B", "A confident buzz.", "A confident buzz."),
        (Code("f"), PROGRAM, f"Copy it.\n```python\n{PROGRAM}\n```", "Copy it."),
    ],
)  # fmt: skip
def test_what_stands_before_the_answer(form: Any, candidate: str | None, text: str, expected: str) -> None:
    assert cut(form, text, candidate) == expected


def test_where_the_answer_is_disclosed_anyway_reasoning_goes_on_to_its_last_line() -> None:
    text = "No evidence speaks for it.\nAnd no, nothing else does.\nConfidence: 0.9\nFinal Answer: No\nThank you."
    assert cut(LABEL, text, "No") == "No evidence speaks for it."
    assert cut(LABEL, text, "No", answer_disclosed=True) == "No evidence speaks for it. And no, nothing else does."
    assert cut(LABEL, '{"reasoning": "No.", "answer": "No"}', "No", answer_disclosed=True) == "No."


def test_an_answer_over_several_lines_is_cut_until_it_cannot_be_read() -> None:
    text = "We look.\n" + "The rest is\n" * 3 + "C\n"
    assert cut(LETTER, text, "C") == "We look. The rest is The rest is The rest is"

    def joined(said: str) -> str | None:
        return "12" if "1 2" in said else None

    assert excerpt(replace(opinion(A, "12"), text="so we take\n1\n2"), 900, joined) == "so we"


def test_excerpts_have_a_length_and_need_few_readings() -> None:
    requests: list[str] = []

    def read(text: str) -> str | None:
        requests.append(text)
        return None

    member = replace(opinion(A, "B"), text="word\n" * 100_000 + "The answer is B")
    result = excerpt(member, 900, read)
    assert result == ("word " * 180).rstrip() + " …"
    assert excerpt(member, 900, read, answer_disclosed=True) == result
    assert len(requests) < 900


HARMLESS = [
    "We look at it closely.",
    "It has wings",
    "so the first idea fails",
    "Therefore:",
    "> quoted words",
    "- a point",
]
STATED: list[tuple[Any, str, list[str]]] = [
    (LETTER, "C", ["The answer is (C).", "**Answer:** C", "C", "(C)", "\\boxed{C}", "Answer: cat"]),
    (LABEL, "Yes", ["Final Answer: Yes", "yes", "**Answer:** yes.", "Final Answer:\nYes"]),
    (Boxed(), HALF, ["\\boxed{\\frac12}", "So \\boxed{\\dfrac{1}{2}}.", "The answer is $\\frac12$."]),
    (Number(), "1234", ["The answer is 1,234.", "#### 1234", "1234", "= $1,234.00", "Answer:\n1,234"]),
]
SURE = [
    "",
    "Confidence: 0.87",
    "**Confidence:** 87%",
    "Confidence level: 0.87",
    "confidence = 0.87",
    "I am 87% confident.",
]


@given(st.data())
def test_neither_answer_nor_confidence_is_in_any_excerpt(data: st.DataObject) -> None:
    form, candidate, ways = data.draw(st.sampled_from(STATED))
    before = data.draw(st.lists(st.sampled_from(HARMLESS), max_size=5))
    body = [
        *before,
        data.draw(st.sampled_from(ways)),
        *data.draw(st.lists(st.sampled_from([*HARMLESS, *ways]), max_size=4)),
    ]
    body.insert(data.draw(st.integers(0, len(body))), data.draw(st.sampled_from(SURE)))
    length = data.draw(st.sampled_from([0, 5, 30, 900]))
    result = cut(form, "\n".join(body), candidate, length)
    assert reader(form)(result) != candidate and "87" not in result
    assert length < 900 or result == " ".join(before)
    report = cut(form, "\n".join(body), candidate, length, answer_disclosed=True)
    assert "87" not in report and len(report) <= length + 2


@given(st.data())
def test_of_an_object_only_the_reasoning_is_shown(data: st.DataObject) -> None:

    form, candidate, ways = data.draw(st.sampled_from(STATED))
    before = data.draw(st.lists(st.sampled_from(HARMLESS), max_size=4))
    reasoning = "\n".join([*before, *data.draw(st.lists(st.sampled_from(ways), max_size=1))])
    fields = [("reasoning", reasoning), ("answer", candidate), ("confidence", 0.87)]
    text = json.dumps(dict(data.draw(st.permutations(fields))), indent=data.draw(st.sampled_from([None, 2])))
    assert cut(form, data.draw(st.sampled_from(["", "```json\n", "Sure:\n"])) + text, candidate) == " ".join(before)


@pytest.mark.parametrize("form", ["letter", "number", "boxed"])
@pytest.mark.parametrize("style", ["line", "json"])
def test_a_coordinator_of_reasoning_alone_sees_no_answer(form: str, style: str) -> None:
    text = "Purring is decisive.\nThe answer is ({}).\nConfidence: 0.87"
    if style == "json":
        text = '{{"reasoning": "Purring is decisive.", "answer": "{}", "confidence": 0.87}}'
    answer = "C" if form == "letter" else "1,234"
    protocol = DarkForest(agents=2, confidence=style, disclosure=["reasoning"])
    report = converse(protocol, dict.fromkeys((A, "Agent-1", "Coordinator"), text.format(answer)), *question(form))
    assert (
        report.evidence
        == "Members:\n  Agent-0's reasoning: Purring is decisive.\n  Agent-1's reasoning: Purring is decisive."
    )
    assert report.outcome.group is not None
