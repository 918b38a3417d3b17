"""What `harness list` says about each plugin, spec and prompt set: names and descriptions, with nothing imported."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.api.errors import UserError
from harness.config import yamls
from harness.config.prompts import PROMPT_SET, about


@dataclass(frozen=True)
class ListLine:
    """A line of `harness list`. `problem` is set for a file that is broken; it is shown, never skipped."""

    name: str
    file: Path
    description: str = ""
    problem: str | None = None


def listed(files: Mapping[str, Path]) -> list[ListLine]:
    """A line for each of these files, in order of their names."""
    return [(_of_yaml if file.suffix == ".yaml" else _of_plugin)(name, file) for name, file in sorted(files.items())]


def _of_yaml(name: str, file: Path) -> ListLine:
    """A spec, or the folder of a prompt set, with the first line of its description."""
    is_prompts = file.name == PROMPT_SET
    try:
        data = (about if is_prompts else yamls.read)(file).data
    except UserError as error:
        return ListLine(name, file, problem=str(error))
    text = str(data.get("description") or "") if isinstance(data, dict) else ""
    return ListLine(name, file.parent if is_prompts else file, text.split("\n")[0])


def _of_plugin(name: str, file: Path) -> ListLine:
    """Name and docstring of the tagged class, read from the source."""
    try:
        tree = ast.parse(file.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        return ListLine(name, file, problem=f"{type(error).__name__}: {error}")
    for node in tree.body:
        tags = (getattr(d, "id", getattr(d, "attr", None)) for d in getattr(node, "decorator_list", ()))
        if isinstance(node, ast.ClassDef) and "plugin" in tags:
            return ListLine(name, file, (ast.get_docstring(node) or "").split("\n")[0])
    return ListLine(name, file, problem="no class tagged @plugin")
