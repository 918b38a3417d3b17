"""The names that a task's `process_results` returns, as its source writes them.

The package shows a mean of every name that comes out of it. Tables are known before a document is graded, so the names
are read from the function's code: keys of mappings that it returns or fills, also in functions that it calls.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

_MAX_FUNCTIONS = 50


def returned_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names in order of appearance; what a function computes as a name, or takes from data, is not among them."""
    names: dict[str, None] = {}
    waiting, seen = [function], set[int]()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        at = _plain(waiting.pop(0))
        if id(at) in seen or not inspect.isroutine(at):
            continue
        seen.add(id(at))
        for name, called in _of(at):
            if name is not None:
                names[name] = None
            elif called is not None:
                waiting.append(called)
    return tuple(names)


def _plain(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.unwrap(function) if callable(function) else function


def _of(function: Callable[..., Any]) -> Iterator[tuple[str | None, Any]]:
    """(name, None) for each name that one function returns, (None, function) for each one whose result it returns."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return
    body = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    if body is None:
        return
    own = [node for part in body.body for node in _without_inner_functions(part)]
    known = getattr(function, "__globals__", {})
    returned = [node.value for node in own if isinstance(node, ast.Return) and node.value is not None]
    variables = {node.id for value in returned for node in ast.walk(value) if isinstance(node, ast.Name)}
    for node in own:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id in variables:
                    returned.append(node.value)
                elif (
                    isinstance(target, ast.Subscript)
                    and isinstance(target.value, ast.Name)
                    and target.value.id in variables
                ):
                    yield from _text(target.slice)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "update"
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id in variables
        ):
            returned += node.args
            for word in node.keywords:
                yield word.arg, None
    for value in returned:
        yield from _of_value(value, known)


def _of_value(value: ast.expr, known: dict[str, Any]) -> Iterator[tuple[str | None, Any]]:
    if isinstance(value, ast.Dict):
        for key, inner in zip(value.keys, value.values, strict=True):
            yield from _text(key) if key is not None else _of_value(inner, known)
    elif isinstance(value, ast.IfExp):
        yield from _of_value(value.body, known)
        yield from _of_value(value.orelse, known)
    elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr):
        yield from _of_value(value.left, known)
        yield from _of_value(value.right, known)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id == "dict":
            for argument in value.args:
                yield from _of_value(argument, known)
            for word in value.keywords:
                if word.arg is None:
                    yield from _of_value(word.value, known)
                else:
                    yield word.arg, None
        elif value.func.id in known:
            yield None, known[value.func.id]


def _text(key: ast.expr) -> Iterator[tuple[str, None]]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        yield key.value, None


def _without_inner_functions(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
            yield from _without_inner_functions(child)
