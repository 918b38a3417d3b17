"""Checks of mappings within a task's parameters, by the mechanism of all parameters (`harness.plugins.parameters`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from harness.api.errors import KEY, PluginError, ValuePath
from harness.plugins.parameters import problems


class ProcessDocs(TypedDict, total=False):
    """`process_docs`: a template that selects rows, and templates of new columns."""

    where: str
    set: dict[str, Any]


class FewshotConfig(TypedDict, total=False):
    """`fewshot_config`: how examples are chosen, the rows to choose from, and a column that must agree."""

    sampler: Literal["default", "first_n"]
    samples: list[dict[str, Any]]
    same: str


class Filter(TypedDict, total=False):
    """An entry of `filter_list`: steps, each with a `function` and its parameters."""

    name: str
    filter: list[dict[str, Any]]


def check_literal(options: Sequence[str]) -> None:
    """Raise `PluginError` for an option of a list that is meant as a template: a list is literal, as in lm-eval."""
    if (i := next((i for i, one in enumerate(options) if isinstance(one, str) and "{{" in one), None)) is None:
        return
    columns = [one.strip() for one in options if isinstance(one, str)]
    inner = ", ".join(one[2:-2].strip() if one[:2] == "{{" and one[-2:] == "}}" else repr(one) for one in columns)
    raise PluginError(
        f"doc_to_choice: a list is literal, so {options[i]!r:.80} would be an option for every row as it stands",
        hint=f'Write one template that gives the list: doc_to_choice: "{{{{[{inner}]}}}}".',
        at=("doc_to_choice", i),
    )


def check(what: str, value: Any, hint: Any, at: ValuePath) -> None:
    """Raise `PluginError` for the first part of `value` that does not fit the annotation `hint`."""
    for path, problem in problems(value, hint):
        place = [step for step in (*at, *path) if isinstance(step, (str, int)) and step != KEY]
        raise PluginError(f"{what}: {problem}", at=tuple(place))


def check_arguments(
    what: str, function: Callable[..., Any], arguments: Mapping[str, Any], at: ValuePath, provided: str = ""
) -> None:
    """Raise `PluginError` for the first argument that does not fit the annotations of `function`.

    Args:
        provided: a parameter that the caller passes itself.
    """
    hints = {
        name: parameter.annotation if parameter.default is parameter.empty else NotRequired[parameter.annotation]
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        if name != provided
    }
    check(what, dict(arguments), TypedDict("Arguments", hints), at)  # type: ignore[operator]
