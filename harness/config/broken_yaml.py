"""What is wrong with a text that is no YAML, in words. Loaded for messages alone."""

from __future__ import annotations

import yaml

from harness.api.errors import Place, SpecError


def in_words(error: yaml.YAMLError, text: str, file: str) -> SpecError:
    """The mistake for what PyYAML says of a text, with its place and what to do."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = Place(file) if mark is None else Place(file, mark.line + 1, mark.column + 1)
        return SpecError(f"broken YAML: {error.problem or error.context}", place=place, hint=_hint(error, text))
    if isinstance(error, yaml.reader.ReaderError):  # raised before there is a loader that could say where
        before = text[: error.position]
        place = Place(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        return SpecError(f"broken YAML: the character {text[error.position]!r} may not stand here", place=place)
    return SpecError(f"broken YAML: {str(error).splitlines()[0]}", place=Place(file))


def _hint(error: yaml.MarkedYAMLError, text: str) -> str | None:
    if _is_indented_by_a_tab(error, text):
        return "Use spaces: YAML does not let tabs indent."
    if "flow" in (error.context or ""):
        return "Inside { } and [ ], put a text with a comma, colon, brace or bracket in quotes."
    if "mapping values are not allowed" in (error.problem or ""):
        return 'Put a text with ": " in it in quotes; a key stands on a line of its own.'
    return None


def _is_indented_by_a_tab(error: yaml.MarkedYAMLError, text: str) -> bool:
    """Whether a line at which the parser stopped, or the one above it, is indented by a tab."""
    marks = [mark for mark in (error.problem_mark, error.context_mark) if mark is not None]
    lines = text.splitlines()
    places = {mark.line + step for mark in marks for step in (-1, 0)}
    return any(0 <= i < len(lines) and "\t" in lines[i][: len(lines[i]) - len(lines[i].lstrip())] for i in places)
