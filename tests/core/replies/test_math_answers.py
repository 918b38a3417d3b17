"""Mathematical answers: one normal form of what is written in many ways, and comparison by meaning."""

import subprocess
import sys
import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.api.errors import SetupError
from harness.extensions.datasets.equivalence import math_equal
from harness.extensions.datasets.mathematics import math_canonical
from tests.helpers.samples import examples

SAME = [
    ["0.5", r"\frac12", "1/2", r"$\dfrac{1}{2}$", ".5", "0.50", r"\boxed{\frac{1}{2}}", r"\(\tfrac{1}{2}\)",
     r"\frac 1 2", "2/4", r"\frac1{2}", r"x=\frac12", "$0.5$.", "**1/2**", "½"],
    [r"\frac{1}{3}", "1/3", r"\frac13", "2/6", "+1/3"],
    [r"-\frac{1}{3}", "-1/3", r"\frac{-1}{3}", r"\frac{1}{-3}", "−1/3"],
    ["2.5", r"2\frac12", "5/2", "2 1/2", r"\frac{5}{2}"],
    ["1234", "1,234", "1{,}234", r"1,\!234", r"\$1,234", "$1,234$", "1,234.00", "£1234", "1,234 dollars"],
    ["90", r"90^\circ", r"90^{\circ}", "90°", "90 degrees", r"90\text{ degrees}", r"90\degree"],
    ["5", r"5\text{ cm}", r"5\mbox{ cm}^2", "5 cm", "5cm", "5 square units", "5 apples", r"5\ \mathrm{m}",
     r"5\,\text{m/s}", "x = 5", "(5)", "+5", r"5\%", "5 percent", "$n=5$", "5 miles per hour", "5 cm^2", "5 sq ft",
     r"x \in 5", "05"],
    ["evelyn", r"\text{Evelyn}", "Evelyn", r"\mbox{Evelyn}", r"\mathrm{Evelyn}."],
    [r"\sqrt{3}", r"\sqrt3", "√3", "√(3)", r"\sqrt {3}"],
    [r"\sqrt[3]{2}", r"\sqrt [3]2"],
    ["x^{2}", "x^2", "x²", "{x}^2", "x**2"],
    ["10^{-3}", "10^-3", "10^(-3)"],
    [r"\{1,2\}", r"\{2, 1\}", r"\left\{2,1\right\}"],
    ["1,2", "1, 2", r"1\text{ and }2", "1 and 2", "x=1,x=2", "x=1 or x=2", r"x=1\text{ or }x=2", "1;2"],
    ["5,-5", r"\pm 5", "±5", "-5,5", r"x=\pm5"],
    ["2+3,2-3", r"2\pm3"],
    ["(1,2)", r"\left(1,2\right)", "( 1, 2 )", r"\bigl(1,\,2\bigr)"],
    ["(0.5,2)", r"\left(\frac12, 2.0\right)"],
    ["[1,2)", r"\left[1,2\right)"],
    [r"\frac{\sqrt{2}}{2}", r"\sqrt{2}/2", r"\frac{\sqrt2}2"],
    [r"\frac{\pi}{2}", r"\frac\pi2", r"\pi/2", "π/2"],
    [r"36\pi", r"36\pi\text{ cm}^2", "36π"],
    [r"(-\infty,3)\cup(5,\infty)", r"(-\infty, 3) \cup (5, +\infty)", "(−∞,3)∪(5,∞)"],
    [r"\sin x", r"\sin{x}", r"\sin  x"],
    [r"\frac{x+1}{2}", "(x+1)/2"],
    [r"3\cdot10^{4}", r"3\times 10^4", "3*10^4"],
    [r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{bmatrix}1\\2\end{bmatrix}"],
    ["A", "(A)", r"\text{(A)}", r"\textbf{A}"],
    ["yes", "Yes", r"\text{Yes}."],
    ["123_{6}", "123_6", r"123_{\text{6}}"],
    ["0", "-0", "0.0"],
]  # fmt: skip
DIFFERENT = [
    ("5x", "5"), ("6+9i", "6"), ("5m", "5"), ("3i", "3"), ("(1,234)", "1234"), ("(1,2)", "[1,2]"), ("1,2", "2,1"),
    ("(1,2)", "(2,1)"), ("10 am", r"10\text{ pm}"), ("5!", "5"), ("x", "X"), ("3x+2y=5", "5"), ("x=1,y=2", "1,2"),
    ("2^{10}", "2^1 0"), ("-5", "5"), (r"\frac{1}{0}", "0"), ("0.3333333", "1/3"), ("x<3", "3"), (r"5\text{i}", "5"),
]  # fmt: skip


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_one_normal_form(group: list[str]) -> None:
    assert {text: math_canonical(text) for text in group} == dict.fromkeys(group, group[0])


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_what_differs_stays_different(one: str, two: str) -> None:
    assert math_canonical(one) != math_canonical(two)
    assert not math_equal(one, two, strict=True)


pieces = st.sampled_from(
    ["1", "2", "12", "0.5", "x", r"\frac", "{", "}", "^", "_", "(", ")", ",", r"\text{ cm}", " ", "/", "-", "+", r"\pm",
     "=", ".", r"\sqrt", " and ", "[", "]", r"\{", r"\}", "\\", "$", "%", "cm", r"\boxed{", "**", "*", r"\pi", "é",
     "\ud800"]
)  # fmt: skip


@example("((\\boxed{] and ]")
@given(st.lists(pieces, max_size=14).map("".join) | st.text(max_size=50))
def test_a_normal_form_is_one(text: str) -> None:
    once = math_canonical(text)
    assert math_canonical(once) == once
    once.encode("utf-8")


@given(st.fractions(), st.integers(1, 9))
def test_rational_numbers_are_equal_exactly_if_their_forms_are(value: object, factor: int) -> None:
    over, under = value.numerator, value.denominator  # type: ignore[attr-defined]
    ways = [f"{over}/{under}", rf"\frac{{{over}}}{{{under}}}", rf"\frac{{{over * factor}}}{{{under * factor}}}"]
    assert len({math_canonical(way) for way in ways}) == 1
    assert math_canonical(f"{over + 1}/{under}") != math_canonical(ways[0])


@given(st.integers(-(10**6), 10**6), st.integers(0, 6))
def test_decimals(number: int, places: int) -> None:
    text = f"{number / 10**places:.{places}f}"
    assert math_canonical(text) == math_canonical(f"{number}/{10**places}")


@pytest.mark.parametrize(
    "text", ["{" * 2000, "(" * 2000, r"\sqrt" * 400, "^" * 2000, r"\frac" * 300, "**" * 999, "x" * 9999]
)
def test_hostile_texts_have_a_normal_form(text: str) -> None:
    assert math_canonical(math_canonical(text)) == math_canonical(text)


# -------------------------------------------------------------------------------------- by meaning

MEANT = [
    ("(x+1)^2", "x^2+2x+1"), (r"\frac{\sqrt2}{2}", r"1/\sqrt{2}"), ("1,2", "2,1"), (r"30\%", "0.3"), (r"30\%", "30"),
    ("x<3", r"(-\infty,3)"), (r"2^{\frac{1}{2}}", r"\sqrt{2}"), ("0.333333", "1/3"), (r"\int_0^1 x dx", "0.5"),
    ("x=5", "5"), (r"5\text{ cm}", "5"), (r"\sin^2 x+\cos^2 x", "1"),
]  # fmt: skip
NOT_MEANT = [
    ("yes", "no"), ("(1,2)", "(2,1)"), ("0.33", "1/3"), ("[1,2)", "[1,2]"), ("A", "B"), ("2,3", "5"), ("", ""),
    ("$", "$"), ("((((", "5"), ("\ud800", "x"), ("a\nb", "c"), ("9" * 500, "1"), ("x" * 5000, "x" * 5001),
    (r"\text{east}", r"\text{west}"), (r"\frac{1}{", "1"), ("__import__('os')", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "two"), MEANT)
def test_the_same_by_meaning(one: str, two: str) -> None:
    assert math_equal(one, two) and math_equal(two, one)


@pytest.mark.parametrize(("one", "two"), NOT_MEANT)
def test_not_the_same_by_meaning(one: str, two: str) -> None:
    assert not math_equal(one, two) and not math_equal(two, one)


def test_what_would_never_end_is_not_the_same_and_harms_nothing() -> None:
    for endless in ("9^{9^{9^9}}", "100000000!", r"2^{10^{12}}+1"):
        assert not math_equal(endless, "1", seconds=0.3)
    assert math_equal("x+x", "2x")


def test_threads_may_ask() -> None:
    mapping: dict[int, bool] = {}
    threads = [
        threading.Thread(target=lambda k=k: mapping.update({k: math_equal(f"{k}(x+1)", f"{k}x+{k}")}))  # type: ignore[misc]
        for k in range(2, 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mapping == dict.fromkeys(range(2, 6), True)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(pieces, max_size=6).map("".join), st.lists(pieces, max_size=6).map("".join))
def test_comparison_is_total_and_symmetric(one: str, two: str) -> None:
    assert math_equal(one, two, seconds=0.5) == math_equal(two, one, seconds=0.5)
    assert math_equal(one, one) == bool(math_canonical(one))


def test_without_the_package_it_says_what_to_install() -> None:
    script = (
        "import importlib.util, sys\n"
        "from harness.extensions.datasets.equivalence import math_equal\n"
        "sys.path[:] = [p for p in sys.path if 'site' not in p]\n"
        "assert importlib.util.find_spec('math_verify') is None\n"
        "assert math_equal('1/2', '0.5', strict=True)\n"
        "math_equal('1', '2')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert SetupError.__name__ in done.stderr and 'pip install "mas-eval-harness[math]"' in done.stderr
