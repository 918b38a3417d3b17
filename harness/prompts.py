"""Prompt sets: folders of Jinja templates in which a variant overrides files of its base.

Templates are sandboxed and strict: a name nobody gave is an error with file and line, never an empty text.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness.errors import Place, PromptError, near

SUFFIX = ".j2"


class PromptSet:
    """The templates of one set.

    Args:
        name: as specs write it, e.g. "agentsnet/minimal".
        folders: the lookup chain, the set's own folder first, its bases after.
        description: one line for listings.
    """

    def __init__(self, name: str, folders: Sequence[Path], description: str = "") -> None:
        self.name, self.folders, self.description = name, tuple(folders), description
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FileSystemLoader([str(f) for f in folders]),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._compiled: dict[str, jinja2.Template] = {}

    @cached_property
    def files(self) -> dict[str, Path]:
        """Template name (without suffix) → the file that serves it."""
        found: dict[str, Path] = {}
        for folder in reversed(self.folders):
            for file in sorted(folder.rglob(f"*{SUFFIX}")):
                found[file.relative_to(folder).as_posix().removesuffix(SUFFIX)] = file
        return found

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and contents of every template that the set can use."""
        sha = hashlib.sha256()
        for name, file in sorted(self.files.items()):
            sha.update(f"{name}\0".encode() + file.read_bytes() + b"\0")
        return sha.hexdigest()

    def render(self, template: str, variables: Mapping[str, Any]) -> str:
        """The text of `template`. Raises `PromptError` with file and line."""
        try:
            compiled = self._compiled.get(template)
            if compiled is None:
                compiled = self._compiled[template] = self._environment.get_template(template + SUFFIX)
            return compiled.render(variables)
        except jinja2.TemplateNotFound as error:
            raise self._missing(str(error.name or template)) from None
        except jinja2.TemplateSyntaxError as error:
            place = Place(error.filename or template, error.lineno, 1)
            raise PromptError(f"template does not compile: {error.message}", place=place) from None
        except jinja2.UndefinedError as error:
            known = ", ".join(sorted(variables))
            raise PromptError(
                f"{error.message}", place=self._line_of(error, template), hint=f"Variables here: {known}."
            ) from None
        except Exception as error:  # whatever an expression in a template does: a division, a security error …
            message = f"template fails: {type(error).__name__}: {error}"
            raise PromptError(message, place=self._line_of(error, template)) from None

    def unknown(self, template: str, known: set[str]) -> list[tuple[str, Place]]:
        """Variables that `template` reads and nobody in `known` gives, also in branches not taken."""
        file = self.files.get(template)
        if file is None:
            raise self._missing(template + SUFFIX)
        source = file.read_text("utf-8")
        try:
            tree = self._environment.parse(source, filename=str(file))
        except jinja2.TemplateSyntaxError as error:
            place = Place(str(file), error.lineno, 1)
            raise PromptError(f"template does not compile: {error.message}", place=place) from None
        names = meta.find_undeclared_variables(tree) - known
        lines = {n.name: n.lineno for n in tree.find_all(jinja2.nodes.Name) if n.name in names}
        return [(name, Place(str(file), lines.get(name, 1), 1)) for name in sorted(names)]

    def assigned(self, template: str) -> set[str]:
        """Names that `template` sets itself and thereby gives to what it includes."""
        tree = self._environment.parse(self.files[template].read_text("utf-8"))
        return {n.name for n in tree.find_all(jinja2.nodes.Name) if n.ctx == "store"}

    def includes(self, template: str) -> list[str]:
        """Templates that `template` names literally in include, import or extends."""
        tree = self._environment.parse(self.files[template].read_text("utf-8"))
        named = meta.find_referenced_templates(tree)
        return [n.removesuffix(SUFFIX) for n in named if n]

    def _missing(self, name: str) -> PromptError:
        hint = near(name.removesuffix(SUFFIX), self.files)
        return PromptError(f"prompt set {self.name!r} has no template {name!r}", hint=hint)

    def _line_of(self, error: Exception, template: str) -> Place:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(SUFFIX)]
        if frames:
            return Place(frames[-1].filename, frames[-1].lineno or 1, 1)
        return Place(str(self.files.get(template, template)))
