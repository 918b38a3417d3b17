"""A normal form of Python programs."""

from __future__ import annotations

import ast
import itertools
import warnings

MAX_PROGRAM = 20_000
"""Longest program that Python's parser reads, in characters. This bounds its time."""


def same_program(program: str) -> str:
    """Return the same text for all programs with the same syntax tree.

    Comments, docstrings, blanks, quotes, brackets and repeated imports make no difference. A text that does not parse,
    is nested too deeply, or is longer than `MAX_PROGRAM`, only loses blank lines around it and blanks at the ends of
    lines. Never raises.
    """
    if len(program) <= MAX_PROGRAM:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about model code such as "\d" in a plain string
                tree = ast.parse(program)
            return ast.unparse(_bare(tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    return "\n".join(line.rstrip() for line in program.split("\n")).strip("\n")


def _bare(tree: ast.Module) -> ast.Module:
    """Return the tree without docstrings and repeated imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            texts = itertools.takewhile(_is_text, node.body)  # a docstring, and any text right after it
            del node.body[: len(list(texts))]
    seen: set[str] = set()
    statements: list[ast.stmt] = []
    for statement in tree.body:
        dump = ast.dump(statement) if isinstance(statement, ast.Import | ast.ImportFrom) else ""
        if not dump or dump not in seen:
            statements.append(statement)
        seen.add(dump)
    tree.body = statements
    return tree


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
