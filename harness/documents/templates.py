"""Templates over a row's columns, as lm-eval has them: a column's name, or Jinja; compiled once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.errors import PluginError, near


class DocTemplate:
    """One template of a task.

    Args:
        parameter: whose value it is, for messages.
        source: a column's name, or a Jinja template.

    Raises:
        PluginError: if it does not compile.
    """

    def __init__(self, parameter: str, source: str) -> None:
        self.parameter, self.source = parameter, source
        try:
            tree = _environment().parse(source)
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise PluginError(f"{parameter}, line {error.lineno}: {error.message}", at=(parameter,)) from None
        self.columns = meta.find_undeclared_variables(tree)

    def __call__(self, doc: Mapping[str, Any]) -> Any:
        """The column's value, or the rendered text. Raises `PluginError` naming the columns there are."""
        if self.source in doc:
            return doc[self.source]
        if not self.columns and re.fullmatch(r"[^\W\d]\w*", self.source):  # a bare word is meant as a column's name
            self._unknown(self.source, doc)
        try:
            return self._template.render(doc)
        except jinja2.UndefinedError as error:
            lacking = sorted(self.columns - doc.keys())
            if lacking:
                self._unknown(lacking[0], doc)
            raise PluginError(f"{self.parameter}: {error.message}", at=(self.parameter,)) from None
        except Exception as error:  # whatever an expression does: a division, a security error …
            raise PluginError(f"{self.parameter}: {type(error).__name__}: {error}", at=(self.parameter,)) from None

    def _unknown(self, column: str, doc: Mapping[str, Any]) -> None:
        there = near(column, map(str, doc)).replace("There are:", "Columns there are:")
        raise PluginError(
            f"{self.parameter} wants the column {column!r}, and the data has none", hint=there, at=(self.parameter,)
        )


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False)
    made.filters["regex_replace"] = _regex_replace
    return made


def _regex_replace(text: str, pattern: str, replacement: str = "", count: int = 0) -> str:
    """lm-eval's filter of this name."""
    return re.sub(pattern, replacement, text, count=count)
