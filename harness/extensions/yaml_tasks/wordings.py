"""Texts of tasks in YAML: templates over the facts of one agent, checked when the spec is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import meta

from harness.api.errors import PluginError, near
from harness.extensions.yaml_tasks.bounded_templates import HINT, BoundedEnvironment
from harness.extensions.yaml_tasks.step_limits import LimitError


class Wording:
    """A text with `{{ facts }}` in it.

    Args:
        parameter: the parameter that has the text, for messages.
        source: the text, a Jinja template. Blanks around it are left out.
        facts: the names that it may use.
        at: where the parameter is, if it is part of another one.
        remedies: for names that stand elsewhere in the task, how to make them facts.

    Attributes:
        uses: the names that it does use.

    Raises:
        PluginError: if it does not compile, or uses other names.
    """

    def __init__(
        self,
        parameter: str,
        source: str,
        facts: Collection[str],
        at: tuple[str | int, ...] = (),
        remedies: Mapping[str, str] | None = None,
    ) -> None:
        self.parameter, self.source, self._at = parameter, source, at or (parameter,)
        try:
            self.uses = used = meta.find_undeclared_variables(_environment().parse(source))
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise PluginError(f"{parameter}, line {error.lineno}: {error.message}", at=self._at) from None
        if unknown := sorted(used - set(facts)):
            raise PluginError(
                f"{parameter} uses the fact {unknown[0]!r}, which agents do not have",
                hint=(remedies or {}).get(unknown[0]) or near(unknown[0], facts),
                at=self._at,
            )

    def __call__(self, facts: Mapping[str, Any]) -> str:
        """Return the text for an agent with these facts. Raises `PluginError` if an expression in it fails."""
        try:
            return self._template.render(facts).strip()
        except LimitError as error:
            raise PluginError(f"{self.parameter}: {error}", hint=HINT, at=self._at) from None
        except Exception as error:  # an expression can raise anything: a division by 0, a security error …
            from harness.plugins.explain_errors import in_words  # what only a mistake needs

            raise PluginError(f"{self.parameter}: {in_words(error)}", at=self._at) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.parameter, self.source, self._at)


def _again(parameter: str, source: str, at: tuple[str | int, ...]) -> Wording:
    """A text that was checked where it was first read."""
    return Wording(parameter, source, meta.find_undeclared_variables(_environment().parse(source)), at)


@lru_cache(maxsize=1)
def _environment() -> BoundedEnvironment:
    return BoundedEnvironment(autoescape=False, trim_blocks=True, lstrip_blocks=True)
