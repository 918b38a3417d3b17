"""Python programs that are the same but for how they are written."""

from __future__ import annotations

import ast
import itertools
import warnings

MAX_PROGRAM = 20_000
"""Characters of a program that Python's parser is given; it bounds how long that takes."""


def same_program(program: str) -> str:
    """One text for all programs with the same syntax tree, whatever their comments, docstrings, blanks, quotes and
    brackets; an import that stands there twice counts once.

    A text that does not parse, is nested too deeply, or is longer than `MAX_PROGRAM`, is taken as it stands, but for
    blank lines around it and blanks at the ends of lines. Never raises.
    """
    if len(program) <= MAX_PROGRAM:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what a model wrote, such as "\d" in a plain string
                tree = ast.parse(program)
            return ast.unparse(_bare(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return "\n".join(line.rstrip() for line in program.split("\n")).strip("\n")


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings and without imports that stand there already."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            texts = itertools.takewhile(_is_text, node.body)  # a docstring, and any text right behind it
            del node.body[: len(list(texts))]
    known: set[str] = set()
    kept: list[ast.stmt] = []
    for statement in tree.body:
        written = ast.dump(statement) if isinstance(statement, ast.Import | ast.ImportFrom) else ""
        if not written or written not in known:
            kept.append(statement)
        known.add(written)
    tree.body = kept
    return tree


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
