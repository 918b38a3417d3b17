"""An expression as YAML has it, and what is wrong with one: the place in the file and the values at hand."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from harness.api.errors import Place, PluginError
from harness.plugins.parameters import ParameterType, Schema


class Expression(str, ParameterType):
    """The text of an expression, with the place of the YAML value that it is in (None: not from a file)."""

    schema: ClassVar[Schema] = {"type": ["string", "number", "boolean"], "description": "an expression"}
    place: Place | None = None

    @classmethod
    def at(cls, text: object, place: Place | None) -> Expression:
        """An expression of a YAML value, which may be a plain number or truth value too."""
        expression = cls(text)
        expression.place = place
        return expression


class ExpressionError(PluginError):
    """An expression cannot be read, or fails. `place` points at the part that does."""

    @classmethod
    def of(cls, text: object, what: str, hint: str | None = None) -> Self:
        """The error for what an expression gave, with the place where its text is in YAML."""
        return cls(what, place=getattr(text, "place", None), hint=hint)


class ExpressionLimitError(ExpressionError):
    """An expression asks for more steps, time or space than there are: those of all that runs on the same names."""


def pinpoint(text: str, offset: int) -> Place | None:
    """The line and column, in its YAML file, of the character number `offset` of an expression.

    Quotes and block scalars move it, so its line is looked up in the file. Where it is not found, as in a text that
    YAML folds, it is the place where the YAML value starts.
    """
    start = text.place if isinstance(text, Expression) else None
    if start is None or not start.line:
        return start
    begin = text.rfind("\n", 0, offset) + 1
    line = text[begin:].partition("\n")[0]
    try:
        lines = Path(start.file).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return start
    for number in range(start.line, min(len(lines), start.line + text.count("\n") + 1) + 1):
        column = lines[number - 1].find(line, start.column - 1 if number == start.line else 0)
        if column >= 0:
            return Place(start.file, number, column + offset - begin + 1)
    return start
