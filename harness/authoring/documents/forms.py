"""How an answer to a data set's question is written: the `answer:` of a task, and what goes with each form."""

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

from .types import check_types


@dataclass(frozen=True)
class Form:
    """A form of answer.

    Attributes:
        name: as specs write it.
        make: the reply form, from a row's choices (None where it has none).
        instruction: how the answer is to be written, in words.
        metric: how it is graded unless `metric_list` says so.
        letters: whether an answer is the letter of one of the choices.
        right: a right answer of the data in the form's own spelling; raises `DataError` for one that no reply can give.
        canonical: one text for all answers that are the same.
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
    """The form that a task's `answer:` declares. Raises `PluginError` for one there is not, and for its parameters."""
    settings = dict(answer)
    name = str(settings.pop("form", ""))
    if name not in FORMS:
        what = f"there is no answer form {name!r}" if name else "answer has no form"
        raise PluginError(what, hint=near(name, FORMS), at=("answer", "form") if name else ("answer",))
    maker, defaults = FORMS[name]
    parameters = inspect.signature(maker).parameters
    names = [parameter for parameter in parameters if parameter != "choices"]
    for key in settings:
        if key not in names:
            raise PluginError(f"the answer form {name} has no {key!r}", hint=near(key, names), at=("answer", key))

    check_types(f"the answer form {name}", maker, settings, ("answer",))

    def make(choices: Sequence[str] | None) -> Reply:
        more = {"choices": choices} if "choices" in parameters else {}
        return maker(**more, **settings)

    try:
        if "choices" not in parameters:
            make(None)
    except (TypeError, ValueError) as error:
        raise PluginError(f"the answer form {name}: {error}", at=("answer",)) from None
    return Form(name, make, **defaults)


_INVALID = "[invalid]"
"""What lm-eval takes for the answer of a reply in which nothing matches: none that could be right."""


def _regex(
    regex_pattern: str = r"#### (\-?[0-9\.\,]+)", group_select: int = 0, fallback: str = _INVALID
) -> dict[str, Any]:
    """lm-eval's filter of this name, with its defaults."""
    if fallback != _INVALID:
        hint = "Leave it out: a reply without an answer counts as wrong, and shows under `answered`."
        raise PluginError(f"fallback {fallback!r:.60} is not known here", hint=hint)
    return {"form": "pattern", "pattern": regex_pattern, "group_select": group_select}


def _nothing() -> dict[str, Any]:
    """A filter that changes nothing here: forms read one reply, and drop blanks at both ends."""
    return {}


FILTERS: dict[str, Callable[..., dict[str, Any]]] = {
    "regex": _regex,
    "remove_whitespace": _nothing,
    "take_first": _nothing,
}


def filtered(filter_list: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer form that lm-eval's first filter comes to: a regular expression's match, else the whole text.

    Raises:
        PluginError: for steps other than those of `FILTERS`, and for parameters that they do not have.
    """
    answer: dict[str, Any] = {"form": "text"}
    if len(filter_list) > 1:
        names = ", ".join(
            str(filter_spec.get("name", "?")) for filter_spec in filter_list if isinstance(filter_spec, Mapping)
        )
        hint = "Keep one of them; a spec that extends this one can have another."
        raise PluginError(f"filter_list has {len(filter_list)} filters: {names}", hint=hint, at=("filter_list",))
    for filter_spec in filter_list:
        _check_keys("filter_list", filter_spec, ("name", "filter"), ("filter_list", 0))
        steps = filter_spec.get("filter", ())
        if not isinstance(steps, list | tuple) or not all(isinstance(step, Mapping) for step in steps):
            raise PluginError("filter_list: a filter is a list of steps with a function", at=("filter_list",))
        if sum(step.get("function") == "regex" for step in steps) > 1:
            raise PluginError("filter_list: one regex is known here, not several in a row", at=("filter_list",))
        for i, step in enumerate(steps):
            answer = _step(step, ("filter_list", 0, "filter", i)) or answer
    return answer


def _step(step: Mapping[str, Any], at: tuple[str | int, ...]) -> dict[str, Any]:
    """What one step of a filter makes of the answer form; nothing if it leaves it alone."""
    function = step.get("function")
    if not isinstance(function, str) or function not in FILTERS:
        hint = f"{near(str(function), FILTERS)} Majority votes are the protocol's: single, vote."
        raise PluginError(f"filter_list: the filter {function!r} is not known here", hint=hint, at=(*at, "function"))
    maker = FILTERS[function]
    parameters = list(inspect.signature(maker).parameters)
    _check_keys(f"the filter {function}", step, ("function", *parameters), at)
    settings = {key: value for key, value in step.items() if key != "function"}
    check_types(f"the filter {function}", maker, settings, at)
    try:
        return maker(**settings)
    except PluginError as error:
        raise PluginError(f"the filter {function}: {error.message}", hint=error.hint, at=at) from None


def _check_keys(what: str, mapping: Mapping[str, Any], keys: Sequence[str], at: tuple[str | int, ...]) -> None:
    for key in mapping:
        if key not in keys:
            raise PluginError(f"{what} has no {key!r}", hint=near(str(key), keys), at=(*at, key))


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
"""Name → what makes the reply form (`choices` is the row's), and the rest of it."""
