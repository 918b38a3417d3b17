"""Templates over a row's columns, as in lm-eval: a column's name, or Jinja. Compiled once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import meta

from harness.api.errors import DataError, PluginError, near
from harness.extensions.yaml_tasks.bounded_templates import HINT, BoundedEnvironment
from harness.extensions.yaml_tasks.step_limits import LimitError
from harness.replies.literals import read

from .regular_expression import SECONDS, regular_expression

_EXPRESSION = re.compile(r"\s*\{\{[-+]?(.*?)[-+]?\}\}\s*", re.DOTALL)


class DocTemplate:
    """One template of a task.

    Args:
        parameter: the parameter that has the template, for messages.
        source: a column's name, or a Jinja template. A last line break is kept, as in lm-eval.
        column: whether a bare word must name a column; otherwise any other word is a literal text.

    Raises:
        PluginError: if it does not compile.
    """

    def __init__(self, parameter: str, source: str, column: bool = True) -> None:
        self.parameter, self.source, self._column = parameter, source, column
        try:
            tree = _environment().parse(source)
            self._template = _environment().from_string(source)
            self._expression = _expression(tree, source)
        except jinja2.TemplateSyntaxError as error:
            raise PluginError(f"{parameter}, line {error.lineno}: {error.message}", at=(parameter,)) from None
        self.columns = meta.find_undeclared_variables(tree)

    def __call__(self, doc: Mapping[str, Any]) -> Any:
        """Return the column's value, or the rendered text.

        Raises `DataError` for NaN and infinite numbers, `PluginError` for unknown columns and so on.
        """
        if self._is_column(doc):
            return self._finite(doc[self.source])
        return self._evaluate(self._template.render, doc)

    def value(self, doc: Mapping[str, Any]) -> Any:
        """Return the value like a call, but keep a list a list, and null `None`.

        A template that is a single `{{ expression }}` has the expression's value. For other templates, as in lm-eval,
        a text such as `['one', 'two']` is a list.

        Raises:
            PluginError: as in a call.
        """
        if self._expression is None or self._is_column(doc):
            result = self(doc)
            return result if self._is_column(doc) else _as_list(result)
        value = self._evaluate(self._expression, doc)
        if isinstance(value, (list, tuple, set, frozenset, Iterator)):
            items = self._evaluate(lambda _: [_defined(item) for item in value], doc)
            return [self._finite(item) for item in items]
        return None if value is None else self(doc)

    def _finite(self, value: Any) -> Any:
        try:
            return _finite(value)
        except _InfiniteError as error:
            raise self._mistake(error) from None

    def _mistake(self, error: _InfiniteError) -> DataError:
        hint = "Leave such rows out with process_docs: where, or mend the data."
        return DataError(f"{self.parameter}: the row has {error}, which is no number", hint=hint)

    def _is_column(self, doc: Mapping[str, Any]) -> bool:
        if self.source in doc:
            return True
        if self._column and not self.columns and re.fullmatch(r"[^\W\d]\w*", self.source):
            self._raise_unknown(self.source, doc)
        return False

    def _evaluate(self, evaluate: Callable[[Mapping[str, Any]], Any], doc: Mapping[str, Any]) -> Any:
        try:
            return _environment().evaluate(evaluate, doc)
        except jinja2.UndefinedError as error:
            missing = sorted(self.columns - doc.keys())
            if missing:
                self._raise_unknown(missing[0], doc)
            raise PluginError(f"{self.parameter}: {error.message}", at=(self.parameter,)) from None
        except _InfiniteError as error:
            raise self._mistake(error) from None
        except LimitError as error:
            raise PluginError(f"{self.parameter}: {error}", hint=HINT, at=(self.parameter,)) from None
        except Exception as error:  # an expression can raise anything: a division by 0, a security error …
            from harness.plugins.explain_errors import in_words  # what only a mistake needs

            raise PluginError(f"{self.parameter}: {in_words(error)}", at=(self.parameter,)) from None

    def _raise_unknown(self, column: str, doc: Mapping[str, Any]) -> None:
        hint = near(column, map(str, doc)).replace("Available:", "Available columns:")
        raise PluginError(
            f"{self.parameter} uses the column {column!r}, which the data does not have",
            hint=hint,
            at=(self.parameter,),
        )


def _expression(tree: jinja2.nodes.Template, source: str) -> Callable[[Mapping[str, Any]], Any] | None:
    """Return the compiled expression of a template that is a single expression; None for all others."""
    parts = [part for node in tree.body for part in getattr(node, "nodes", [node])]
    match = _EXPRESSION.fullmatch(source)
    if match is None or sum(not isinstance(part, jinja2.nodes.TemplateData) for part in parts) != 1:
        return None
    return _environment().compile_expression(match[1], undefined_to_none=False)


def _defined(value: Any) -> Any:
    """The value of an expression. Raises `jinja2.UndefinedError` for that of a name that there is not."""
    if isinstance(value, jinja2.Undefined):
        str(value)
    return value


class _InfiniteError(ValueError):
    """A value is NaN or infinite. JSON has neither; Python and pandas write NaN where nothing is."""


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _InfiniteError(str(value))
    for item in value if isinstance(value, list | tuple) else ():
        _finite(item)
    return value


def _as_list(text: str) -> Any:
    value = read(text) if text[:1] == "[" and text[-1:] == "]" else None
    return value if isinstance(value, list) else text


@lru_cache(maxsize=1)
def _environment() -> BoundedEnvironment:
    environment = BoundedEnvironment(autoescape=False, keep_trailing_newline=True, finalize=_finite)
    environment.add_filter("regex_replace", _regex_replace)
    return environment


def _regex_replace(text: str, pattern: str, replacement: str = "", count: int = 0) -> str:
    """lm-eval's filter `regex_replace`."""
    try:
        return regular_expression(pattern).substituted(text, replacement, count)
    except TimeoutError:
        raise LimitError(f"the expression {pattern!r:.100} takes more than {SECONDS:g} s on a text") from None
