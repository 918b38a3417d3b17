"""Forms of answers to a data set's questions: the `answer:` of a task."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Action, Reply
from harness.api.errors import DataError, PluginError, near
from harness.replies import FreeText, unquoted

from .filters import Filtered, Pipeline
from .parameter_checks import check_arguments


@dataclass(frozen=True)
class Form:
    """A form of answer.

    Attributes:
        name: as specs write it.
        make: row's choices (or None) → reply form.
        instruction: how to write the answer, in words. It shows the line with a placeholder: weak models copy examples.
        metric: the default metric.
        letters: whether an answer is the letter of one of the choices.
        right: a right answer of the data in the form's own spelling; raises `DataError` for one that no reply can give.
        canonical: answer → one text for all equal answers.
        filters: those that grading applies to an answer, which then is a whole reply. The first decides what it says.
    """

    name: str
    make: Callable[[Sequence[str] | None], Reply]
    instruction: str
    metric: str = "exact_match"
    letters: bool = False
    right: Callable[[Reply, str], str] = field(default=lambda reply, text: text)
    canonical: Callable[[Action], str] = field(default=lambda action: re.sub(r"\s+", " ", unquoted(str(action))))
    filters: tuple[Pipeline, ...] = ()

    def reply(self, choices: Sequence[str] | None) -> Reply:
        """The reply form for a row."""
        return self.make(choices)


def form_of(answer: Mapping[str, Any]) -> Form:
    """Return the form that a task's `answer:` declares. Raises `PluginError` for unknown forms and bad parameters."""
    settings = dict(answer)
    name = str(settings.pop("form", ""))
    if name not in FORMS:
        what = f"there is no answer form {name!r}" if name else "answer has no form"
        raise PluginError(what, hint=near(name, FORMS), at=("answer", "form") if name else ("answer",))
    maker, defaults = FORMS[name]()
    check_arguments(f"the answer form {name}", maker, settings, ("answer",), provided="choices")
    takes_choices = "choices" in inspect.signature(maker).parameters

    def make(choices: Sequence[str] | None) -> Reply:
        more = {"choices": choices} if takes_choices else {}
        return maker(**more, **settings)

    try:
        if not takes_choices:
            make(None)
    except ValueError as error:
        raise PluginError(f"the answer form {name}: {error}", at=("answer",)) from None
    return Form(name, make, **defaults)


def filtered(filters: Sequence[Pipeline]) -> Form:
    """The form of a reply that filters read.

    With a single filter that takes every reply by itself the answer is what it makes of the reply; otherwise it is the
    whole reply, which grading filters in each way.
    """
    if not filters:
        return form_of({"form": "text"})
    first, *others = filters
    whole = bool(others) or first.chooses

    def make(choices: Sequence[str] | None) -> Reply:
        return Filtered(first, None if choices is None else tuple(choices), whole)

    return Form("filtered", make, "", filters=tuple(filters) if whole else ())


_Definition = tuple[Callable[..., Reply], dict[str, Any]]
"""Maker of the reply form (`choices` are the row's), and other attributes of `Form`."""


def _letter() -> _Definition:
    from .letter import Letter

    def make(choices: Sequence[str] | None, options: int | None = None, work: bool = True) -> Reply:
        if choices is None and options is None:
            hint = "Give doc_to_choice, or options: N."
            raise PluginError("the answer form letter needs choices", hint=hint, at=("answer",))
        return Letter(tuple(choices) if choices is not None else options or 0, work)

    def right(reply: Reply, text: str) -> str:
        options = reply.options or ()
        bare = text.strip().strip("().:").strip().upper()
        if bare.isdecimal() and int(bare) < len(options):
            return str(options[int(bare)])
        if bare not in options:
            raise DataError(f"the right answer {text!r:.60} is not a letter from {options[0]} to {options[-1]}")
        return bare

    instruction = f"End your reply with the letter of your choice, like this: {Letter(1).written('X')}"
    return make, {"instruction": instruction, "letters": True, "right": right}


def _label() -> _Definition:
    from .label import Label, canonical_label

    def make(choices: Sequence[str] | None, labels: list[str] | None = None) -> Reply:
        texts = labels or choices
        if not texts:
            message = "the answer form label needs labels"
            raise PluginError(message, hint="Give labels: […], or doc_to_choice.", at=("answer",))
        return Label(tuple(texts))

    def right(reply: Reply, text: str) -> str:
        labels = reply.labels if isinstance(reply, Label) else ()
        match = next((label for label in labels if canonical_label(label) == canonical_label(text)), None)
        if match is None and text.strip().isdecimal() and int(text) < len(labels):
            match = labels[int(text)]
        if match is None:
            hint = f"They are: {', '.join(labels)}."
            raise DataError(f"the right answer {text!r:.60} is none of the labels", hint=hint)
        return match

    line = Label(("…",)).written("…")
    instruction = f"End your reply with a line like this, with one of the allowed answers: {line}"
    return make, {"instruction": instruction, "right": right, "canonical": lambda action: str(action).casefold()}


def _boxed() -> _Definition:
    from .boxed import Boxed
    from .mathematics import math_canonical

    instruction = f"Work step by step, and end your reply with the final answer in {Boxed().written('')}."
    canonical = lambda action: math_canonical(str(action))  # noqa: E731
    return Boxed, {"instruction": instruction, "metric": "math_equal", "canonical": canonical}


def _number() -> _Definition:
    from .number import LINE, Number

    def right(reply: Reply, text: str) -> str:
        value = reply.parse(text).action
        if value is None:
            raise DataError(f"the right answer {text!r:.60} is not a number")
        return json.dumps(value)

    instruction = f"End your reply with a line like this: {LINE}"
    return Number, {"instruction": instruction, "metric": "number_equal", "right": right, "canonical": json.dumps}


def _code() -> _Definition:
    from harness.extensions.sandbox.code import Code

    return Code, {"instruction": "", "metric": "exact_match", "canonical": str}


def _pattern() -> _Definition:
    from .pattern import Pattern

    return Pattern, {"instruction": ""}


FORMS: dict[str, Callable[[], _Definition]] = {
    "letter": _letter,
    "label": _label,
    "boxed": _boxed,
    "number": _number,
    "code": _code,
    "pattern": _pattern,
    "text": lambda: (FreeText, {"instruction": ""}),
}
"""Name → its definition. A form is loaded where a task names it."""
