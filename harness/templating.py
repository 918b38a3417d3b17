"""Jinja for templates of strangers: sandboxed, and bounded in time and size.

Jinja's own sandbox keeps templates from Python's inside, not from asking for too much: nested loops, macros that call
themselves twice, `"%1000000000d"`, `x ~ x` in a loop. Here every block, call, filter and container counts as a step,
and a step on long values as many. What operators, methods and filters would make of texts and whole numbers is measured
before they make it.
"""

from __future__ import annotations

import functools
import itertools
import re
import string
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_SOURCE = 200_000
MAX_TEXT = 10_000_000
MAX_BITS = 10_000
MAX_WIDTH = 9_999
MAX_STEPS = 1_000_000
"""A step is a block, a call, a filter, or 256 characters that one of them reads or makes."""
SECONDS = 2.0
"""Of a thread's CPU time: a template of a hundredth of that is slow. What is stopped here would hardly have ended."""
HINT = f"A template has {MAX_TEXT:,} characters, {MAX_STEPS:,} steps and {SECONDS:g} s, no more."

_EVERY = 256
_ENTRY = 10
"""Characters that an entry of a list counts for."""
_FREE_WIDTH = re.compile(rf"\d{{{len(str(MAX_WIDTH)) + 1},}}")
_SET_WIDTH = re.compile(r"%[^a-zA-Z%]*\*")


class TemplateLimitError(Exception):
    """A template asks for more than it may."""


class _Meter:
    """What the rendering that is under way may still do; `_LOCK` is held meanwhile."""

    __slots__ = ("deadline", "due", "left")

    def __init__(self) -> None:
        self.left, self.due, self.deadline = MAX_STEPS, MAX_STEPS, float("inf")

    def start(self) -> None:
        """A full budget."""
        self.left, self.due = MAX_STEPS, MAX_STEPS - _EVERY
        self.deadline = time.thread_time() + SECONDS

    def take(self, steps: int) -> None:
        """Count steps. Raises `TemplateLimitError` where they or the time are spent."""
        self.left -= steps
        if self.left < self.due:
            self.due = self.left - _EVERY
            if self.left < 0:
                raise TemplateLimitError(f"it takes more than {MAX_STEPS:,} steps")
            if time.thread_time() > self.deadline:
                raise TemplateLimitError(f"it takes more than {SECONDS:g} s")


_METER = _Meter()
_LOCK = threading.RLock()


class _Counting(CodeGenerator):
    """Compiles templates whose blocks count, and whose operators measure what they make."""

    def blockvisit(self, block: Iterable[nodes.Node], frame: Frame) -> None:
        block = list(block)
        pieces = sum(len(node.nodes) for node in block if isinstance(node, nodes.Output))
        self.writeline(f"environment.tick({1 + pieces})")
        super().blockvisit(block, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802
        if node.test is not None:  # rows that it leaves out run no block
            tick = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
            node.test = nodes.And(tick, node.test)
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("), context.eval_ctx.autoescape)")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:  # noqa: N802
        self._measured(super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:  # noqa: N802
        self._measured(super().visit_Dict, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:  # noqa: N802
        if node.ctx == "load":
            self._measured(super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def _measured(self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame) -> None:
        self.write("environment.measured(")
        visit(node, frame)
        self.write(")")


class _Template(Template):
    """A template whose rendering starts with a full budget."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        with _LOCK:
            _METER.start()
            return super().render(*args, **kwargs)

    def make_module(self, *args: Any, **kwargs: Any) -> Any:
        module = super().make_module(*args, **kwargs)
        module._body_stream = [_concat(module._body_stream)]
        return module


def _concat(pieces: Iterable[str]) -> str:
    """All pieces as one text, given up as soon as they are too long."""
    parts, length, left = [], 0, iter(pieces)
    while batch := list(itertools.islice(left, 1024)):
        length += sum(map(len, batch))
        _room(length)
        parts.append("".join(batch))
    if length >= _EVERY:
        _METER.take(length >> 8)
    return "".join(parts) if len(parts) != 1 else parts[0]


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose templates end, and whose texts have a length.

    Args:
        options: those of `jinja2.Environment`.
    """

    code_generator_class = _Counting
    template_class = _Template
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_concat)

    def __init__(self, **options: Any) -> None:
        super().__init__(undefined=jinja2.StrictUndefined, **options)
        del self.globals["lipsum"]
        for name in _ABSENT:
            self.filters.pop(name, None)
        for name, function in self.filters.items():
            self.filters[name] = _counted(name, function)

    def evaluate(self, function: Callable[..., Any], *args: Any) -> Any:
        """What a compiled expression gives, within a budget of its own."""
        with _LOCK:
            _METER.start()
            return function(*args)

    def add_filter(self, name: str, function: Callable[..., Any]) -> None:
        """A filter of one's own, counted like the others."""
        self.filters[name] = _counted(name, function)

    def preprocess(self, source: str, name: str | None = None, filename: str | None = None) -> str:
        """The source, unless it is too long. Raises `TemplateSyntaxError`."""
        if len(source) > MAX_SOURCE:
            message = f"longer than {MAX_SOURCE:,} characters"
            raise jinja2.TemplateSyntaxError(message, 1, name, filename)
        return super().preprocess(source, name, filename)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        parsed: nodes.Template = self._told(super()._parse, name, filename, source, name, filename)
        return parsed

    def _compile(self, source: str, filename: str) -> Any:
        return self._told(super()._compile, None, filename, source, filename)

    def _generate(self, source: nodes.Template, name: Any, filename: Any, defer_init: bool = False) -> str:
        _METER.start()  # constants are folded with the same filters
        code: str = self._told(super()._generate, name, filename, source, name, filename, defer_init)
        return code

    def _told(self, step: Callable[..., Any], name: str | None, filename: str | None, *args: Any) -> Any:
        try:
            return step(*args)
        except jinja2.TemplateSyntaxError:
            raise
        except (RecursionError, MemoryError, SyntaxError, ValueError, OverflowError) as error:
            what = "nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
            raise jinja2.TemplateSyntaxError(what, 1, name, filename) from None

    # --------------------------------------------------------------- what compiled templates call

    def tick(self, steps: int = 1) -> bool:
        """A block begins that has so many pieces."""
        _METER.take(steps)
        return True

    def measured(self, value: Any) -> Any:
        """A value that was made, unless it is too large."""
        _METER.take(1 + (_weight(value) >> 8))
        return value

    def joined(self, parts: tuple[Any, ...], escape: bool) -> Any:
        """What `~` makes of its operands."""
        from jinja2.runtime import markup_join, str_join

        _room(sum(len(part) if isinstance(part, str) else _weight(part) for part in parts))
        return self.measured(markup_join(parts) if escape else str_join(parts))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """A call in a template, counted and measured."""
        _METER.take(1)
        owner = getattr(__obj, "__self__", None)
        if owner is not None and not isinstance(owner, type(__self)):
            _check_method(owner, __obj.__name__, args, kwargs)
        return _checked(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """`+`, `*`, `**` or `%` of operands whose result is not too large."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _bits(left.bit_length() * max(right, 0))
        elif operator == "*":
            for one, times in ((left, right), (right, left)):
                if isinstance(times, int) and isinstance(one, int):
                    _bits(one.bit_length() + times.bit_length())
                elif isinstance(times, int) and hasattr(one, "__len__"):
                    _room(_weight(one) * max(times, 0))
        elif operator == "%" and isinstance(left, str):
            _check_percent(left, right)
        elif operator == "+" and hasattr(left, "__len__") and hasattr(right, "__len__"):
            _room(_weight(left) + _weight(right))
        return _checked(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format`, unless widths or repeats make its text too long."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        text, format_text = value.__self__, wrapped

        @functools.wraps(format_text)
        def bounded(*args: Any, **kwargs: Any) -> str:
            fields = [(spec or "") for _, name, spec, _ in string.Formatter().parse(text) if name is not None]
            if any("{" in spec or _FREE_WIDTH.search(spec) for spec in fields):
                raise TemplateLimitError(f"a field is wider than {MAX_WIDTH:,}, or its width is not written out")
            _room(len(text) + len(fields) * (MAX_WIDTH + _weight([args, kwargs])))
            return format_text(*args, **kwargs)

        return bounded


# -------------------------------------------------------------------------------------- measures


def _room(length: int) -> None:
    if length > MAX_TEXT:
        raise TemplateLimitError(f"a value of more than {MAX_TEXT:,} characters or entries")


def _bits(count: int) -> None:
    if count > MAX_BITS:
        raise TemplateLimitError(f"a whole number of more than {MAX_BITS:,} bits")


def _weight(value: Any) -> int:
    """The characters and entries of a value with all that is in it, as often as it is there."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if not isinstance(value, (list, tuple, set, frozenset, Mapping)):
        return 1
    if set(map(type, value)) <= {str} and not isinstance(value, Mapping):  # what most lists in prompts are
        return sum(map(len, value)) + _ENTRY * (1 + len(value))
    total, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (str, bytes)):
            total += len(one)
        elif isinstance(one, Mapping):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            waiting += one
        total += _ENTRY
        _room(total + _ENTRY * len(waiting))
    return total


def _checked(value: Any) -> Any:
    """A result, unless it is too large; what is made bit by bit is counted as it comes."""
    if isinstance(value, bool) or value is None or (type(value) is str and len(value) < _EVERY):
        return value
    if isinstance(value, int):
        _bits(value.bit_length())
    elif isinstance(value, (str, bytes, list, tuple, set, frozenset, Mapping)):
        weight = _weight(value)
        _room(weight)
        _METER.take(weight >> 8)
    elif isinstance(value, Iterator):
        return _ticking(value)
    return value


def _ticking(values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        _METER.take(1)
        yield value


def _check_percent(text: str, values: Any) -> None:
    if _FREE_WIDTH.search(text) or _SET_WIDTH.search(text):
        raise TemplateLimitError(f"a field is wider than {MAX_WIDTH:,}, or its width is not written out")
    _room(len(text) + text.count("%") * (MAX_WIDTH + _weight(values)))


_NUMBER_METHODS = frozenset({"bit_length", "bit_count", "is_integer", "conjugate", "as_integer_ratio", "hex"})


def _check_method(owner: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse what a method of a text or number would make, if that is too large."""
    given = (*args, *kwargs.values())
    if isinstance(owner, str):
        if name == "translate":
            raise TemplateLimitError("str.translate is not there; use replace")
        if name == "replace" and len(args) >= 2 and isinstance(args[0], str):
            _room(len(owner) + owner.count(args[0]) * _weight(args[1]))
        elif name == "join" and args and hasattr(args[0], "__len__"):
            _room(_weight(args[0]) + len(args[0]) * len(owner))
        elif name == "join":
            raise TemplateLimitError("str.join wants a list; put `| list` behind it")
        elif name == "expandtabs":
            _room(len(owner) + owner.count("\t") * max((n for n in given if isinstance(n, int)), default=8))
        elif name in ("center", "ljust", "rjust", "zfill"):
            _width(given)
    elif (isinstance(owner, (bytes, bytearray)) and name != "decode") or (
        isinstance(owner, (int, float)) and name not in _NUMBER_METHODS
    ):
        raise TemplateLimitError(f"{type(owner).__name__}.{name} is not there")
    elif isinstance(owner, type) and owner in (int, bytes, bytearray, str):
        raise TemplateLimitError(f"{owner.__name__}.{name} is not there")
    elif name == "strftime" and any(isinstance(one, str) and re.search(r"%[^%a-zA-Z]*\d{3,}", one) for one in given):
        raise TemplateLimitError("a field of strftime is too wide")


def _width(values: Iterable[Any]) -> None:
    if any(isinstance(one, int) and abs(one) > MAX_WIDTH for one in values):
        raise TemplateLimitError(f"a width of more than {MAX_WIDTH:,}")


# --------------------------------------------------------------------------------------- filters

# Of chance, and of pages: no use in a prompt, and slow on long texts.
_ABSENT = ("random", "pprint", "urlize", "xmlattr", "filesizeformat")
_WIDTHS = frozenset({"center", "indent", "wordwrap", "batch", "slice", "round", "tojson", "truncate"})
_SHORT = frozenset({"wordwrap", "striptags"})
MAX_SHORT = 100_000
"""Characters of a text whose filter takes quadratic time."""


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that counts, and is measured before it is applied."""
    passed = int(getattr(function, "jinja_pass_arg", None) is not None)

    if name not in _GUARDED:

        @functools.wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            value = args[passed]
            _METER.take(1 + (len(value) >> 8) if type(value) in (str, list) else 1)
            result = function(*args, **kwargs)
            return result if type(result) is str and len(result) < _EVERY else _checked(result)

        return counted

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        value, *rest = args[passed:]
        _METER.take(1 + (len(value) >> 8 if hasattr(value, "__len__") else 0))
        given = (*rest, *kwargs.values())
        if name in _WIDTHS:
            _width(given)
        if name in _SHORT and isinstance(value, str) and len(value) > MAX_SHORT:
            raise TemplateLimitError(f"{name} takes at most {MAX_SHORT:,} characters")
        if name == "join" and isinstance(value, Iterator):
            value = list(value)
        if name in _GROWTH:
            _room(_GROWTH[name](value, given))
        if name == "format":
            _check_percent(str(value), kwargs or tuple(rest))
        if name == "sum" and not all(isinstance(one, (int, float, str)) for one in given):
            raise TemplateLimitError("sum adds numbers")
        return _checked(function(*args[:passed], value, *rest, **kwargs))

    return guarded


def _longest(given: Iterable[Any]) -> int:
    return max((_weight(one) for one in given), default=0)


_GROWTH: dict[str, Callable[[Any, tuple[Any, ...]], int]] = {
    "replace": lambda value, given: (
        len(str(value)) + (str(value).count(str(given[0])) if given else 0) * _longest(given[1:2])
    ),
    "join": lambda value, given: (_weight(value) + len(value) * _longest(given)) if hasattr(value, "__len__") else 0,
    "indent": lambda value, given: (
        len(str(value))
        + (str(value).count("\n") + 1) * max([4, *(g for g in given if type(g) is int), _longest(given)])
    ),
    "tojson": lambda value, given: _weight(value) * (1 + max((g for g in given if type(g) is int), default=0)),
    "wordwrap": lambda value, given: len(str(value)) * (1 + _longest(given)),
    "batch": lambda value, given: _longest(given) * MAX_WIDTH,
    "slice": lambda value, given: _longest(given) * MAX_WIDTH,
}
_GUARDED = frozenset({*_GROWTH, *_WIDTHS, *_SHORT, "format", "sum"})
