"""FinQA's programs: what they come to, and when two are the same."""

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.benchmarks.finqa.finqa_kit import (
    LITERALS,
    finqa,
    literals,
    nested,
    read,
    rewritten,
    same_function,
    sequential,
    size,
    trees,
)
from tests.helpers.samples import examples

Problem, execute, execution_equal, program_equal = (
    finqa.Problem,
    finqa.execute,
    finqa.execution_equal,
    finqa.program_equal,
)
TABLE = [
    ["", "2019", "2018"],
    ["net sales", "$ 5,829", "5,735"],
    ["net income ( loss )", "-35 ( 35 )", "( 20 )"],
    ["margin", "12.5 %", "7.5%"],
    ["note", "see page 4", "3"],
    ["empty"],
]
GOLD = "subtract(5829, 5735), divide(#0, 5735)"
every = settings(deadline=None, max_examples=examples(200))


def run(text: str) -> Any:
    return execute(read(text), TABLE)


def equal(text: str, gold: str = GOLD) -> bool:
    return program_equal(read(text), read(gold))


@pytest.mark.parametrize(
    ("program", "value"),
    [
        (GOLD, 0.01639),
        ("add(25.0, 24.0), add(9.7, 10.2), add(#1, #0)", 68.9),
        ("multiply(12.5%, const_1000)", 125.0),
        ("multiply(-.5, const_m1)", 0.5),
        ("divide(1, 3), multiply(#0, 3)", 1.0),  # rounded at the end only
        ("exp(2, 10)", 1024.0),
        ("exp(-2, 3)", -8.0),
        ("exp(4, 0.5)", 2.0),
        ("add(1, 2), greater(#0, 2)", "yes"),
        ("greater(2, 2)", "no"),
        ("table_max(net sales, none)", 5829.0),
        ("table_min(net income ( loss ), none)", -35.0),
        ("table_sum(net income ( loss ), none)", -55.0),
        ("table_average(net  sales, none), subtract(#0, 5735)", 47.0),
        ("table_sum(margin, none)", 0.2),
    ],
)
def test_result(program: str, value: Any) -> None:
    assert run(program) == value
    assert execution_equal(run(program), value)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("subtract(3, 3), divide(1, #0)", "divides by 0"),
        ("divide(1, 0), add(1, 2)", "divides by 0"),  # every step must have a result
        ("exp(0, -1)", "divides by 0"),
        ("exp(-2, 0.5)", "no real root"),
        ("exp(9, 9), exp(9, #0), exp(9, #1)", "too large"),
        ("exp(1e300, 1e300)", "too large"),
        ("multiply(1e300, 1e300)", "too large"),
        ("add(1e999, 1)", "too large"),
        ("greater(1, 2), add(#0, 1)", "#0 is no, not a number"),
        ("table_sum(net profit, none)", "no row 'net profit'"),
        ("table_sum(note, none)", "'see page 4' is no number"),
        ("table_sum(empty, none)", "is empty"),
    ],
)
def test_no_result(program: str, words: str) -> None:
    result = run(program)
    assert isinstance(result, Problem)
    assert words in result.words
    assert not execution_equal(result, 0.0)


def test_without_a_table() -> None:
    result = execute(read("table_sum(net sales, none)"))
    assert isinstance(result, Problem) and "there is no table" in result.words


@given(trees(), st.randoms(use_true_random=False))
@every
def test_results_are_those_of_python(tree: Any, rng: random.Random) -> None:
    operations = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}

    def value(part: Any) -> float:
        if isinstance(part, str):
            special = {"12.5%": 0.125, "const_100": 100.0, "const_m1": -1.0}
            return special[part] if part in special else float(part)
        result: float = operations[part[0]](value(part[1]), value(part[2]))
        return result

    result = execute(read(sequential(tree, rng)))
    try:
        assert result == round(value(tree), 5)
    except ZeroDivisionError:
        assert isinstance(result, Problem)


@pytest.mark.parametrize(
    ("value", "gold", "is_equal"),
    [
        (0.01639, 0.01639, True),
        (0.01639, 0.0164, False),  # no tolerance
        (1.639, 0.01639, False),  # no rescue of percentages
        (94.0, 94, True),
        (-0.0, 0.0, True),
        ("yes", "yes", True),
        ("yes", "no", False),
        ("yes", 1.0, False),
        (1.0, "yes", False),
        (1.0, True, False),
        (1.0, None, False),
        (1.0, "1.0", False),
        (1.0, float("nan"), False),
        (1.0, 10**400, False),
    ],
)
def test_execution_equal(value: Any, gold: Any, is_equal: bool) -> None:
    assert execution_equal(value, gold) is is_equal


@pytest.mark.parametrize(
    "text",
    [
        GOLD,
        "divide(subtract(5829, 5735), 5735)",
        "divide(5829, 5735), divide(5735, 5735), subtract(#0, #1)",
        "subtract(5829, 5735), add(5829, 5735), divide(#0, 5735)",  # a step that nobody needs
        "divide(5735, subtract(5829, 5735)), divide(5735, 5735), divide(#1, #0)",
        "subtract(5735, 5829), subtract(5735, 5735), subtract(#1, #0), divide(#2, 5735)",
    ],
)
def test_same_program(text: str) -> None:
    assert equal(text)


@pytest.mark.parametrize(
    "text",
    [
        "subtract(5735, 5829), divide(#0, 5735)",
        "subtract(5829, 5735), divide(#0, 5829)",
        "subtract(5829, 5735)",
        "subtract(5829.0, 5735), divide(#0, 5735)",
        "subtract(5829, 5735), divide(#0, 5735), multiply(#1, const_100)",
        "add(const_1, 5829), subtract(5829, 5735), divide(#1, 5735)",  # an unknown literal, in whichever step
        "divide(5829, 5735), subtract(#0, const_1)",  # the same number, but 1 is not in the gold program
        "subtract(5829, 5829), divide(5735, #0)",
    ],
)
def test_another_program(text: str) -> None:
    assert not equal(text)


@pytest.mark.parametrize(
    ("text", "gold", "is_equal"),
    [
        ("greater(add(1, 2), 3)", "greater(add(2, 1), 3)", True),
        ("greater(3, add(1, 2))", "greater(add(2, 1), 3)", False),
        ("exp(add(1, 2), 3)", "exp(add(2, 1), 3)", True),
        ("exp(3, 2)", "exp(2, 3)", False),
        ("table_max(a, none), divide(#0, 2)", "table_max(a, none), divide(#0, 2)", True),
        ("table_min(a, none), divide(#0, 2)", "table_max(a, none), divide(#0, 2)", False),
        ("table_max(b, none), divide(#0, 2)", "table_max(a, none), divide(#0, 2)", False),
        ("subtract(1, 1), divide(2, #0)", "subtract(1, 1), divide(2, #0)", False),  # defined nowhere
        ("add(100, const_100)", "multiply(100, const_100)", False),
        ("divide(multiply(1, 2), 2)", "multiply(1, divide(2, 2))", True),
    ],
)
def test_functions_of_their_arguments(text: str, gold: str, is_equal: bool) -> None:
    assert equal(text, gold) is is_equal


@given(trees(["add", "subtract", "multiply", "divide", "exp", "greater"], 8), st.randoms(use_true_random=False))
@every
def test_rewriting_changes_nothing(tree: Any, rng: random.Random) -> None:
    other = rewritten(rewritten(tree, rng), rng)
    assume(size(other) <= 20)
    gold = read(nested(tree))
    # 0/0 somewhere makes a program equal to none, itself included
    assert program_equal(read(sequential(other, rng)), gold) == program_equal(gold, gold)


@given(trees(leaves=4), trees(leaves=4), st.randoms(use_true_random=False))
@every
def test_equal_is_what_multiplying_out_says(one: Any, other: Any, rng: random.Random) -> None:
    gold = read(nested(one))
    for candidate in (other, changed(one, rng), rewritten(one, rng)):
        if isinstance(candidate, tuple):
            expected = literals(candidate) <= literals(one) and same_function(candidate, one)
            assert program_equal(read(sequential(candidate, rng)), gold) is expected


def changed(tree: Any, rng: random.Random) -> Any:
    """One operation or literal replaced, or two sides swapped."""
    if isinstance(tree, str):
        return rng.choice(LITERALS)
    operation, left, right = tree
    changes: list[Callable[[], Any]] = [
        lambda: (operation, right, left),
        lambda: (rng.choice(["add", "subtract", "multiply", "divide"]), left, right),
        lambda: (operation, changed(left, rng), right),
        lambda: (operation, left, changed(right, rng)),
    ]
    return rng.choice(changes)()


def test_huge_polynomials_cost_nothing() -> None:
    steps = ["add(1, 2)", *(f"multiply(#{i}, #{i})" for i in range(19))]  # degree 2**19, half a million terms
    program = read(", ".join(steps))
    assert program_equal(program, program)
    assert not program_equal(read(", ".join(["subtract(1, 2)", *steps[1:]])), program)
    assert program_equal(read(", ".join(["add(2, 1)", *steps[1:]])), program)


@given(trees(["add", "subtract", "multiply", "divide", "exp", "greater"], 12))
@every
def test_running_and_comparing_are_total(tree: Any) -> None:
    program = read(nested(tree))
    assert isinstance(execute(program), (float, str, Problem))
    assert isinstance(program_equal(program, finqa.Program(program.steps[:1])), bool)
