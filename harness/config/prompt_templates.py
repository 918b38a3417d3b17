"""Jinja, confined, for templates whose files stay as they are: what an include costs is its own text.

An agent's prompt is made of many small files. Jinja looks each one up again at every include and copies the names of
its globals for it; for small files that is most of the work. Here both happen once. Each file remains a template of its
own, so errors name its lines, and texts are those that Jinja itself renders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import jinja2
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

_MOST_NAMES = 1000
"""Of templates that are remembered: one file has many names, such as a.j2 and ./a.j2."""

Blocks = dict[str, Callable[[Context], Iterator[str]]]


class _Context(Context):
    """Jinja's context, without a copy of the globals' names."""

    def __init__(
        self,
        environment: jinja2.Environment,
        parent: dict[str, Any],
        name: str | None,
        blocks: Blocks,
        globals: MutableMapping[str, Any] | None = None,
    ) -> None:
        self.parent, self.vars, self.name = parent, {}, name
        self.environment = environment
        self.eval_ctx = EvalContext(environment, name)
        self.exported_vars = set()
        self.globals_keys = set() if globals is None else globals.keys()  # type: ignore[assignment]  # only read
        self.blocks = {block: [render] for block, render in blocks.items()} if blocks else {}


class QuickTemplate(jinja2.Template):
    """A template that makes its contexts in one step."""

    def new_context(
        self, vars: dict[str, Any] | None = None, shared: bool = False, locals: Mapping[str, Any] | None = None
    ) -> Context:
        """A context of this template; see `jinja2.Template.new_context`."""
        parent: dict[str, Any] = vars or {} if shared else {**self.globals, **(vars or {})}
        if locals:
            present = {name: value for name, value in locals.items() if value is not missing}
            parent = {**parent, **present} if shared else parent | present
        return _Context(self.environment, parent, self.name, self.blocks, self.globals)


class QuickEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox that looks a template up once, unless it reloads files that change (`auto_reload`).

    Args:
        options: those of `jinja2.Environment`.
    """

    template_class = QuickTemplate
    context_class = _Context

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._found: dict[str, jinja2.Template] = {}

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        """A template's globals as a dict: Jinja's `ChainMap` is read key by key at every rendering and include."""
        return {**self.globals, **(d or {})}

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`. For an entry of a dict, which most are, Jinja raises an error and catches it."""
        if type(obj) is dict and attribute in ("get", "items", "keys", "values"):  # they change nothing: no check
            return getattr(obj, attribute)
        if type(obj) is not dict or hasattr(dict, attribute):
            return super().getattr(obj, attribute)
        return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)

    def get_template(
        self,
        name: str | jinja2.Template,
        parent: str | None = None,
        globals: MutableMapping[str, Any] | None = None,
    ) -> jinja2.Template:
        """The template of that name. Raises `jinja2.TemplateNotFound`, `jinja2.TemplateSyntaxError`."""
        if self.auto_reload or globals or type(name) is not str:
            return super().get_template(name, parent, globals)
        found = self._found.get(name)
        if found is None:
            found = super().get_template(name, parent)
            if len(self._found) < _MOST_NAMES:
                self._found[name] = found
        return found

    def get_or_select_template(
        self, template_name_or_list: Any, parent: str | None = None, globals: MutableMapping[str, Any] | None = None
    ) -> jinja2.Template:
        """The template of that name, or the first one of the list that exists. Raises as `get_template` does."""
        if type(template_name_or_list) is str:
            return self.get_template(template_name_or_list, parent, globals)
        return super().get_or_select_template(template_name_or_list, parent, globals)
