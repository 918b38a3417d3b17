"""Imports, classes and functions of our own files, each file parsed once a process."""

import ast
import functools
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def nodes(file: Path) -> list[ast.Import | ast.ImportFrom | ast.ClassDef | Function]:
    """The imports, classes and functions of a file, at any depth."""
    every: list[ast.AST] = [ast.parse(file.read_text("utf-8"))]
    for node in every:  # statements only: expressions are most of a tree, and hold none of these
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            every += statements if isinstance(statements := getattr(node, block, ()), list) else ()
    return [node for node in every if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef | Function)]
