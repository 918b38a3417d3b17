"""Mistakes in calls of Python functions, named by their parameters: what the command line calls `--limit -1` is
`limit=-1` there. Loaded for messages alone."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from harness.api.errors import CombinedSpecError, UserError

_OTHERS: Final = {"set": "overrides", "executor_args": "executor"}
"""Options of the command line that have another name as parameters."""
_COMMANDS: Final = re.compile(r"(`harness [^`]*`)")
_END: Final = r"(?=:\s|:$|[,.;)]\s|[,.;)]?$|\s--|\s\()"
_OPTION: Final = re.compile(
    rf"--(?P<option>[a-z][a-z_]*)[ =](?P<value>\S+?{_END}|\S*=\S+?(?=\s|{_END}))|--(?P<no>no-)?(?P<name>[a-z][a-z_]*)"
)
"""An option with its value, where a place, a clause or the text ends there; or an option alone."""


def _literal(parameter: str, value: str) -> str:
    """A value of the command line as Python writes it."""
    if parameter.endswith("_args"):
        pairs = (part.partition("=")[::2] for part in value.split(","))
        return "{" + ", ".join(f"{key!r}: {own!r}" for key, own in pairs) + "}"
    return value if re.fullmatch(r"-?\d+(\.\d+)?|…", value) else repr(value)


def use_parameter_names(error: UserError, parameters: Collection[str], flags: Collection[str] = ()) -> None:
    """Put the names of parameters in place of options of the command line, in a mistake's place, message and hint.

    Args:
        error: the mistake; changed in place.
        parameters: those that the function has.
        flags: those of them that are true or false.
    """

    def renamed(text: str) -> str:
        return in_python(text, parameters, flags)

    if error.place is not None and error.place.file.startswith("--"):
        option, _, value = error.place.file[2:].partition(" ")
        whole = f"overrides=[{value!r}]" if option == "set" and value else renamed(f"{error.place.file}:")[:-1]
        error.place = replace(error.place, file=whole)
    error.message = renamed(error.message)
    error.hint = error.hint and renamed(error.hint)
    error.args = (error.message, *error.args[1:])
    if isinstance(error, CombinedSpecError):
        error.each = tuple(map(renamed, error.each))


def in_python(text: str, parameters: Collection[str], flags: Collection[str] = ()) -> str:
    """A text with the names of parameters in place of options; other arguments as in `use_parameter_names`.

    Whole commands of a shell, such as `harness score RUN --set …`, stay as they are.
    """

    def name(match: re.Match[str]) -> str:
        option, value = match["option"] or match["name"], match["value"]
        parameter = _OTHERS.get(option, option)
        if parameter not in parameters:
            return match[0]
        if parameter in flags:
            return f"{parameter}={not match['no']}" + (f" {value}" if value else "")
        if value is None:
            return parameter
        return f"overrides=[{value!r}]" if parameter == "overrides" else f"{parameter}={_literal(parameter, value)}"

    parts = _COMMANDS.split(text)
    return "".join(part if i % 2 else _OPTION.sub(name, part) for i, part in enumerate(parts))
