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
from harness.extensions.sandbox.code import Code
from harness.replies import FreeText, unquoted

from .boxed import Boxed
from .checks import check_arguments
from .filters import Filtered, Pipeline
from .label import Label, canonical_label
from .letter import Letter
from .mathematics import math_canonical
from .number import LINE, Number
from .pattern import Pattern


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
    maker, defaults = FORMS[name]
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


def _right_letter(reply: Reply, text: str) -> str:
    options = reply.options or ()
    bare = text.strip().strip("().:").strip().upper()
    if bare.isdecimal() and int(bare) < len(options):
        return str(options[int(bare)])
    if bare not in options:
        raise DataError(f"the right answer {text!r:.60} is not a letter from {options[0]} to {options[-1]}")
    return bare


def _right_label(reply: Reply, text: str) -> str:
    labels = reply.labels if isinstance(reply, Label) else ()
    match = next((label for label in labels if canonical_label(label) == canonical_label(text)), None)
    if match is None and text.strip().isdecimal() and int(text) < len(labels):
        match = labels[int(text)]
    if match is None:
        raise DataError(f"the right answer {text!r:.60} is none of the labels", hint=f"They are: {', '.join(labels)}.")
    return match


def _right_number(reply: Reply, text: str) -> str:
    value = reply.parse(text).action
    if value is None:
        raise DataError(f"the right answer {text!r:.60} is not a number")
    return json.dumps(value)


def _letter(choices: Sequence[str] | None, options: int | None = None, work: bool = True) -> Reply:
    if choices is None and options is None:
        raise PluginError(
            "the answer form letter needs choices", hint="Give doc_to_choice, or options: N.", at=("answer",)
        )
    return Letter(tuple(choices) if choices is not None else options or 0, work)


def _label(choices: Sequence[str] | None, labels: list[str] | None = None) -> Reply:
    texts = labels or choices
    if not texts:
        message = "the answer form label needs labels"
        raise PluginError(message, hint="Give labels: […], or doc_to_choice.", at=("answer",))
    return Label(tuple(texts))


_LABEL_LINE = Label(("…",)).written("…")

FORMS: dict[str, tuple[Callable[..., Reply], dict[str, Any]]] = {
    "letter": (
        _letter,
        {
            "instruction": f"End your reply with the letter of your choice, like this: {Letter(1).written('X')}",
            "letters": True,
            "right": _right_letter,
        },
    ),
    "label": (
        _label,
        {
            "instruction": f"End your reply with a line like this, with one of the allowed answers: {_LABEL_LINE}",
            "right": _right_label,
            "canonical": lambda action: str(action).casefold(),
        },
    ),
    "boxed": (
        Boxed,
        {
            "instruction": f"Work step by step, and end your reply with the final answer in {Boxed().written('')}.",
            "metric": "math_equal",
            "canonical": lambda action: math_canonical(str(action)),
        },
    ),
    "number": (
        Number,
        {
            "instruction": f"End your reply with a line like this: {LINE}",
            "metric": "number_equal",
            "right": _right_number,
            "canonical": lambda action: json.dumps(action),
        },
    ),
    "code": (Code, {"instruction": "", "metric": "exact_match", "canonical": str}),
    "pattern": (Pattern, {"instruction": ""}),
    "text": (FreeText, {"instruction": ""}),
}
"""Name → maker of the reply form (`choices` are the row's), and other attributes of `Form`."""
