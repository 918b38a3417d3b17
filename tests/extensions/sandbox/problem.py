"""A problem of our own in HumanEval's form, and how its programs are graded here."""

from harness.extensions.sandbox import ProgramLimits, Verdict, check

PROMPT = '''from typing import List


def doubled(numbers: List[int]) -> List[int]:
    """Helper of the test."""
    return [2 * n for n in numbers]


def evens(numbers: List[int]) -> List[int]:
    """ The even ones among numbers, in order.
    >>> evens([1, 2, 4])
    [2, 4]
    """
'''
TEST = """
METADATA = {'author': 'here'}


def check(candidate):
    assert candidate([1, 2, 4]) == [2, 4], "some"
    assert candidate([]) == []
    numbers = list(range(5))
    assert candidate(doubled(numbers)) == [0, 2, 4, 6, 8]
    assert numbers == [0, 1, 2, 3, 4]
"""
RIGHT = "return [n for n in numbers if n % 2 == 0]"
USUAL = ProgramLimits()
SHORT = ProgramLimits(wall=3.0, cpu=1, memory=1 << 28)


def graded(body: str, before: str = "", limits: ProgramLimits = USUAL) -> Verdict:
    """The verdict on a program of this problem: `body` in the function, `before` at the margin above it."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return check(PROMPT, f"{before}\n{PROMPT}{lines}", TEST, "evens", limits)


def judged(program: str, test: str, limits: ProgramLimits = USUAL) -> Verdict:
    """The verdict on a program for `f`, by the statements of a test."""
    lines = "".join(f"    {line}\n" for line in test.strip("\n").split("\n"))
    return check("def f(x):\n", program, f"def check(candidate):\n{lines}", "f", limits)
