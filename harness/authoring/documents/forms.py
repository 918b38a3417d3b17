"""Forms of answers to a data set's questions: the `answer:` of a task."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.api import Action, Reply
from harness.errors import DataError, PluginError, near
from harness.replies import (
    Boxed,
    Code,
    FreeText,
    Label,
    Letter,
    Number,
    Pattern,
    canonical_label,
    math_canonical,
    unquoted,
)

from .checks import Filter, check, check_arguments


@dataclass(frozen=True)
class Form:
    """A form of answer.

    Attributes:
        name: as specs write it.
        make: row's choices (or None) → reply form.
        instruction: how to write the answer, in words.
        metric: the default metric.
        letters: whether an answer is the letter of one of the choices.
        right: a right answer of the data in the form's own spelling; raises `DataError` for one that no reply can give.
        canonical: answer → one text for all equal answers.
    """

    name: str
    make: Callable[[Sequence[str] | None], Reply]
    instruction: str
    metric: str = "exact_match"
    letters: bool = False
    right: Callable[[Reply, str], str] = field(default=lambda reply, text: text)
    canonical: Callable[[Action], str] = field(default=lambda action: re.sub(r"\s+", " ", unquoted(str(action))))

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


_INVALID = "[invalid]"
"""lm-eval's answer for a reply without a match, which is never right."""


def _regex(
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)", group_select: int = 0, fallback: str = _INVALID
) -> dict[str, Any]:
    """lm-eval's filter of this name, with its defaults."""
    if fallback != _INVALID:
        hint = "Leave it out: a reply without an answer counts as wrong, and shows under `answered`."
        raise PluginError(f"fallback {fallback!r:.60} is not supported", hint=hint)
    return {"form": "pattern", "pattern": regex_pattern, "group_select": group_select}


def _nothing() -> dict[str, Any]:
    """A filter without effect here: forms read one reply, and strip blanks."""
    return {}


FILTERS: dict[str, Callable[..., dict[str, Any]]] = {
    "regex": _regex,
    "remove_whitespace": _nothing,
    "take_first": _nothing,
}


def filtered(filter_list: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answer form equivalent to lm-eval's filter: a regular expression's match, else the whole text.

    Raises:
        PluginError: for several filters, steps other than those of `FILTERS`, and bad parameters.
    """
    answer: dict[str, Any] = {"form": "text"}
    if len(filter_list) > 1:
        names = ", ".join(
            str(filter_spec.get("name", "?")) for filter_spec in filter_list if isinstance(filter_spec, Mapping)
        )
        hint = "Keep one of them; a spec that extends this one can have another."
        raise PluginError(f"filter_list has {len(filter_list)} filters: {names}", hint=hint, at=("filter_list",))
    check("filter_list", list(filter_list), list[Filter], ("filter_list",))
    for steps in (entry.get("filter", ()) for entry in filter_list):
        if sum(step.get("function") == "regex" for step in steps) > 1:
            raise PluginError("filter_list: one regex is supported, not several in a row", at=("filter_list",))
        for i, step in enumerate(steps):
            answer = _step(step, ("filter_list", 0, "filter", i)) or answer
    return answer


def _step(step: Mapping[str, Any], at: tuple[str | int, ...]) -> dict[str, Any]:
    """Return the answer form of one step of a filter; {} if the step has no effect."""
    function = step.get("function")
    if not isinstance(function, str) or function not in FILTERS:
        hint = f"{near(str(function), FILTERS)} Majority votes are the protocol's: single, vote."
        raise PluginError(f"filter_list: the filter {function!r} is not supported", hint=hint, at=(*at, "function"))
    maker = FILTERS[function]
    settings = {key: value for key, value in step.items() if key != "function"}
    check_arguments(f"the filter {function}", maker, settings, at)
    try:
        return maker(**settings)
    except PluginError as error:
        raise PluginError(f"the filter {function}: {error.message}", hint=error.hint, at=at) from None


def _right_letter(reply: Reply, text: str) -> str:
    options = reply.options or ()
    bare = text.strip().strip("().:").strip().upper()
    if bare.isdecimal() and int(bare) < len(options):
        return str(options[int(bare)])
    if bare not in options:
        raise DataError(f"the right answer {text!r:.60} is no letter from {options[0]} to {options[-1]}")
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
        raise DataError(f"the right answer {text!r:.60} is no number")
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


FORMS: dict[str, tuple[Callable[..., Reply], dict[str, Any]]] = {
    "letter": (
        _letter,
        {
            "instruction": "End your reply with the letter of your choice, like this: The answer is (X).",
            "letters": True,
            "right": _right_letter,
        },
    ),
    "label": (
        _label,
        {
            "instruction": "End your reply with a line like this, with one of the allowed answers: Final Answer: …",
            "right": _right_label,
            "canonical": lambda action: str(action).casefold(),
        },
    ),
    "boxed": (
        Boxed,
        {
            "instruction": "Work step by step, and end your reply with the final answer in \\boxed{}.",
            "metric": "math_equal",
            "canonical": lambda action: math_canonical(str(action)),
        },
    ),
    "number": (
        Number,
        {
            "instruction": "End your reply with a line like this: The answer is 42.",
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
