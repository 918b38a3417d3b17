"""Replies that should be one JSON object: LaTeX, code, quotes and line breaks within strings, text around them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.panels.answer_with_confidence import confidence
from harness.replies import json_fields
from harness.replies.literals import objects

KEYS = ("reasoning", "answer", "confidence_level")
CODE = 'def f(x):\n\treturn {"a": "b"}\n'


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\\frac{1}{2}", r"\frac{1}{2}"),
        (r"\beta + \rho \to 0", r"\beta + \rho \to 0"),
        (r"x \ne 0", r"x \ne 0"),
        (r"\nabla f \times g, \text{if } \theta", r"\nabla f \times g, \text{if } \theta"),
        (r"\(x\) and $\nu$", r"\(x\) and $\nu$"),
        (r"1.\nThen \sqrt{2}", "1.\nThen \\sqrt{2}"),
        (r"def f(x):\n    return x", "def f(x):\n    return x"),
        (r"def f(x):\n\treturn x", "def f(x):\n\treturn x"),
        (r"a = 1\ne = 2\ni = 3", "a = 1\ne = 2\ni = 3"),
        (r"one\ttwo\nthree", "one\ttwo\nthree"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        (r"\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        (r"caf\u00e9 \ud83d\ude00 \ud83d", "café 😀 \ufffd"),
        (r"say \"hi\" \/ it\'s", 'say "hi" / it\'s'),
        (r"90\% of \$5", r"90\% of \$5"),
        ("raw\nbreak", "raw\nbreak"),
    ],
)
def test_backslashes_mean_what_they_were_meant_to(written: str, meant: str) -> None:
    assert json_fields(f'{{"answer": "{written}", "confidence_level": 0.9}}', KEYS)["answer"] == meant
    assert json_fields(f'```json\n{{"confidence_level": 0.9, "answer": "{written}"}}\n```', KEYS)["answer"] == meant


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"answer": "5", "confidence_level": 0.9}', {"answer": "5", "confidence_level": 0.9}),
        ("{'answer': '5', 'confidence_level': 0.9,}", {"answer": "5", "confidence_level": 0.9}),
        ('Sure!\n```json\n{"Answer": "5"}\n```\nHope it helps {"x": 1}', {"answer": "5"}),
        ('{"answer": "1"} and then {"answer": "2"}', {"answer": "2"}),
        ('{"answer": "1", "confidence_level": 1} {"answer": "2"}', {"answer": "1", "confidence_level": 1}),
        ('{"answer": "1", "confidence_level": 1} {"answer": "cut off', {"answer": "1", "confidence_level": 1}),
        ('{"result": [{"answer": [1, 2], "reasoning": null}]}', {"reasoning": None, "answer": [1, 2]}),
        ('{"answer": True, "reasoning": "ok"}', {"reasoning": "ok", "answer": True}),
        ('{"answer": "x", "confidence_level": 85%}', {"answer": "x", "confidence_level": "85%"}),
        ('{"reasoning": "He said "no".", "answer": "A"}', {"reasoning": 'He said "no".', "answer": "A"}),
        ('{"answer": "A", "reasoning": "He said "no"."} Bye.', {"reasoning": 'He said "no".', "answer": "A"}),
        ('{"answer": \\frac{1}{2}, "confidence_level": .5}', {"answer": "\\frac{1}{2}", "confidence_level": 0.5}),
        ('{"answer": "' + CODE + '", "confidence_level": 0.8}', {"answer": CODE, "confidence_level": 0.8}),
        ('{"confidence_level": 0.8,\n"answer": "' + CODE + '"\n} }', {"answer": CODE, "confidence_level": 0.8}),
        ('{"answer": "cut off', {}),
        ("no object at all", {}),
        ('{"other": 1}', {}),
        ("{}", {}),
        ("", {}),
    ],
)
def test_fields(text: str, values: dict[str, Any]) -> None:
    assert json_fields(text, KEYS) == values


def test_an_object_quoted_in_a_string_is_not_taken_for_the_reply() -> None:
    inner = json.dumps({"answer": "wrong", "confidence_level": 0.1})
    text = json.dumps({"reasoning": f"somebody wrote\n{inner}", "answer": "right", "confidence_level": 1})
    assert json_fields(text, KEYS)["answer"] == "right"


def test_a_number_that_json_cannot_hold_stays_text() -> None:
    assert json_fields('{"answer": 1e999}', KEYS) == {"answer": "1e999"}


# A line break before "abla" would be read as LaTeX: what stands behind a backslash has its own test.
plain = st.text(st.characters(blacklist_characters="\\", blacklist_categories=["Cs", "Cc"]), max_size=30)


@given(st.fixed_dictionaries({"reasoning": plain, "answer": plain, "confidence_level": st.floats(0, 1)}), plain)
def test_what_json_wrote_is_read_again(values: dict[str, Any], around: str) -> None:
    around = around.replace("{", "")
    assert json_fields(f"{around}\n{json.dumps(values)}\n{around}", KEYS) == values
    assert json_fields(json.dumps(values, indent=2, ensure_ascii=False), KEYS) == values


@given(st.text(alphabet="{}[]\"':,\\ \nabfnrtu0answer", max_size=200))
def test_any_text_gives_json_values_of_wanted_keys(text: str) -> None:
    result = json_fields(text, ("answer", "a"))
    assert set(result) <= {"answer", "a"}
    json.dumps(result, allow_nan=False).encode("utf-8")


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0.9, 0.9), ("0.9", 0.9), (1, 1.0), (0, 0.0), ("85%", 0.85), ("85 percent", 0.85), (85, 0.85), ("85", 0.85),
        (100, 1.0), ("1%", 0.01), (1.5, None), (9.9, None), (10, 0.1), ("8/10", 0.8), ("12/10", None), ("0,85", 0.85),
            (" 0.5 ", 0.5), (-0.1, None), ("-5%", None), (101, None), ("nan", None),
        (float("nan"), None), ("inf", None), (True, None), (None, None), ("high", None), ([0.5], None), ("", None),
        ("9" * 10_000, None), (10**400, None),
    ],
)  # fmt: skip
def test_confidence(value: Any, number: float | None) -> None:
    assert confidence(value) == (None if number is None else pytest.approx(number))


@pytest.mark.parametrize("unit", ["{//", "{#", "//{\n", "{/*", '{/**/"', "{ #\n"])
def test_a_flood_of_comments_in_braces_is_read_to_its_end(unit: str) -> None:
    """It took minutes where each brace looked through all comments behind it."""
    text = (unit * 50_000)[:50_000] + '\n{"answer": 1}'
    assert json_fields(text, ("answer",)) == {"answer": 1}


@pytest.mark.parametrize("comment", ["/* so */", "// so\n", "# so\n", "/* so\n*/", "# a\n# b\n\n// c\n"])
def test_an_object_may_begin_with_comments(comment: str) -> None:
    assert json_fields(f'{{{comment}"answer": 1}}', ("answer",)) == {"answer": 1}
    assert [value for *_, value in objects(f'{{{comment}"answer": 1}}')] == [{"answer": 1}]


def test_a_key_that_only_looks_alike_is_none() -> None:
    """İ matches i where case is ignored, and is two characters in lower case."""
    assert json_fields('{"conf\u0130dence": 0.8', ["confidence"]) == {}
