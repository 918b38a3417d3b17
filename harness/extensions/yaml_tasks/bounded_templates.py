"""Jinja for templates of strangers: confined, and bounded in time and size.

Jinja's own sandbox keeps templates from Python's inside, not from asking for too much. A template is finite, so only
what repeats takes long: loops, calls, includes. They take steps from one supply, and so does work on long values. Only
what multiplies makes large values of small ones: its result is estimated beforehand. Other results are measured.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import jinja2
from jinja2 import nodes, pass_context, pass_eval_context
from jinja2.runtime import LoopContext, markup_join, str_join
from jinja2.visitor import NodeTransformer

from harness.config.prompt_templates import QuickEnvironment, QuickTemplate
from harness.extensions.yaml_tasks.step_limits import LimitError, Supply, counted, room, supply, take, weight

MAX_SOURCE = 200_000
MAX_TEXT = 10_000_000
MAX_BITS = 10_000
MAX_WIDTH = 9_999
MAX_SHORT = 100_000
"""Characters of a text whose filter takes quadratic time."""
MAX_STEPS = 1_000_000
"""A step is a call, an include, four expressions in a turn of a loop, or 256 characters that are read or made."""
SECONDS = 2.0
"""Of a thread's CPU time: a template of a hundredth of that is slow. What is stopped here would hardly have ended."""
HINT = f"A template has {MAX_TEXT:,} characters, {MAX_STEPS:,} steps and {SECONDS:g} s, no more."

_METHODS = (types.MethodType, types.BuiltinMethodType)
_CLOCK_STEPS = 256


# ------------------------------------------------------------------------------------------ steps


class _Supply:
    """The steps that the rendering under way may still take; `lock` is held meanwhile."""

    lock = threading.RLock()
    steps: Supply = iter(())

    def renew(self) -> None:
        """A full supply."""
        self.steps = supply(MAX_STEPS, SECONDS)

    def take(self, count: int) -> None:
        """Raises `LimitError` if the steps or the time are spent."""
        take(self.steps, count)


_SUPPLY = _Supply()


def _counted(values: Iterable[Any], price: int = 1) -> Iterator[Any]:
    """The same values, each for so many steps."""
    return counted(_SUPPLY.steps, values, price)


# --------------------------------------------------------------------------------------- measures


def _room(length: int) -> None:
    room(length, MAX_TEXT)


def _bits(count: int) -> None:
    if count > MAX_BITS:
        raise LimitError(f"a whole number of more than {MAX_BITS:,} bits")


def _weight(value: Any) -> int:
    return weight(value, MAX_TEXT)


def _measured(value: Any) -> Any:
    """A value that was made, unless it is too large; what is made bit by bit is counted as it comes."""
    if type(value) is str and len(value) < _CLOCK_STEPS:
        return value
    if isinstance(value, (str, bytes, list, tuple, set, frozenset, dict)):
        weight = _weight(value)
        _room(weight)
        _SUPPLY.take(weight // _CLOCK_STEPS)
    elif isinstance(value, int):
        _bits(value.bit_length())
    elif isinstance(value, Iterator):
        return _counted(value)
    return value


@pass_context  # or it would be evaluated when the template is compiled
def _loaded(_: Any, template: Any) -> Any:
    """The name of a template that is included, imported or extended, for a step: they may do so one another."""
    next(_SUPPLY.steps)
    return template


@pass_eval_context
def _joined(context: nodes.EvalContext, parts: tuple[Any, ...]) -> Any:
    """What `~` makes of its operands."""
    _room(sum(len(part) if isinstance(part, str) else _weight(part) for part in parts))
    return _measured(markup_join(parts) if context.autoescape else str_join(parts))


def _concat(pieces: Iterable[str]) -> str:
    """Join all pieces; give up as soon as the text is too long."""
    text, length, left = "", 0, iter(pieces)
    while True:
        batch = list(itertools.islice(left, 4096))
        length += sum(map(len, batch))
        _room(length)
        text += "".join(batch)
        if len(batch) < 4096:
            return text


# ------------------------------------------------------------------------------- what multiplies

_TIMES = frozenset({"replace", "join", "wordwrap", "expandtabs", "indent", "tojson"})
"""Filters and methods whose results may hold an argument, or as many spaces, again and again."""
_WIDTHS = frozenset({"center", "ljust", "rjust", "zfill", "to_bytes", "batch", "slice", "round", "truncate"})
_SHORT = frozenset({"wordwrap", "striptags"})
_GUARDED = frozenset({*_TIMES, *_WIDTHS, *_SHORT, "format", "strftime", "sum", "translate"})
_ABSENT = ("lipsum", "random", "pprint", "urlize", "xmlattr", "filesizeformat")
"""Of chance, and of pages: no use in a prompt, and slow on long texts."""
_FREE_PERCENT = re.compile(r"%[^a-zA-Z%]*(\*|\d{5,})")
_FREE_BRACES = re.compile(r"\{[^{}]*:[^{}]*(\{|\d{5,})")


def _check(name: str, value: Any, arguments: list[Any]) -> None:
    """Refuse a filter or method of `_GUARDED` whose result would be too large. Raises `LimitError`."""
    if name in _TIMES:
        times = _weight(value) if name == "tojson" else len(value)
        for one in arguments:
            length = one if type(one) is int else len(one) if hasattr(one, "__len__") else 0
            _room(times * max(length, 8) // 10)  # a crude estimate; the result will be measured
    if name in _WIDTHS and any(isinstance(one, int) and abs(one) > MAX_WIDTH for one in arguments):
        raise LimitError(f"a width of more than {MAX_WIDTH:,}")
    if name in _SHORT and len(value) > MAX_SHORT:
        raise LimitError(f"{name} takes at most {MAX_SHORT:,} characters")
    if name in ("format", "strftime"):
        _check_fields(str(value if name == "format" else arguments[0]), "%", _FREE_PERCENT, arguments)
    elif name == "translate" or (name == "sum" and not all(isinstance(one, (int, float, str)) for one in arguments)):
        raise LimitError("there is no translate, use replace; and sum adds numbers")


def _check_fields(text: str, mark: str, free: re.Pattern[str], values: Any) -> None:
    if free.search(text):
        raise LimitError(f"a field is wider than {MAX_WIDTH:,}, or its width is not written out")
    _room(len(text) + text.count(mark) * (MAX_WIDTH + _weight(values)))


def _filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose work and result are measured."""
    at = int(getattr(function, "jinja_pass_arg", None) is not None)
    is_guarded = name in _GUARDED

    @wraps(function)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        value = args[at]
        if type(value) in (str, list) and len(value) >= _CLOCK_STEPS:
            _SUPPLY.take(len(value) // _CLOCK_STEPS)
        if is_guarded:
            if name == "join" and isinstance(value, Iterator):
                args = (*args[:at], value := list(value), *args[at + 1 :])
            _check(name, value if hasattr(value, "__len__") else str(value), [*args[at + 1 :], *kwargs.values()])
        result = function(*args, **kwargs)
        return result if type(result) is str and len(result) < _CLOCK_STEPS else _measured(result)

    return bounded


# ------------------------------------------------------------------------------- the environment

_COUNTED, _LOADED, _MEASURED, _JOINED = "(counted)", "(loaded)", "(measured)", "(joined)"
"""Filters that no template can name."""


class _Guarded(NodeTransformer):
    """Puts these filters around what repeats, and around what makes values without a call."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        price = 1 + sum(1 for _ in node.find_all(nodes.Expr)) // 4
        node.iter = _filtered(node.iter, _COUNTED, nodes.Const(price))
        return node

    def visit_Include(self, node: nodes.Include | nodes.Import | nodes.FromImport | nodes.Extends) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.template = _filtered(node.template, _LOADED)
        return node

    visit_Import = visit_FromImport = visit_Extends = visit_Include  # noqa: N815

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.Tuple(node.nodes, "load", lineno=node.lineno, environment=node.environment), _JOINED)

    def visit_List(self, node: nodes.List | nodes.Dict | nodes.Tuple) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return node if isinstance(node, nodes.Tuple) and node.ctx != "load" else _filtered(node, _MEASURED)

    visit_Dict = visit_Tuple = visit_List  # noqa: N815


def _filtered(node: Any, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno, environment=node.environment)


class _Template(QuickTemplate):
    """A template whose rendering starts with a full supply. A `LimitError` has a note that says what the limits are."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        with _SUPPLY.lock:
            _SUPPLY.renew()
            try:
                return super().render(*args, **kwargs)
            except LimitError as error:
                error.add_note(HINT)
                raise

    def make_module(self, *args: Any, **kwargs: Any) -> Any:
        module = super().make_module(*args, **kwargs)
        module._body_stream = [_concat(module._body_stream)]
        return module


class BoundedEnvironment(QuickEnvironment):
    """A sandbox whose templates end, and whose texts have a length.

    Args:
        options: those of `jinja2.Environment`.
    """

    template_class = _Template
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_concat)

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"undefined": jinja2.StrictUndefined, **options})
        for name in _ABSENT:
            self.globals.pop(name, None)
            self.filters.pop(name, None)
        self.filters = {name: _filter(name, function) for name, function in self.filters.items()}
        self.filters |= {_COUNTED: _counted, _LOADED: _loaded, _MEASURED: _measured, _JOINED: _joined}

    def evaluate(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a compiled expression gives, with a supply of its own."""
        with _SUPPLY.lock:
            _SUPPLY.renew()
            return function(*args)

    def add_filter(self, name: str, function: Callable[..., Any]) -> None:
        """A filter of your own, measured like the others."""
        self.filters[name] = _filter(name, function)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        with _as_syntax_errors(name, filename):
            if len(source) > MAX_SOURCE:
                raise ValueError(f"longer than {MAX_SOURCE:,} characters")
            return super()._parse(source, name, filename)

    def _generate(self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False) -> str:
        with _as_syntax_errors(name, filename), _SUPPLY.lock:
            _SUPPLY.renew()  # constants are folded with the same filters
            return super()._generate(_Guarded().visit(source), name, filename, defer_init)

    def _compile(self, source: str, filename: str) -> Any:
        with _as_syntax_errors(None, filename):
            return super()._compile(source, filename)

    # What compiled templates call:

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """A call in a template, counted and measured."""
        next(_SUPPLY.steps)
        owner = getattr(__obj, "__self__", None)
        if args and isinstance(__obj, LoopContext):
            args = (_counted(args[0]), *args[1:])
        elif owner is not None and __obj.__name__ in _GUARDED:
            args = tuple(list(one) if isinstance(one, Iterator) else one for one in args)
            _check(__obj.__name__, owner, [*args, *kwargs.values()])
        return _measured(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """`+`, `*`, `**` or `%` of operands whose result is not too large."""
        if operator == "%" and isinstance(left, str):
            _check_fields(left, "%", _FREE_PERCENT, right)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _bits(left.bit_length() * right)
        elif operator == "*":
            for one, times in ((left, right), (right, left)):
                if isinstance(times, int) and hasattr(one, "__len__"):
                    _room(_weight(one) * max(times, 0))
        return _measured(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format`, unless widths or repeats make its text too long."""
        format_text = super().wrap_str_format(value) if isinstance(value, _METHODS) else None
        if format_text is None:
            return None

        @wraps(format_text)
        def bounded(*args: Any, **kwargs: Any) -> str:
            text = str(value.__self__).replace("{{", "").replace("}}", "")
            _check_fields(text, "{", _FREE_BRACES, [args, kwargs])
            return format_text(*args, **kwargs)

        return bounded


@contextlib.contextmanager
def _as_syntax_errors(name: str | None, filename: str | None) -> Iterator[None]:
    try:
        yield
    except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError) as error:
        what = "nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
        raise jinja2.TemplateSyntaxError(what, 1, name, filename) from None
