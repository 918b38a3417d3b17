"""A table as LaTeX."""

from __future__ import annotations

import unicodedata
from itertools import groupby
from typing import Final

from harness.api.printable import clean_name
from harness.tables import Table

from .grid import grid, tabulated


def latex(table: Table) -> str:
    """A table as a float, with its notes below it."""
    parts = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{latex_escape(clean_name(table.title))}}}",
        _booktabs(tabulated(grid(table).map(latex_escape).emphasized(r"\textbf{{{}}}"), "latex_raw")),
        *(f"\\par\\smallskip\\footnotesize {latex_escape(clean_name(note))}" for note in table.notes),
        "\\end{table}",
    ]
    return "\n".join(parts) + "\n"


def _booktabs(tabular: str) -> str:
    """A tabular with the rules of the package booktabs."""
    top, *middle, bottom = tabular.split("\\hline")
    return rf"{top}\toprule" + r"\midrule".join(middle) + rf"\bottomrule{bottom}"


_LATEX: Final = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "[": "{[}",
        "*": "{*}",
        "]": "{]}",
        "±": r"$\pm$",
        "†": r"\textdagger{}",
        "‡": r"\textdaggerdbl{}",
        "–": "--",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "−": r"$-$",
        "×": r"$\times$",
        "≥": r"$\geq$",
        "≤": r"$\leq$",
        "≈": r"$\approx$",
        "→": r"$\rightarrow$",
    }
)
_ACCENTS: Final = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327")
_OTHERS: Final = frozenset("ßæÆøØœŒłŁ¡¿§¶©£·–—‘’“”…•")
"""What pdfLaTeX typesets in its standard encodings, beside ASCII and letters with these accents."""


def latex_escape(name: str) -> str:
    """The name as LaTeX that prints it literally.

    "[" and "*" are in braces: after a line break they would be its argument and its star.
    """
    parts = groupby(unicodedata.normalize("NFC", name), _is_typeset)
    return "".join("".join(part).translate(_LATEX) if plain else _either("".join(part)) for plain, part in parts)


def _is_typeset(char: str) -> bool:
    """Whether pdfLaTeX knows a character."""
    parts = unicodedata.normalize("NFD", char)
    accented = len(parts) == 2 and parts[0].isascii() and parts[1] in _ACCENTS
    return char.isascii() or accented or char in _OTHERS or ord(char) in _LATEX


def _either(text: str) -> str:
    """The text for LuaLaTeX and XeLaTeX; its code points for pdfLaTeX, which would stop at it."""
    points = " ".join(f"U+{ord(char):04X}" for char in text)
    return rf"{{\ifdefined\Umathchar {text}\else {points}\fi}}"
