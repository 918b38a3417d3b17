"""Prompt sets: folders of Jinja templates in which a variant overrides files of its base.

Templates are confined and strict: an undefined variable is an error with file and line, never an empty text.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from harness import approvals
from harness.api import Facts
from harness.errors import Place, PromptError, near
from harness.manifests import offers

SUFFIX = ".j2"


@dataclass(frozen=True)
class _Reading:
    """What a template's source says: free variables with their places, names it sets, templates it includes."""

    variables: dict[str, Place]
    assigned: frozenset[str]
    includes: tuple[str, ...]


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("role", "content"))


class PromptSet:
    """The templates of one set.

    Args:
        name: as specs write it, e.g. "agentsnet/minimal".
        folders: the lookup chain, the set's own folder first, its bases after.
        description: one line for listings.
        form: what its `prompts.yaml` and those of its bases say besides:
            chat (True): whether the model's chat template is applied. False: it continues the rendered text.
            history: a fact of the context, a list of {"role", "content"}, that opens a conversation, not `system`.
            prefill: a fact, a text, with which every reply begins.
            verbatim (False): whether replies count as the model wrote them (`harness.engine_api.Thread`).
    """

    def __init__(self, name: str, folders: Sequence[Path], description: str = "", **form: Any) -> None:
        self.name, self.folders, self.description = name, tuple(folders), description
        self.chat: bool = form.get("chat", True)
        self.history: str | None = form.get("history")
        self.prefill: str | None = form.get("prefill")
        self.verbatim: bool = form.get("verbatim", False)
        self._compiled: dict[str, jinja2.Template] = {}
        self._readings: dict[str, _Reading] = {}

    @cached_property
    def _environment(self) -> jinja2.Environment:
        """It keeps templates away from Python. Those that are not installed also have limits, from an extension."""
        kind, bounded = ImmutableSandboxedEnvironment, offers("confinement").get("templates")
        if bounded is not None and not all(map(approvals.is_installed, self.folders)):
            kind = bounded.load_class(ImmutableSandboxedEnvironment)
        return kind(
            undefined=jinja2.StrictUndefined,
            loader=jinja2.FileSystemLoader([str(f) for f in self.folders]),
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )

    @cached_property
    def files(self) -> dict[str, Path]:
        """Template name (without suffix) → the file that serves it."""
        files: dict[str, Path] = {}
        for folder in reversed(self.folders):
            for file in sorted(filter(Path.is_file, folder.rglob(f"*{SUFFIX}"))):
                files[file.relative_to(folder).as_posix().removesuffix(SUFFIX)] = file
        return files

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and contents of every template that the set can use."""
        return self._digest(self.files)

    def digest_of(self, templates: Iterable[str]) -> str:
        """SHA-256 over some templates, as far as the set has them, and what they include. Raises `PromptError`."""
        names: set[str] = set()
        waiting = [name for name in templates if name in self.files]
        while waiting:
            name = waiting.pop()
            if name not in names:
                names.add(name)
                waiting += [other for other in self._read(name).includes if other in self.files]
        return self._digest(names)

    def _digest(self, names: Iterable[str]) -> str:
        sha = hashlib.sha256()
        for name in sorted(names):
            sha.update(f"{name}\0".encode() + self.files[name].read_bytes() + b"\0")
        if self.continues or self.history is not None:
            sha.update(repr((self.chat, self.history, self.prefill)).encode())
        if self.verbatim:
            sha.update(b"verbatim")
        return sha.hexdigest()

    @property
    def continues(self) -> bool:
        """Whether the model continues a text, and not only answers a conversation."""
        return not self.chat or self.prefill is not None

    def opening(self, context: Facts) -> list[dict[str, str]]:
        """The messages with which a conversation opens. Raises `PromptError`."""
        if self.history is not None:
            messages = self._fact(self.history, context)
            if not isinstance(messages, list | tuple) or not all(map(_is_message, messages)):
                raise self._misfit(self.history, "no list of messages, each with the texts role and content")
            return [{"role": message["role"], "content": message["content"]} for message in messages]
        # Some chat templates know no system message: a set can have one for some turns only.
        text = self.render("system", context) if "system" in self.files else ""
        return [{"role": "system", "content": text}] if text else []

    def tools(self, tools: Sequence[Facts], context: Facts) -> tuple[Facts, ...]:
        """Tools as a model is offered them, each with the `description` that the template `tool` gives.

        The template has the tool's name as `tool` beside the context. A tool without a description of its own, of which
        it says nothing, is left out. Raises `PromptError`.
        """
        said = [tool.get("description") or self.render("tool", {**context, "tool": tool["name"]}) for tool in tools]
        return tuple(
            {"name": tool["name"], "description": text.strip(), "parameters": tool["parameters"]}
            for tool, text in zip(tools, said, strict=True)
            if text.strip()
        )

    def beginning(self, variables: Facts) -> str:
        """The text with which a reply begins. Raises `PromptError`."""
        if self.prefill is None:
            return ""
        text = self._fact(self.prefill, variables)
        if not isinstance(text, str | None):
            raise self._misfit(self.prefill, "no text")
        return text or ""

    def _fact(self, name: str, facts: Facts) -> Any:
        if name not in facts:
            raise self._misfit(name, f"not there. {near(name, facts)}")
        return facts[name]

    def _misfit(self, fact: str, what: str) -> PromptError:
        place = Place(str(self.folders[0] / "prompts.yaml"))
        return PromptError(f"prompt set {self.name!r} takes the fact {fact!r}, which is {what}", place=place)

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
        except Exception as error:  # whatever an expression in a template does: a division, a security error …
            what, hint = f"template fails: {type(error).__name__}: {error}", None
            if isinstance(error, jinja2.UndefinedError):
                what, hint = str(error.message), f"Variables here: {', '.join(sorted(variables))}."
            elif notes := getattr(error, "__notes__", None):  # which limit it has reached, and what the limits are
                what, hint = f"template fails: {error}", str(notes[0])
            raise PromptError(what, place=self._line_of(error, template), hint=hint) from None

    def unknown(self, template: str, names: set[str], via: tuple[str, ...] = ()) -> list[tuple[str, Place]]:
        """Variables that `template`, or what it includes, reads and that is not among `names`: also in
        branches that are not taken. Raises `PromptError` for a template that does not compile or is not there."""
        unknown_names = []
        reading = self._read(template)
        for name, place in reading.variables.items():
            if name not in names:
                unknown_names.append((name, place))
        for included in reading.includes:
            if included in self.files and included not in via:
                unknown_names += self.unknown(included, names | reading.assigned, (*via, template))
        return unknown_names

    def _read(self, template: str) -> _Reading:
        if template not in self._readings:
            file = self.files.get(template)
            if file is None:
                raise self._missing(template + SUFFIX)
            try:
                tree = self._environment.parse(file.read_text("utf-8"), filename=str(file))
            except jinja2.TemplateSyntaxError as error:
                place = Place(str(file), error.lineno, 1)
                raise PromptError(f"template does not compile: {error.message}", place=place) from None
            except (OSError, UnicodeDecodeError) as error:
                raise PromptError(f"template cannot be read: {error}", place=Place(str(file))) from None
            names = list(tree.find_all(jinja2.nodes.Name))
            # Who asks whether a name is defined allows for its absence, in what it includes too.
            tested = [test.node for test in tree.find_all(jinja2.nodes.Test) if test.name == "defined"]
            optional = {node.name for node in tested if isinstance(node, jinja2.nodes.Name)}
            free = meta.find_undeclared_variables(tree) - optional
            self._readings[template] = _Reading(
                {n.name: Place(str(file), n.lineno, 1) for n in names if n.name in free},
                frozenset(n.name for n in names if n.ctx == "store") | optional,
                tuple(name.removesuffix(SUFFIX) for name in meta.find_referenced_templates(tree) if name),
            )
        return self._readings[template]

    def _missing(self, name: str) -> PromptError:
        hint = near(name.removesuffix(SUFFIX), self.files)
        return PromptError(f"prompt set {self.name!r} has no template {name!r}", hint=hint)

    def _line_of(self, error: Exception, template: str) -> Place:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(SUFFIX)]
        if frames:
            return Place(frames[-1].filename, frames[-1].lineno or 1, 1)
        return Place(str(self.files.get(template, template)))
