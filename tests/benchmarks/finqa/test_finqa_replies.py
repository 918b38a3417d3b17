"""FinQA's programs: how they are read from text and from what models write."""

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.extensions.yaml_tasks import conformance
from tests.benchmarks.finqa.finqa_kit import finqa, nested, read, sequential, trees
from tests.helpers.samples import examples

CHANGE = "subtract(5829, 5735), divide(#0, 5735)"
Problem, ProgramReply, execute, parse = finqa.Problem, finqa.ProgramReply, finqa.execute, finqa.parse
REPLY = ProgramReply()
every = settings(deadline=None, max_examples=examples(200))


@pytest.mark.parametrize(
    ("text", "program"),
    [
        (CHANGE, CHANGE),
        ("  subtract( 5829,5735 )\n divide ( #0 , 5735 )\n", CHANGE),
        ("divide(subtract(5829, 5735), 5735)", CHANGE),
        (
            "add(multiply(2, 3), divide(4, 5)), divide(#0, 6)",
            "multiply(2, 3), divide(4, 5), add(#0, #1), divide(#2, 6)",
        ),
        ("add(1,234)", "add(1, 234)"),
        ("multiply(12.5 %, const_m1)", "multiply(12.5%, const_m1)"),
        ("add(-.5, 1e6)", "add(-.5, 1e6)"),
        ("table_max(net income ( loss ) , a & b, none)", "table_max(net income ( loss ) , a & b, none)"),
        ("divide(table_sum(x, none), table_max(y, none))", "table_sum(x, none), table_max(y, none), divide(#0, #1)"),
    ],
)
def test_read_as_it_is(text: str, program: str) -> None:
    assert str(parse(text)) == program
    assert parse(program) == parse(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("change = subtract(5829, 5735), divide(change, 5735)", "'change =' stands before"),
        ("#1: subtract(5829, 5735), divide(#1, 5735)", "'#1:' stands before"),
        ("1. subtract(5829, 5735)\n2. divide(#0, 5735)", "'1.' stands before"),
        ("Step 1: subtract(5829, 5735)\nStep 2: divide(#0, 5735)", "'Step 1:' stands before"),
        ("- subtract(5829, 5735)\n- divide(#0, 5735)", "'-' stands before"),
        ("subtract(5829, 5735); divide(#0, 5735)", "';' stands between"),
        ("subtract(5829, 5735) -> divide(#0, 5735)", "'->' stands between"),
        ("subtract(5829, 5735), and then divide(#0, 5735)", "', and then' stands between"),
        ("subtract(5829, 5735) = 94, divide(#0, 5735) = 1.6%", "'= 94' stands behind"),
        ("subtract(5829, 5735) # change\ndivide(#0, 5735)", "'# change' stands behind"),
        ("subtract(5829, 5735), divide(#0, 5735) * 100", "'* 100' stands behind"),
        ("subtract(5829, 5735), divide(#0, 5735) (x 100%)", "'(x 100%)' stands behind"),
        ("subtract($ 5,829, €5,735), divide(#0, 5,735)", "'$ 5,829' is not written as a number"),
        ("subtract(5,829, 5,735), divide(#0, 5,735)", "takes two arguments, not 4"),
        ("add(1,234,567.5, 2)", "takes two arguments, not 4"),
        ("add((1,234), −5)", "'(1,234)' is not written as a number"),
        ("Add(1, 2)", "Add is written in small letters"),
        ("table_max(net sales)", "takes a row's name and none"),
        ("table_max(net sales, None)", "takes a row's name and none"),
    ],
)
def test_error_says_what_is_not_read(text: str, words: str) -> None:
    problem = parse(text)
    assert isinstance(problem, Problem) and words in problem.words
    assert REPLY.parse(f"Program: {text}").error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no operation at ''"),
        ("5829 - 5735", "there is no operation at '5829 - 5735'"),
        ("divide(5829 - 5735, 5735)", "'- 5735, 5735)' follows"),
        ("divide(1, 2) / 3", "'/ 3' stands behind"),
        ("divide(1, 2) - add(1, 2)", "'- add(1, 2)' stands behind"),
        ("multiply(1, 2) * 100, divide(#0, 3)", "'* 100'"),
        ("multiplied(1, 2)", "Did you mean multiply?"),
        ("add(1, percent(2))", "no operation percent"),
        ("add(1, 2", "the text ends where"),
        ("add(1)", "add takes two arguments, not 1: 1"),
        ("add(1, 2, 3)", "add takes two arguments, not 3"),
        ("add(1, )", "'' is no argument"),
        ("add(1, two)", "'two' is no argument"),
        ("add(1, const_pi)", "'const_pi' is no argument"),
        ("add(1, 5 million)", "'million)' follows"),
        ("add(#0, 1)", "#0 is not an earlier step"),
        ("add(1, 2), add(#0, #1)", "#1 is not an earlier step"),
        (f"add(1, {'9' * 41})", "more than 40 characters"),
        (", ".join(["add(1, 2)"] * 21), "more than 20 steps"),
        ("add(" * 21 + "1", "more than 20 steps"),
        ("table_max(net sales", "not closed"),
        ("table_max(, none)", "no row's name"),
        ("add(1, 2) and so on", "'and so on' stands behind the program"),
        ("add(1, ٣)", "is no argument"),
    ],
)
def test_no_program(text: str, words: str) -> None:
    problem = parse(text)
    assert isinstance(problem, Problem)
    assert words in problem.words


@pytest.mark.parametrize(
    "reply",
    [
        f"Program: {CHANGE}\nFinal Answer: 1.6%",
        f"First add(1, 2).\n**Program:** `{CHANGE}`\n**Final Answer:** 0.01639",
        f"**Final program**: {CHANGE}.",
        f"Program:\n```python\n{CHANGE}\n```\nFinal Answer: 0.01639",
        "Program:\n\nsubtract(5829, 5735)\n\ndivide(#0, 5735)\n\nFinal Answer: 0.01639",
        "PROGRAM = divide(\n  subtract(5829, 5735),\n  5735\n)",
        f"Program: add(1, 2)\nNo, this is better.\nProgram: {CHANGE}",
        f"Program: {CHANGE}\nThe program: it takes the change.",
        f"Program: {CHANGE}\nHere subtract(5829, 5735) is the change (see above).".replace("Here", "\nHere"),
        f'{{"reasoning": "add(1, 2)", "program": "{CHANGE}", "answer": "1.6%"}}',
        '{"program": ["subtract(5829, 5735)", "divide(#0, 5735)"], "answer": 0.016}',
        f"```json\n{{'program': '{CHANGE}'}}\n```",
        f"Let us see: add(1, 2) is wrong.\nSo: {CHANGE}, which is 1.6%.",
        f"add(1, 2)\n\n{CHANGE}",
        CHANGE,
        CHANGE.replace("#", "\\#"),
    ],
)
def test_where_the_program_stands(reply: str) -> None:
    assert REPLY.parse(reply).action == CHANGE


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("I do not know.", "no program was found"),
        ("Program: subtract(5829, 5735) which goes into divide(#0, 5735)", "'which goes into' stands between"),
        ("Program:\nsubtract(5829, 5735) (change)\ndivide(5829, 5735)", "'(change)' stands between"),
        (f"Program: {CHANGE}\nProgram: divide(#0, 5735)", "#0 is not an earlier step"),  # the last one counts
        ("subtract(5829, 5735) is 94. Then divide(#0, 5735)", "#0 is not an earlier step"),
        ("Program: divide(94, 5735", "the text ends"),
        ('{"program": 5}', "no program was found"),
        ("It is percent(94, 5735).", "no program was found"),
    ],
)
def test_no_program_in_a_reply(reply: str, words: str) -> None:
    error = REPLY.parse(reply).error
    assert error is not None and words in error
    assert "End with a line such as: Program: subtract(<number>, <number>), divide(#0, <number>)" in error


def test_half_a_program_is_not_read() -> None:
    numbered = "Program:\n1. subtract(5829, 5735)\n2. divide(5829, 5735)"
    assert REPLY.parse(numbered).error
    assert REPLY.parse(numbered.removeprefix("Program:\n")).error


@given(trees([*finqa.OPERATIONS[:6]], 12), st.randoms(use_true_random=False))
@every
def test_both_forms_are_one_program(tree: Any, rng: random.Random) -> None:
    flat, steps = read(nested(tree)), read(sequential(tree, rng))
    assert execute(flat) == execute(steps) or isinstance(execute(flat), Problem)
    assert finqa.program_equal(steps, flat) == finqa.program_equal(flat, flat)
    assert parse(str(steps)) == steps
    assert REPLY.parse(f"Well.\nProgram: {steps}\nFinal Answer: 5").action == str(steps)
    assert REPLY.allows(str(steps)) and not REPLY.allows(str(steps) + ",")


PARTS = 'add(|divide(|table_max(|none)|1|5,829|#0|x| = |, |)|(|Program:|* 100|```|"|[|{|const_100|%|$|-|and|#1:|1.|foo('
PIECES = st.sampled_from([*PARTS.split("|"), "\n", "|", "\\", "\ud800", "²"])


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
@settings(deadline=None, max_examples=examples(500))
def test_any_text(text: str) -> None:
    parsed = REPLY.parse(text)
    assert (parsed.action is None) is (parsed.error is not None)
    if parsed.error is None:
        assert parsed.action.encode()  # no half characters, which JSON cannot hold
        program = read(parsed.action)  # what is made of a text is in the benchmark's own form
        assert isinstance(execute(program), (float, str, Problem))


LONG = (
    "add(|add (|add(1, 2), |add(1, 2) = |table_max(|Program: |Program: [|x = | |1,|(|\\_|add(1, 2) and |Program: add("
    '|"program": "|#0: |- |1. '
)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("piece", [*LONG.split("|"), "\n", "add(1, 2)\n\n", "|"])
def test_a_megabyte_is_read_in_linear_time(piece: str) -> None:
    """Were the time quadratic, any of these would take hours."""
    text = piece * (200_000 // len(piece))
    assert isinstance(parse(text), Problem)
    assert REPLY.parse(f"{text}\n\nProgram: {CHANGE}").action == CHANGE


def test_form_keeps_the_promises_of_forms() -> None:
    assert conformance.check_reply(REPLY) == []


def test_constraint_is_what_is_read() -> None:
    pattern = REPLY.constraint()["regex"]
    for program in (CHANGE, "table_max(net sales, none), multiply(#0, 12.5%), greater(#1, const_m1)"):
        assert re.fullmatch(pattern, f"Program: {program}")
        assert REPLY.parse(f"Program: {program}").action == program
    assert not re.fullmatch(pattern, "Program: divide(1 - 2, 3)")
