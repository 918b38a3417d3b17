"""Answers as values: one normal form, comparison, partial credit; whatever a model writes."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.extensions.networks.answers import (
    INTEGER,
    INTEGERS,
    NUMBERS,
    ROWS,
    TABLE,
    TEXT,
    TRUTH,
    Answer,
    normalize,
    one_of,
    same,
)
from harness.extensions.networks.sharded import credit_for
from harness.extensions.yaml_tasks import conformance
from tests.helpers.samples import examples

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, width=32)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
NAMES = one_of(("Carol", "Dave"))
FORMS = [NAMES, INTEGER, INTEGERS, NUMBERS, ROWS, TABLE, TEXT, TRUTH]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), (" 12 \n", 12), ("'12'", 12), ('"12"', 12), ("```\n12\n```", 12), ("```json\n[1, 2]\n```", [1, 2]),
        ("12.0", 12), ("1e3", 1000), ("12.5", 12.5), ("-0.0", 0), ("+7", 7), ("0x10", 16), ("1_000", 1000),
        ("[1, 2,]", [1, 2]), ("(1, 2)", [1, 2]), ("1, 2", [1, 2]), ("(5)", 5), ("(5,)", [5]), ("()", []), ("{}", {}),
        ("{0: 1.0, 'a': (2,)}", {"0": 1, "a": [2]}), ('{"b": [true, null]}', {"b": [True, None]}),
        ("True", True), ("false", False), ("TRUE", True), ('["true", "1"]', [True, 1]), ("None", None), ("null", None),
        ("Alice", "Alice"), ('"Alice"', "Alice"), ("“Alice”", "Alice"), ("", ""), ("NaN", "NaN"), ("inf", "inf"),
        ("1e999", "inf"), ("the answer is 12", "the answer is 12"), ("12 13", "12 13"), ("[1, 2", "[1, 2"),
        ("[1 2]", "[1 2]"),
        ("'[1, 2]'", [1, 2]), ("{1, 2}", "{1, 2}"), ("1/2", "1/2"), ("__import__('os')", "__import__('os')"),
    ],
)  # fmt: skip
def test_the_normal_form(text: str, value: Any) -> None:
    assert normalize(text) == value and type(normalize(text)) is type(value)


def test_a_truth_value_is_no_number() -> None:
    assert not same(True, 1) and not same(0, False) and same(True, True) and not same("True", 1)
    assert credit_for("number", True, 1) == 0


@pytest.mark.parametrize(
    ("answer", "truth", "digits", "right"),
    [
        (0.13, 0.125, 2, True), (0.12, 0.125, 2, True), (0.14, 0.125, 2, False), (12, 12.004, 2, True),
        (12.5, 12, None, False), ([1, 2.13], [1, 2.125], 2, True), ([1], [1, 2], None, False),
        ({"a": 1}, {"a": 1, "b": 2}, None, False), ({"a": 1.001}, {"a": 1.0}, 2, True), ("12", 12, None, False),
        ([1, 2], "12", None, False), (None, 0, None, False), ("Bob", "Bob", None, True),
    ],
)  # fmt: skip
def test_comparison(answer: Any, truth: Any, digits: int | None, right: bool) -> None:
    assert same(answer, truth, digits) == right


@given(st.text(max_size=200) | st.text(alphabet="[](){},:'\"0123456789.eE-+truefalsnN `\n", max_size=200))
def test_any_text_is_read(text: str) -> None:
    value = normalize(text)
    assert normalize(value) == value, "a normal form stays as it is"
    json.dumps(value, allow_nan=False)
    for form in FORMS:
        parsed = Answer(form).parse(text)
        assert (parsed.error is None) != (parsed.action is None)


@given(VALUES)
def test_what_json_wrote_is_read_again(value: Any) -> None:
    once = normalize(json.dumps(value))
    assert normalize(json.dumps(once)) == once


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.words)
def test_answers_keep_the_contract_of_replies(form: Any) -> None:
    assert conformance.check_reply(Answer(form)) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "(",
        "{",
        "[1,",
        "((1),",
        '{"a":',
        "'",
        '"',
        "\\",
        "`",
        "1",
        "1_",
        "0x",
        "1e",
        "-",
        "true,",
        "\ud800",
        "é",
        " ",
        "“",
    ],
)
def test_a_long_text_of_anything_is_read(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    for whole in (text, f"[{text}]", f'"{text}"', f"```{text}```"):
        json.dumps(normalize(whole), allow_nan=False)


def test_a_long_right_answer_is_read() -> None:
    rows = [[i * j for j in range(100)] for i in range(100)]
    assert Answer(ROWS).parse(json.dumps(rows)).action == rows
    assert Answer(ROWS).parse(repr([tuple(row) for row in rows])).action == rows


@pytest.mark.parametrize(
    ("form", "slip", "says"),
    [
        (INTEGER, "1,202", "the answer must be one integer and nothing else; [1, 202] is not"),
        (INTEGER, "answer", "the answer must be one integer"),
        (INTEGER, "12.5", "the answer must be one integer"),
        (INTEGER, "true", "the answer must be one integer"),
        (NUMBERS, "12", "the answer must be a JSON list of numbers"),
        (INTEGERS, '[1, "two"]', "the answer must be a JSON list of integers"),
        (TABLE, '{"a": [1]}', "the answer must be a JSON object of numbers"),
        (TRUTH, "1", "the answer must be true or false"),
        (NAMES, "The winner is Dave", "the answer must be one of Carol, Dave and nothing else"),
        (NAMES, "answer", "the answer must be one of Carol, Dave"),
    ],
)
def test_a_slip_is_refused_with_its_reason(form: Any, slip: str, says: str) -> None:
    parsed = Answer(form).parse(slip)
    assert parsed.action is None and (parsed.error or "").startswith(says)


def test_a_name_is_read_as_it_is_spelled() -> None:
    assert [Answer(NAMES).parse(text).action for text in ("Dave", '"Carol"', "dave")] == ["Dave", "Carol", None]


# -------------------------------------------------------------------------------------------- credit


def longest_common(a: list[int], b: list[int]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, j in product(range(len(a)), range(len(b))):
        table[i + 1][j + 1] = table[i][j] + 1 if a[i] == b[j] else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@given(st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_sequences_earn_their_longest_common_subsequence(answer: list[int], truth: list[int]) -> None:
    assert credit_for("sequence", answer, truth) == longest_common(answer, truth) / len(truth)


@given(VALUES, VALUES)
@settings(max_examples=examples(300))
def test_credit_is_a_share_and_full_for_what_is_right(answer: Any, truth: Any) -> None:
    answer, truth = normalize(answer), normalize(truth)
    for kind in ("number", "exact", "entries", "cells", "sequence"):
        assert 0 <= credit_for(kind, answer, truth, 2) <= 1  # type: ignore[arg-type]
    if isinstance(truth, (list, dict)):
        assert credit_for("entries", truth, truth) == 1


@pytest.mark.parametrize(
    ("kind", "answer", "truth", "earned"),
    [
        ("number", 101, 100, 1), ("number", 102, 100, 0), ("number", 0, 0, 1), ("number", 0.01, 0, 0),
        ("exact", [1], [1], 1), ("exact", [1], [2], 0), ("entries", [1, 9, 3], [1, 2, 3, 4], 0.5),
        ("entries", {"a": 1, "x": 0}, {"a": 1, "b": 2}, 0.5), ("entries", "abc", [1], 0), ("entries", [], [], 1),
        ("cells", [[1, 2], [3]], [[1, 2], [3, 4]], 0.75), ("cells", 5, [[1]], 0),
        ("sequence", [3, 1, 2], [1, 2, 3], 2 / 3), ("sequence", [1, 2, 3, 3, 9], [1, 2, 3], 1),
        ("sequence", {}, [1], 0), ("sequence", [1], 1, 0), ("entries", False, True, 0), ("sequence", [], [], 1),
    ],
)  # fmt: skip
def test_credit(kind: Any, answer: Any, truth: Any, earned: float) -> None:
    assert credit_for(kind, answer, truth) == pytest.approx(earned)


def test_writing_the_same_for_ever_costs_no_time() -> None:
    truth = [i // 20 for i in range(2000)]
    assert credit_for("sequence", [7] * 1_000_000, truth) == 20 / 2000
