"""What thousands of runs ask again, answered once a process: git, the YAML of this repository, compiled templates,
whether parameters and tables fit their schemas, what plugins are, and which certificates this machine trusts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.config import listings, yamls
from harness.config.listings import ListLine
from harness.plugins import parameters
from harness.runtime import sources

ROOT = Path(__file__).parents[2]
LONG = 20_000
"""Characters of data that is checked each time."""


def remember(patch: pytest.MonkeyPatch) -> None:
    """Put memories in front of six functions, each keyed by all that its answer depends on."""
    _git(patch)
    _documents(patch)
    _templates(patch)
    _problems(patch)
    _descriptions(patch)
    _certificates(patch)


def _git(patch: pytest.MonkeyPatch) -> None:
    """About this checkout, which does not change while tests run."""
    ask = sources._git
    known = functools.cache(ask)
    patch.setattr(sources, "_git", lambda where, *words: (known if where.is_relative_to(ROOT) else ask)(where, *words))


def _documents(patch: pytest.MonkeyPatch) -> None:
    """Files of this repository, by their text; whoever reads one gets data of its own."""
    parse = yamls.parse
    known = functools.cache(parse)

    def parsed(text: str, file: str) -> yamls.Document:
        if not file.startswith(str(ROOT)):
            return parse(text, file)
        document = known(text, file)
        return yamls.Document(copy.deepcopy(document.data), file, dict(document.places))

    patch.setattr(yamls, "parse", parsed)


def _templates(patch: pytest.MonkeyPatch) -> None:
    """By their source, and by the environment's syntax and filters: constants are folded with these."""
    compiled = ImmutableSandboxedEnvironment.compile
    known: dict[tuple[Any, ...], Any] = {}

    def compile(self: ImmutableSandboxedEnvironment, source: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(source, str) or options:
            return compiled(self, source, *args, **options)
        syntax = self.trim_blocks, self.lstrip_blocks, self.keep_trailing_newline, self.autoescape
        key = (type(self), source, args, *syntax, *self.extensions, *self.filters, *self.globals)
        if key not in known:
            known[key] = compiled(self, source, *args)
        return known[key]

    patch.setattr(ImmutableSandboxedEnvironment, "compile", compile)


def _problems(patch: pytest.MonkeyPatch) -> None:
    """By the schema, which is kept for that, and by the text of the data, which tells 1 from 1.0 and True."""
    search = parameters.schema_problems
    known: dict[tuple[int, str], tuple[parameters.Schema, list[Any]]] = {}

    def problems(value: Any, shape: parameters.Schema) -> Iterator[Any]:
        key = id(shape), repr(value)
        if len(key[1]) > LONG:  # of thousands of mistakes only the first are searched for
            return search(value, shape)
        if key not in known:
            known[key] = shape, list(search(value, shape))
        return iter(known[key][1])

    patch.setattr(parameters, "schema_problems", problems)
    patch.setattr(parameters, "json_shape", functools.lru_cache(maxsize=4096)(parameters.json_shape))


def _descriptions(patch: pytest.MonkeyPatch) -> None:
    """Of this repository's plugins, which a listing parses all."""
    describe = listings._of_plugin
    known = functools.cache(describe)

    def described(name: str, file: Path) -> ListLine:
        return (known if file.is_relative_to(ROOT) else describe)(name, file)

    patch.setattr(listings, "_of_plugin", described)


def _certificates(patch: pytest.MonkeyPatch) -> None:
    """A client of `openai` reads all of them when it is made, also for a server on this machine."""
    patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
