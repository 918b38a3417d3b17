"""Honest programs: what passes where it should, what fails says why, and values cross unharmed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from harness.api.errors import SetupError
from harness.extensions.sandbox import ProgramLimits, Verdict, check, report
from tests.extensions.sandbox.problem import PROMPT, RIGHT, TEST, graded, judged

MISTAKEN = replace(report(), machine="aarch64" if report().machine == "x86_64" else "x86_64")
"""Another processor's system calls: the kernel ends a process so confined."""


def test_a_right_program_passes() -> None:
    assert graded(RIGHT) == Verdict(True, "passed", "")


def test_a_wrong_program_fails_and_the_line_of_the_test_is_reported() -> None:
    verdict = graded("return numbers")
    assert (verdict.passed, verdict.status) == (False, "failed")
    assert "assert candidate([1, 2, 4]) == [2, 4]" in verdict.detail and "some" in verdict.detail


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("def f(x):\n    return y\n", "NameError: name 'y' is not defined"),
        ("def f(x)\n    return x\n", "SyntaxError"),
        ("def g(x):\n    return x\n", "defines no function f"),
        ("f = 3\n", "defines no function f"),
        ("import nonsense_that_is_not_there\n", "ModuleNotFoundError"),
        ("class Own(KeyError): pass\ndef f(x):\n    raise Own('mine')\n", "Own: 'mine'"),
        ("def f():\n    return 1\n", "TypeError"),
        ("", "defines no function f"),
    ],
)
def test_a_broken_program_is_an_error_in_its_own_words(program: str, words: str) -> None:
    verdict = judged(program, "assert candidate(1) == 1")
    assert verdict.status == "error" and words in verdict.detail


VALUES = [
    "None", "True", "0", "-7", "2**64", "-(10**5000)", "1.5", "float('inf')", "'é\\n\\ud800'", "b'\\x00\\xff'",
    "2j + 1",
    "bytearray(b'x')", "[]", "[1, [2, (3, {4: {5}})]]", "()", "(1,)", "{}", "{(1, 'a'): [None], 2.5: frozenset({1})}",
    "set()", "{1, 'a', None}", "range(1, 10, 3)", "__import__('fractions').Fraction(-1, 3)",
    "__import__('decimal').Decimal('1.10')",
]  # fmt: skip


def test_plain_data_crosses_both_ways_as_it_is() -> None:
    one = (
        "for value in [{}]:\n    came = candidate(value)\n    assert came == value and type(came) is type(value), value"
    )
    assert judged("def f(x):\n    return x\n", one.format(", ".join(VALUES))).passed
    other = (
        "for value, came in zip([{0}], candidate(0)):\n    assert came == value and type(came) is type(value), value"
    )
    inside = ", ".join(VALUES)
    assert judged(f"def f(x):\n    return [{inside}]\n", other.format(inside)).passed
    assert judged("def f(x):\n    return float('nan')\n", "x = candidate(0)\nassert x != x").passed


def test_what_equals_plain_data_crosses_as_that() -> None:
    program = (
        "from collections import Counter, OrderedDict, defaultdict, namedtuple\nfrom enum import IntEnum\n"
        "P = namedtuple('P', 'a b')\nE = IntEnum('E', 'one two')\n"
        "def f(x):\n"
        "    return [Counter('aab'), OrderedDict(a=1), defaultdict(int, a=1), P(1, 2), E.two, {1: 2}.keys()]\n"
    )
    assert judged(program, "assert candidate(0) == [{'a': 2, 'b': 1}, {'a': 1}, {'a': 1}, (1, 2), 2, {1}]").passed


def test_what_is_no_plain_data_equals_nothing() -> None:
    for value in ("object()", "map(str, [])", "(n for n in [])", "f", "int", "__import__('os')"):
        verdict = judged(f"def f(x):\n    return {value}\n", "y = candidate(0)\nassert y == [] or y == y.real, repr(y)")
        assert verdict.status in ("failed", "error"), verdict


def test_arguments_changed_in_place_change_for_the_test() -> None:
    program = "def f(a, b, *, c):\n    a.sort(); b.clear(); c.add(3); a = [9]\n"
    test = (
        "a, b, c = [2, 1], {1: 2}, {1}\nassert candidate(a, b, c=c) is None\nassert (a, b, c) == ([1, 2], {}, {1, 3})"
    )
    assert judged(program, test).passed
    assert judged("def f(x):\n    x[0].append(x)\n", "x = [[]]\ncandidate(x)\nassert x == [[]]").passed


def test_an_expected_exception_is_one() -> None:
    test = "try:\n    candidate(-1)\n"
    test += "except ValueError as error:\n    assert 'small' in str(error)\nelse:\n    assert False"
    assert judged("class Own(ValueError): pass\ndef f(x):\n    raise Own('too small')\n", test).passed
    assert judged("def f(x):\n    raise KeyError('too small')\n", test).status == "error"
    assert judged("def f(x):\n    return 1\n", test).status == "failed"
    assert judged("def f(x):\n    'é'.encode('ascii')\n", test.replace("small", "codec")).status in ("passed", "error")


def test_printing_is_no_fault() -> None:
    assert graded("print('x' * 200_000)\n" + RIGHT).passed


def test_the_standard_library_is_there() -> None:
    names = "math re json hashlib collections itertools functools heapq bisect string random datetime dataclasses copy "
    names += "statistics zoneinfo sqlite3 decimal unicodedata zlib bz2 lzma array typing contextlib"
    program = (
        f"import {', '.join(names.split())}\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    a: int\n"
    )
    program += "def f(x):\n    return hashlib.md5(b'x').hexdigest() + str(P(1).a)\n"
    verdict = judged(program, "import hashlib\nassert candidate(1) == hashlib.md5(b'x').hexdigest() + '1'")
    assert verdict.passed, verdict


def test_verdicts_do_not_depend_on_hashes() -> None:
    program = "def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n"
    seen = {judged(program, "assert False, candidate(1)").detail for _ in range(3)}
    assert len(seen) == 1


@pytest.mark.slow
def test_a_test_that_goes_wrong_blocks_nothing() -> None:
    fine = "def f(x):\n    return x\n"
    short = ProgramLimits(wall=3.0, cpu=1)
    assert judged(fine, "while True: pass", short).status == "timeout"
    assert "test's process" in judged(fine, "import os\nos.abort()").detail
    assert judged(fine, "candidate(object())").status == "error"
    assert judged(fine, "candidate('x' * 9_000_000)").status == "refused"
    assert judged(fine, "[0] * 10**12").status == "memory"
    assert check("def f(x):\n", fine, "def check(candidate) pass", "f").status == "error"
    assert check("def f(x):\n", fine, "assert True", "f").status == "refused"
    assert check("def f(x):\n", "#" * 2_000_000, TEST, "f").status == "refused"


@pytest.mark.slow
def test_many_at_once() -> None:
    bodies = [RIGHT, "return numbers"] * 6
    with ThreadPoolExecutor(4) as pool:
        assert [verdict.passed for verdict in pool.map(graded, bodies)] == [True, False] * 6


def test_where_the_essential_is_missing_nothing_is_run() -> None:
    for using, word in (
        (replace(report(), system="darwin"), "Linux"),
        (replace(report(), machine="vax"), "x86_64"),
        (replace(report(), seccomp=False), "seccomp"),
    ):
        assert using.missing and word in str(using)
        with pytest.raises(SetupError, match=word):
            check(PROMPT, f"{PROMPT}    {RIGHT}", TEST, "evens", protections=using)
    with pytest.raises(SetupError, match="cannot be confined"):
        check(PROMPT, f"{PROMPT}    {RIGHT}", TEST, "evens", ProgramLimits(), MISTAKEN)


@pytest.mark.parametrize(
    "wrong", [{"cpu": 0}, {"memory": 1 << 20}, {"wall": -1.0}, {"files": -1}, {"wall": float("nan")}]
)
def test_limits_name_their_bounds(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be at least"):
        ProgramLimits(**wrong)
