"""Text → checked syntax tree → guarded syntax tree → code.

The check knows what may be in an expression, and refuses all else. The guards are calls to `_guards.py` around what
repeats, what grows and what compares; they take steps from the supply of the names that an expression runs on.
"""

from __future__ import annotations

import ast
import itertools
import keyword
import re
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api.printable import clean
from harness.extensions.yaml_tasks.step_limits import LimitError, supply

from . import _guards
from ._check import FILE, STEPS, TAKEN, WORD, Check, cut, parse, span_of
from ._errors import ExpressionError, ExpressionLimitError, pinpoint
from ._functions import FUNCTIONS

MAX_STEPS = 2_000_000
SECONDS = 0.8
"""Of CPU time, for all that runs on the same names. A step is a call or an entry; a body counts for its size."""
HINT = f"What runs on the same values may take {MAX_STEPS:,} steps and {SECONDS:g} s."

Names = dict[str, Any]
"""What expressions run on: values by name, the functions, and a supply of steps. See `names`."""

_BASE: dict[str, Any] = {"__builtins__": {}, **FUNCTIONS, **_guards.GUARDS}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "_add", ast.Sub: "_sub", ast.Mult: "_mult", ast.Pow: "_pow", ast.Mod: "_mod",
    ast.BitAnd: "_and", ast.BitOr: "_or", ast.BitXor: "_xor",
}  # fmt: skip

LOOKED_UP = re.compile(r"(\w+)\[(\w+)\]|(.+)\.([^\W\d]\w*)")
"""An entry of a mapping: `actions[me]`, `parameters[me].amount`."""
_LAZY = ("any", "all")
"""They may end early; for all else a generator is a list, which can be gone through again and has no depth."""


def names(values: Mapping[str, Any]) -> Names:
    """Return what expressions run on: these values, and one supply of steps for all of them."""
    return {**_BASE, **values, STEPS: supply(MAX_STEPS, SECONDS)}


def renew(values: Names) -> None:
    """Give these names a full supply: for work that comes later, or for another agent."""
    values[STEPS] = supply(MAX_STEPS, SECONDS)


@dataclass(frozen=True)
class CompiledExpression:
    """A checked expression over variables, and over arguments that it takes each time.

    Attributes:
        text: the expression, an `Expression` where it is in a file.
        variables: the names that it may use besides the functions.
        arguments: the names that it takes with each call.
        functions: the functions that it may call besides `FUNCTIONS`.
        uses: the variables that it does use.
    """

    text: str
    variables: frozenset[str]
    arguments: tuple[str, ...]
    functions: frozenset[str]
    uses: frozenset[str]
    _code: types.CodeType

    def on(self, values: Names) -> Callable[..., Any]:
        """Return the expression as a function of its arguments. It takes its steps from those of `values`.

        The function raises `ExpressionError`.
        """
        function = types.FunctionType(self._code, values)

        def call(*arguments: Any) -> Any:
            try:
                value = function(*arguments)
                return value if type(value) in _guards.SCALAR else _guards.whole(value)
            except Exception as error:
                raise self._explained(error, dict(zip(self.arguments, arguments, strict=True)), values) from None

        return call

    def value(self, values: Names, *arguments: Any) -> Any:
        """Return the value of the expression. Raises `ExpressionError`."""
        return self.on(values)(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return compiled, (self.text, self.variables, self.arguments, self.functions)

    def _explained(self, error: Exception, arguments: Mapping[str, Any], values: Names) -> ExpressionError:
        """What failed, where, and with which values."""
        if isinstance(error, ExpressionError):
            return error
        span, local, trace = (0, len(self.text)), dict(arguments), error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == FILE:
                local |= trace.tb_frame.f_locals
                position = next(itertools.islice(code.co_positions(), trace.tb_lasti // 2, None))
                span = span_of(self.text, *position) or span
            trace = trace.tb_next
        part = self.text[slice(*span)]
        known = {**{name: values[name] for name in self.uses}, **local}
        words = [word for word in dict.fromkeys(WORD.findall(part)) if word in known and word not in _BASE]
        shown = [f"{word} = {_guards.short(known[word])}" for word in words[:6]]
        if isinstance(error, KeyError) and error.args:
            what = f"there is no {_guards.short(error.args[0])}"
        elif isinstance(error, (LimitError, _guards.UnfitValueError)):
            what = str(error)
        else:
            from harness.plugins.explain_errors import in_words  # what only a mistake needs

            what = in_words(error)[:200]
        at = f" (with {', '.join(shown)})" if shown else ""
        limit = isinstance(error, LimitError)
        kind = ExpressionLimitError if limit else ExpressionError
        place = pinpoint(self.text, span[0])
        looked_up = LOOKED_UP.fullmatch(part) if isinstance(error, KeyError) else None
        if looked_up is not None:
            mapping, key = (looked_up[1], looked_up[2]) if looked_up[1] else (looked_up[3], repr(looked_up[4]))
            hint = f"get({mapping}, {key}) gives None instead, and get({mapping}, {key}, 0) gives 0."
        else:
            hint = None
        return kind(clean(f"{cut(part)}: {what}{at}"), place=place, hint=HINT if limit else hint)


def compiled(
    text: str, variables: Iterable[str] = (), arguments: Sequence[str] = (), functions: Iterable[str] = ()
) -> CompiledExpression:
    """Check and compile an expression.

    Args:
        text: the expression; an `Expression` knows its place.
        variables: the names that it may use.
        arguments: the names that it takes with each call.
        functions: names of functions besides `FUNCTIONS`, such as `RANDOM`. They come with the variables' values, and
            take the supply of steps first.

    Raises:
        ExpressionError: if it is not an expression, or uses what it may not; points at the part.
    """
    known, arguments, more = frozenset(variables), tuple(arguments), frozenset(functions)
    for name in (*known, *arguments):
        if name in TAKEN or name in more or keyword.iskeyword(name) or not name.isidentifier() or name.startswith("_"):
            raise ExpressionError(f"{name!r} cannot name a value in expressions: it is taken, or not a plain word")
    try:
        tree = parse(text)
        checker = Check(text, known | set(arguments), more)
        checker.visit(tree)
        body = ast.fix_missing_locations(_Guard().visit(tree)).body
        function = ast.Expression(ast.copy_location(ast.Lambda(_parameters(arguments, body), body), body))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # where it runs, it is an error with the values at hand
            code = compile(ast.fix_missing_locations(function), FILE, "eval")
    except (RecursionError, MemoryError):
        raise ExpressionError(f"{cut(text)}: nested too deeply", place=pinpoint(text, 0)) from None
    except SyntaxError as error:  # what the compiler refuses, not the parser: an argument twice, many loops in one
        raise ExpressionError(clean(f"{cut(text)}: no expression: {error.msg}"), place=pinpoint(text, 0)) from None
    inner = next(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return CompiledExpression(text, known, arguments, more, frozenset(checker.used & known), inner)


# ----------------------------------------------------------------------------------------- guards


class _Guard(ast.NodeTransformer):
    """Puts guards around what repeats, grows or compares."""

    def guard(self, name: str, node: ast.expr, *arguments: ast.expr) -> ast.Call:
        steps = ast.Name(STEPS, ast.Load())
        call = ast.Call(ast.Name(name, ast.Load()), [steps, *arguments], [])
        for one in (call.func, steps, call):
            ast.copy_location(one, node)
        return call

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        return node if name is None else self.guard(name, node, node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops):
            return node
        by_size = len(operands) > 2 or isinstance(node.ops[0], (ast.In, ast.NotIn))
        if not by_size and any(isinstance(operand, ast.Constant) for operand in operands):
            return node  # it takes no longer than its shorter operand
        last = isinstance(node.ops[-1], (ast.In, ast.NotIn))
        node.left, *node.comparators = [self.sized(operand) for operand in (node.left, *node.comparators[:-1])] + [
            self.sized(node.comparators[-1], "_searched" if last else "_sized")
        ]
        return node

    def sized(self, operand: ast.expr, guard: str = "_sized") -> ast.expr:
        if isinstance(operand, ast.Constant) or _has_scalars(operand):
            return operand
        return self.guard(guard, operand, operand)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        lazy = node.func.id in _LAZY
        node.args = [
            self.repeated(one) if lazy and isinstance(one, ast.GeneratorExp) else self.visit(one) for one in node.args
        ]
        for word in node.keywords:
            word.value = self.visit(word.value)
        node.args.insert(0, ast.copy_location(ast.Name(STEPS, ast.Load()), node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        price = ast.copy_location(ast.Constant(_price(node.body)), node)
        self.generic_visit(node)
        node.body = ast.copy_location(
            ast.BoolOp(ast.Or(), [self.guard("_tick", node.body, price), node.body]), node.body
        )
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        return node if isinstance(node.ctx, ast.Store) else self.guard("_tuple", node, *node.elts)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.slice, ast.Slice):
            return node
        none = ast.copy_location(ast.Constant(None), node)
        return self.guard(
            "_slice", node, node.value, *(p or none for p in (node.slice.lower, node.slice.upper, node.slice.step))
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        return self.guard("_field", node, node.value, ast.copy_location(ast.Constant(node.attr), node))

    def repeated(self, node: Any) -> ast.expr:
        prices = []
        for i, part in enumerate(node.generators):
            inner = [*part.ifs, *(p.iter for p in node.generators[i + 1 : i + 2])]
            inner += (
                []
                if i + 1 < len(node.generators)
                else [getattr(node, k) for k in ("elt", "key", "value") if hasattr(node, k)]
            )
            prices.append(1 + sum(map(_price, inner)))
        self.generic_visit(node)
        for part, price in zip(node.generators, prices, strict=True):
            part.iter = self.guard("_counted", part.iter, part.iter, ast.copy_location(ast.Constant(price), part.iter))
        return node  # type: ignore[no-any-return]

    visit_ListComp = visit_SetComp = visit_DictComp = repeated  # noqa: N815

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return self.repeated(ast.copy_location(ast.ListComp(node.elt, node.generators), node))


def _has_scalars(operand: ast.expr) -> bool:
    """Whether an operand is a list of a few words or numbers: `x in ['a', 'b']`."""
    return isinstance(operand, (ast.List, ast.Set)) and all(isinstance(one, ast.Constant) for one in operand.elts)


def _price(node: ast.AST) -> int:
    """The steps for one run of a body: one for four parts."""
    return 1 + sum(isinstance(one, ast.expr) for one in ast.walk(node)) // 4


def _parameters(arguments: Sequence[str], at: ast.expr) -> ast.arguments:
    return ast.arguments([], [ast.copy_location(ast.arg(name), at) for name in arguments], None, [], [], None, [])
