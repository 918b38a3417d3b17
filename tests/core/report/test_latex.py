"""Tables as LaTeX: what is printed, and that hostile names stay data."""

import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given

from harness import evaluate
from harness.report import render
from harness.report.latex import latex_escape
from tests.core.report.test_report_formats import anything, table
from tests.helpers.commands import invoke


def test_a_report_is_printed_as_latex(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = str(evaluate("arithmetic", limit=1, output_path=tmp_path / "run").folder)
    code, out, _ = invoke(capsys, "report", folder, "--format", "latex")
    assert code == 0 and r"\caption{" in out and r"\toprule" in out
    assert invoke(capsys, "report", folder, "--format", "latex", "--output", str(tmp_path / "f"))[0] == 0
    assert (tmp_path / "f").read_text() == out


def test_latex_prints_a_float_with_its_notes() -> None:
    lines = render(table(notes=("5 % & more",)), "latex").splitlines()
    assert lines[:4] == [r"\begin{table}", r"\centering", r"\caption{Title}", r"\begin{tabular}{lrrr}"]
    assert r"p \textdagger{} & 0.67 (0.17) & -- & 1.00 (--) \\" in [" ".join(line.split()) for line in lines]
    assert lines[-2:] == [r"\par\smallskip\footnotesize 5 \% \& more", r"\end{table}"]


EITHER = re.compile(r"\{\\ifdefined\\Umathchar ([^\\]*)\\else ((?:U\+[0-9A-F]{4,6} ?)*)\\fi\}")
"""What other engines typeset, and the code points that pdfLaTeX does."""


@given(name=anything)
@example("数学 🙂 Ω ə")
@example("naïve Łódź — “é” e\u0301")
def test_pdflatex_meets_no_character_that_it_does_not_know(name: str) -> None:
    """It stops at those that its standard encodings lack; other engines read them as they are."""
    text = latex_escape(name)
    for char in EITHER.sub("", text):
        letters = unicodedata.normalize("NFD", char)
        assert (letters[0].isascii() and len(letters) <= 2) or char in "ßæÆøØœŒłŁ¡¿§¶©£·–—‘’“”…•", char
    for found in EITHER.finditer(text):
        assert [f"U+{ord(char):04X}" for char in found[1]] == found[2].split()
    assert "".join(found[1] for found in EITHER.finditer(latex_escape("a数b学"))) == "数学"


def test_no_cell_is_taken_for_an_argument_of_the_line_break_above() -> None:
    rows = render(table("*best", title="t"), "latex")
    assert "{*}best" in rows and not re.search(r"\\\\\s*[*\[]", rows)


@given(name=anything)
def test_a_latex_row_has_its_columns_whatever_the_name(name: str) -> None:
    body = render(table(name), "latex").splitlines()
    row = next(line for line in body if line.endswith(r"1.00 (--) \\"))
    assert len(re.findall(r"(?<!\\)&", row)) == 3
    row = EITHER.sub("", row)
    literal = re.sub(r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textdagger)\{\}", "", row)
    literal = re.sub(
        r"\\[&%$#_{}]|\$\\(pm|[a-z]*arrow|times|[gl]eq|approx|-)\$|\$-\$|\{[\[\]*]\}", "", literal
    ).removesuffix("\\\\")
    assert not re.search(r"[\\%$#_{}~^]", literal)
