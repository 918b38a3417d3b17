"""What may be in an expression: text → syntax tree, or the place of what may not."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any, NoReturn

from harness.api.errors import near
from harness.api.printable import clean

from ._errors import ExpressionError, pinpoint
from ._functions import FUNCTIONS
from ._guards import GUARDS, MAX_BITS
from ._random import RANDOM

MAX_SOURCE = 5_000
MAX_NODES = 1_000
FILE = "<expression>"
STEPS = "_steps"
"""The name of the supply that guards and functions take steps from."""
TAKEN = frozenset({*FUNCTIONS, *GUARDS, *RANDOM, STEPS, "__builtins__"})

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.BinOp, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Compare,
    ast.IfExp, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Subscript, ast.Slice,
    ast.Attribute, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.comprehension, ast.Lambda, ast.arguments, ast.arg, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
    ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor, ast.cmpop,
)  # fmt: skip
_ADVICE: dict[type[ast.AST], str] = {
    ast.JoinedStr: "there are no f-strings: write str(x) + …",
    ast.NamedExpr: "there is no :=",
    ast.Starred: "there is no *: write list(x), or a + b",
    ast.Is: "is compares with None alone: write ==",
    ast.IsNot: "is compares with None alone: write !=",
    ast.LShift: "there is no <<: write * 2 ** k",
    ast.RShift: "there is no >>: write // 2 ** k",
    ast.Invert: "there is no ~",
    ast.MatMult: "there is no @",
    ast.Await: "there is no await",
    ast.Yield: "there is no yield",
    ast.YieldFrom: "there is no yield",
}
_LAMBDAS = {
    "reduce": (0, "function"), "accumulate": (1, "function"), "group": (1, "key"), "sorted": (1, "key"),
    "min": (None, "key"), "max": (None, "key"),
}  # fmt: skip
"""Where functions take a lambda: the position, the name. Elsewhere it would be a value, which str could show."""
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


def parse(text: str) -> ast.Expression:
    if len(text) > MAX_SOURCE:
        raise ExpressionError(
            f"an expression of {len(text):,} characters; at most {MAX_SOURCE:,}", place=pinpoint(text, 0)
        )
    if not text.strip():
        raise ExpressionError("an empty expression", place=pinpoint(text, 0), hint="An empty text is \"''\".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(f"({text}\n)", FILE, "eval")  # parentheses, so that lines may end anywhere
    except SyntaxError as error:
        offset = _offset(text, error.lineno or 1, max((error.offset or 1) - 1, 0), in_bytes=False)
        message = f"{cut(text)}: no expression: {error.msg}"
        raise ExpressionError(clean(message), place=pinpoint(text, min(offset, len(text)))) from None
    except ValueError as error:  # null bytes
        raise ExpressionError(clean(f"{cut(text)}: no expression: {error}"), place=pinpoint(text, 0)) from None


_LIST_METHODS = {"append": "[{}]", "extend": "{}"}
"""Method of Python's lists → what is added in its place."""


class Check(ast.NodeVisitor):
    """Refuses what is not part of the language, and names that there are not."""

    def __init__(self, text: str, known: frozenset[str] | set[str], more: frozenset[str]) -> None:
        self.text, self.scopes, self.used, self.nodes = text, [set(known)], set[str](), 0
        self.functions = FUNCTIONS.keys() | more

    def refuse(self, node: ast.AST, what: str) -> NoReturn:
        start, end = self.place(node)
        raise ExpressionError(clean(f"{cut(self.text[start:end])}: {what}"), place=pinpoint(self.text, start))

    def place(self, node: ast.AST) -> tuple[int, int]:
        ends = (getattr(node, key, None) for key in ("lineno", "end_lineno", "col_offset", "end_col_offset"))
        return span_of(self.text, *ends) or (0, len(self.text))

    def visit(self, node: ast.AST) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.refuse(node, f"more than {MAX_NODES:,} parts in one expression")
        if not isinstance(node, _ALLOWED):
            self.refuse(node, _ADVICE.get(type(node), f"{type(node).__name__} is not part of expressions"))
        super().visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if any(node.id in scope for scope in self.scopes):
            self.used.add(node.id)
        elif node.id in self.functions:
            self.refuse(node, f"{node.id} is a function: call it, {node.id}(…)")
        elif node.id.lower() in _WORDS:
            self.refuse(node, f"write {_WORDS[node.id.lower()]}")
        else:
            self.refuse(node, f"unknown name. {near(node.id, {name for scope in self.scopes for name in scope})}")

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute):
            start, end = self.place(function.value)
            name, owner = function.attr, self.text[start:end]
            module = isinstance(function.value, ast.Name) and not any(owner in scope for scope in self.scopes)
            call = f"{name}(…)" if module else f"{name}({owner[:20]}, …)"
            if name in _LIST_METHODS and len(node.args) == 1:
                start, end = self.place(node.args[0])
                call = f"{owner[:20]} + {_LIST_METHODS[name].format(self.text[start:end][:20])}"
            elif name not in self.functions:
                self.refuse(function, f"values have no methods. {self.others(name)}")
            self.refuse(function, f"values have no methods: write {call}")
        if not isinstance(function, ast.Name) or function.id not in self.functions:
            if not isinstance(function, ast.Name):
                self.refuse(function, "no such function. Only named functions are called.")
            if any(function.id in scope for scope in self.scopes):
                self.refuse(function, f"it is a value and no function; its entries are {function.id}[…]")
            self.refuse(function, f"no such function. {self.others(function.id)}")
        self.nodes += 1
        at, called = _LAMBDAS.get(function.id, (None, None))
        for position, argument in enumerate(node.args):
            if isinstance(argument, ast.Lambda) and position == at:
                self.function(argument)
            else:
                self.visit(argument)
        for word in node.keywords:
            if word.arg is None:
                self.refuse(word.value, "there is no **")
            if isinstance(word.value, ast.Lambda) and word.arg == called:
                self.function(word.value)
            else:
                self.visit(word.value)

    def others(self, name: str) -> str:
        """What to do where a function is not there."""
        return "Nothing can be drawn here." if name in RANDOM else near(name, self.functions)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.refuse(node, f"a lambda stands where a function takes one only: {', '.join(sorted(_LAMBDAS))}")

    def function(self, node: ast.Lambda) -> None:
        """A lambda that is an argument."""
        shape = node.args
        if shape.posonlyargs or shape.kwonlyargs or shape.vararg or shape.kwarg or shape.defaults:
            self.refuse(node, "a lambda takes plain arguments only: lambda a, b: …")
        bound = {argument.arg for argument in shape.args}
        self.bind(node, bound)
        self.scopes.append(bound)
        self.visit(node.body)
        self.scopes.pop()

    def bind(self, node: ast.AST, bound: set[str]) -> None:
        for name in bound:
            if name in TAKEN or name in self.functions or (name.startswith("_") and name != "_"):
                self.refuse(
                    node, f"{name} cannot be a variable: it is {'a function' if name in self.functions else 'taken'}"
                )

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        """The parts in the order in which they run: each `for` binds its names for what follows."""
        self.scopes.append(set())
        for part in node.generators:
            self.visit(part.iter)
            targets = [part.target] if isinstance(part.target, ast.Name) else getattr(part.target, "elts", [])
            if not targets or part.is_async or not all(isinstance(one, ast.Name) for one in targets):
                self.refuse(part.target, "a loop binds names: for x in …, or for a, b in …")
            bound = {one.id for one in targets if isinstance(one, ast.Name)}
            self.bind(part.target, bound)
            self.scopes[-1] |= bound
            for condition in part.ifs:
                self.visit(condition)
        for body in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(body)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = comprehension  # noqa: N815

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith("_"):
            self.refuse(node, "names that start with _ are not available")
        self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            none = isinstance(operand, ast.Constant) and operand.value is None
            if isinstance(operator, (ast.Is, ast.IsNot)) and not none:
                self.refuse(node, _ADVICE[type(operator)])
        for operand in (node.left, *node.comparators):
            self.visit(operand)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, (int, float, str, bool, type(None))):
            self.refuse(node, f"no constant of expressions: {type(node.value).__name__}")
        if isinstance(node.value, int) and node.value.bit_length() > MAX_BITS:
            self.refuse(node, f"a whole number of more than {MAX_BITS:,} bits")
        if isinstance(node.value, str) and any("\ud800" <= one <= "\udfff" for one in node.value):
            self.refuse(node, "half a character: no file can hold it")

    def visit_Dict(self, node: ast.Dict) -> None:
        if None in node.keys:
            self.refuse(node, "there is no **: write {**a, **b} as merge(a, b)")
        self.generic_visit(node)


# ----------------------------------------------------------------------------------------- places

WORD = re.compile(r"[^\W\d]\w*")


def _offset(text: str, line: int, column: int, in_bytes: bool = True) -> int:
    """The character of `text` at a place of its syntax tree, which has one parenthesis more in front."""
    lines = f"({text}\n)".split("\n")
    row = lines[min(line, len(lines)) - 1]
    inside = len(row.encode()[:column].decode("utf-8", "ignore")) if in_bytes else column
    return max(0, sum(len(one) + 1 for one in lines[: line - 1]) + inside - 1)


def span_of(text: str, line: Any, end_line: Any, column: Any, end_column: Any) -> tuple[int, int] | None:
    if None in (line, end_line, column, end_column):
        return None
    return _offset(text, line, column), _offset(text, end_line, end_column)


def cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
