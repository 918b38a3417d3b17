"""Formulas as trees: made at random, rewritten without changing their value, written as programs, and compared by an
independent road: as quotients of polynomials, multiplied out."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from typing import Any

from hypothesis import strategies as st

from harness.config import project

# A helper is imported below its project's root, as its plugins are: any plugin's module tells the root's name.
_MOUNTED = project.builtin().load("tasks", "dpbench/dining_table").__module__.partition(".registry.")[0]
finqa: Any = importlib.import_module(f"{_MOUNTED}.registry.tasks._finqa")

Tree = Any  # a literal, or (operation, left, right)
LITERALS = ["5829", "5735", "-2.5", "12.5%", "const_100", "const_m1", "7"]
RATIONAL = ["add", "subtract", "multiply", "divide"]
Polynomial = Counter[tuple[str, ...]]


def trees(operations: list[str] = RATIONAL, leaves: int = 6) -> st.SearchStrategy[Tree]:
    return st.recursive(
        st.sampled_from(LITERALS),
        lambda inner: st.tuples(st.sampled_from(operations), inner, inner),
        max_leaves=leaves,
    ).filter(lambda tree: isinstance(tree, tuple))


def read(text: str) -> Any:
    program = finqa.parse(text)
    assert isinstance(program, finqa.Program), program
    return program


def nested(tree: Tree) -> str:
    return tree if isinstance(tree, str) else f"{tree[0]}({nested(tree[1])}, {nested(tree[2])})"


def sequential(tree: Tree, rng: random.Random) -> str:
    """In any order in which a step comes after those it needs; equal parts are sometimes one step."""
    steps: list[str] = []
    seen: dict[str, int] = {}

    def write(part: Tree) -> str:
        if isinstance(part, str):
            return part
        key = nested(part)
        if key in seen and rng.random() < 0.5:
            return f"#{seen[key]}"
        sides: list[str] = ["", ""]
        for side in rng.sample([0, 1], 2):
            sides[side] = write(part[1 + side])
        steps.append(f"{part[0]}({sides[0]}, {sides[1]})")
        seen[key] = len(steps) - 1
        return f"#{seen[key]}"

    write(tree)
    return ", ".join(steps)


def size(tree: Tree) -> int:
    return 0 if isinstance(tree, str) else 1 + size(tree[1]) + size(tree[2])


def literals(tree: Tree) -> set[str]:
    return {tree} if isinstance(tree, str) else literals(tree[1]) | literals(tree[2])


def rewritten(tree: Tree, rng: random.Random) -> Tree:
    """Another tree of the same value for all numbers; nothing is divided by what was not divided by before."""
    if isinstance(tree, str):
        return tree
    operation, left, right = tree[0], rewritten(tree[1], rng), rewritten(tree[2], rng)
    results = [(operation, left, right)]
    if operation in ("add", "multiply"):
        results.append((operation, right, left))
        if left[0] == operation:
            results.append((operation, left[1], (operation, left[2], right)))
    if operation == "subtract" and left[0] == "subtract":
        results.append(("subtract", left[1], ("add", left[2], right)))
    if operation == "divide":
        if left[0] in ("add", "subtract"):
            results.append((left[0], ("divide", left[1], right), ("divide", left[2], right)))
        if left[0] == "divide":
            results.append(("divide", left[1], ("multiply", left[2], right)))
        if left[0] == "multiply":
            results.append(("multiply", left[1], ("divide", left[2], right)))
    if operation == "multiply" and left[0] in ("add", "subtract"):
        results.append((left[0], ("multiply", left[1], right), ("multiply", left[2], right)))
    return rng.choice(results)


def polynomials(tree: Tree) -> tuple[Polynomial, Polynomial] | None:
    """Numerator and denominator; None where something is divided by the polynomial 0."""
    if isinstance(tree, str):
        return Counter({(tree,): 1}), Counter({(): 1})
    a, b = polynomials(tree[1]), polynomials(tree[2])
    if a is None or b is None:
        return None
    match tree[0]:
        case "multiply":
            return _times(a[0], b[0]), _times(a[1], b[1])
        case "divide":
            return (_times(a[0], b[1]), _times(a[1], b[0])) if b[0] else None
    sign = 1 if tree[0] == "add" else -1
    return _sum(_times(a[0], b[1]), _times(b[0], a[1]), sign), _times(a[1], b[1])


def same_function(one: Tree, other: Tree) -> bool:
    a, b = polynomials(one), polynomials(other)
    return a is not None and b is not None and _times(a[0], b[1]) == _times(b[0], a[1])


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    counts: Polynomial = Counter()
    for x, m in a.items():
        for y, n in b.items():
            counts[tuple(sorted(x + y))] += m * n
    return _without_zeros(counts)


def _sum(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    counts = Counter(a)
    for term, n in b.items():
        counts[term] += sign * n
    return _without_zeros(counts)


def _without_zeros(terms: Polynomial) -> Polynomial:
    return Counter({term: n for term, n in terms.items() if n})
