"""Prompt sets: folders of Jinja templates in which a variant overrides files of its base.

Templates are confined and strict: an undefined variable is an error with file and line, never an empty text.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, TypedDict

import jinja2

from harness.api import Facts
from harness.api.errors import Place, PromptError, SpecError, near
from harness.config import yamls
from harness.config.prompt_templates import QuickEnvironment
from harness.plugins import approvals, parameters
from harness.plugins.lookup import find_offer
from harness.plugins.manifests import offers

SUFFIX = ".j2"
PROMPT_SET = "prompts.yaml"


class PromptSetEntry(TypedDict, total=False):
    """What a `prompts.yaml` may say."""

    description: str | None
    base: str | None
    chat: Annotated[bool, "false: a plain text that the model continues, with no chat template"]
    history: Annotated[str | None, "a fact, a list of {role, content}, that opens a conversation in place of system.j2"]
    prefill: Annotated[str | None, "a fact, a text, with which every reply begins"]
    verbatim: Annotated[bool, "true: a reply counts as the model wrote it, with special tokens and reasoning"]


def about(file: Path) -> yamls.Document:
    """What a `prompts.yaml` says. Raises `SpecError`."""
    document = yamls.read(file)
    for path, what in parameters.problems(document.data, PromptSetEntry):
        hint = f"It holds {', '.join(PromptSetEntry.__annotations__)}; templates end in {SUFFIX}."
        raise SpecError(f"not a prompt set's description: {what}", place=document.place(*path), hint=hint)
    return document


def _is_message(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("role", "content"))


def _broken(error: jinja2.TemplateSyntaxError, file: str) -> PromptError:
    return PromptError(f"template does not compile: {error.message}", place=Place(file, error.lineno, 1))


class PromptSet:
    """The templates of one set.

    Args:
        name: as specs write it, e.g. "agentsnet/minimal".
        folders: the lookup chain, the set's own folder first, its bases after.
        description: one line for listings.
        form: further keys of its `prompts.yaml` and those of its bases:
            chat (True): whether the model's chat template is applied. False: it continues the rendered text.
            history: a fact of the context, a list of {"role", "content"}, that opens a conversation, not `system`.
            prefill: a fact, a text, with which every reply begins.
            verbatim (False): whether replies count as the model wrote them (`harness.api.Thread`).
    """

    def __init__(self, name: str, folders: Sequence[Path], description: str = "", **form: Any) -> None:
        self.name, self.folders, self.description = name, tuple(folders), description
        self.chat: bool = form.get("chat", True)
        self.history: str | None = form.get("history")
        self.prefill: str | None = form.get("prefill")
        self.verbatim: bool = form.get("verbatim", False)
        self._compiled: dict[str, jinja2.Template] = {}
        self._environment = self._confined()

    def _confined(self) -> jinja2.Environment:
        """It keeps templates away from Python. Those that are not installed also have limits, from an extension; other
        people's are refused without it (`SetupError`)."""
        kind, has_limits = QuickEnvironment, "templates" in offers("parts")
        if not all(map(approvals.is_installed if has_limits else approvals.is_own, self.folders)):
            limits = find_offer("parts", "templates", f"what limits {self.name!r}, templates of other people,")
            kind = limits.load_class(QuickEnvironment)
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
        return self.digest_of(self.files)

    def digest_of(self, names: Iterable[str]) -> str:
        """SHA-256 over names and contents of these templates of the set, and the further keys of its `prompts.yaml`."""
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
        """The tools that a model gets, each with its `description`, or else the one that the template `tool` renders.

        The template has the variable `tool`, the tool's name, beside the context. A tool is left out if the template
        renders an empty text for it. Raises `PromptError`.
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
            raise _broken(error, error.filename or template) from None
        except Exception as error:  # whatever an expression in a template does: a division, a security error …
            what, hint = f"template fails: {str(error) or type(error).__name__}", None
            if isinstance(error, jinja2.UndefinedError):
                what, hint = str(error.message), f"Variables here: {', '.join(sorted(variables))}."
            elif notes := getattr(error, "__notes__", None):  # which limit it has reached, and what the limits are
                what, hint = f"template fails: {error}", str(notes[0])
            raise PromptError(what, place=self._line_of(error, template), hint=hint) from None

    def parsed(self, template: str) -> jinja2.nodes.Template:
        """The syntax tree of a template. Raises `PromptError` if it does not compile or is not there."""
        file = self.files.get(template)
        if file is None:
            raise self._missing(template + SUFFIX)
        try:
            return self._environment.parse(file.read_text("utf-8"), filename=str(file))
        except jinja2.TemplateSyntaxError as error:
            raise _broken(error, str(file)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise PromptError(f"template cannot be read: {error}", place=Place(str(file))) from None

    def _missing(self, name: str) -> PromptError:
        hint = near(name.removesuffix(SUFFIX), self.files)
        return PromptError(f"prompt set {self.name!r} has no template {name!r}", hint=hint)

    def _line_of(self, error: Exception, template: str) -> Place:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(SUFFIX)]
        if frames:
            return Place(frames[-1].filename, frames[-1].lineno or 1, 1)
        return Place(str(self.files.get(template, template)))
