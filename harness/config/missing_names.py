"""Names of plugins, prompt sets and specs that are not there, and plugins that cannot be imported, in words.

Loaded for messages alone.
"""

from __future__ import annotations

import os
import shlex
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from harness.api.errors import Place, PluginError, SpecError
from harness.config.prompts import PROMPT_SET, SUFFIX
from harness.plugins.approvals import BUILTIN, MARKER
from harness.plugins.habits import of_engine
from harness.plugins.manifests import offers
from harness.plugins.missing_extensions import bringer, missing_module

RENAMED: Final = {"ensembles/": "panels/", "silo/behaviour": "silo/behavior"}
"""How names of metrics and prompt sets began in specs of earlier versions → how they begin now."""


def new_name(name: str) -> str | None:
    """What a metric or prompt set of an earlier version is called now, as a sentence; None if it had no other name."""
    new = next((now + name.removeprefix(was) for was, now in RENAMED.items() if name.startswith(was)), None)
    return None if new is None else f"It is called {new} now."


def no_plugin(kind: str, name: str, near: str, place: Place | None) -> PluginError:
    """The error for a plugin that is not there; `near`: what there is in its place."""
    habit = of_engine(name) if kind == "engines" else None
    hint = bringer(name, kind) or " ".join(filter(None, (habit, near)))
    return PluginError(f"there is no {offers('kinds')[kind].value['singular']} {name!r}", place=place, hint=hint)


def no_prompt_set(name: str, near: str, homes: Sequence[Path], place: Place | None) -> PluginError:
    """The error for a prompt set that is not there. `homes`: the folders of sets in which it would be looked for; none
    where the built-in project has it."""
    hint = (_templates_at(homes, name, place) if homes else None) or new_name(name) or near
    return PluginError(f"there is no prompt set {name!r}", place=place, hint=hint)


def no_spec(name: str, near: str, place: Place | None) -> SpecError:
    """The error for a spec that is not there; `near`: what there is in its place."""
    is_folder = not name.endswith((".yaml", ".yml")) and os.path.isdir(name)  # noqa: PTH112 — of any text
    if is_folder and (Path(name) / MARKER).is_file() and not Path.cwd().is_relative_to(Path(name).resolve()):
        near = f"It is a project: cd {shlex.quote(name)}; harness validate . checks all its specs."
    if name.endswith((".yaml", ".yml")) or "/" in name or is_folder:
        message = f"{name} is a folder, not a spec" if is_folder else f"file not found: {name}"
        return SpecError(f"{message}, and there is no spec of that name", place=place, hint=near)
    return SpecError(f"there is no spec {name!r}", place=place, hint=near)


def raise_import_error(what: str, error: BaseException, file: Path, place: Place | None) -> NoReturn:
    """Raise the error for a plugin whose import failed with `error`."""
    if (why := missing_module(error)) is not None:
        raise PluginError(f"{what} {why}", place=place) from None
    raise PluginError(
        f"{what} cannot be imported: {type(error).__name__}: {error}",
        place=_line_in(error, file),
        hint="Fix the file, or install what it imports." if isinstance(error, ImportError) else None,
    ) from error


def _templates_at(own: Sequence[Path], name: str, place: Place | None) -> str | None:
    """What makes a prompt set of a folder of that name; None if there is no such folder with templates."""
    near_spec = Path(place.file).parent if place is not None else Path()
    for home in (*own, near_spec / "prompts", near_spec.parent / "prompts"):
        folder = home / name
        if _has_templates(folder):
            if home in own:
                return f"{folder} has no {PROMPT_SET}. Write one, such as base: network/standard."
            why = f"{home} counts in a project only: put a {MARKER} beside it, with parents: [{BUILTIN}]"
            return f"{why}." if (folder / PROMPT_SET).is_file() else f"{why}, and a {PROMPT_SET} into {folder}."
    return None


def _has_templates(folder: Path) -> bool:
    try:
        return folder.is_dir() and any(folder.glob(f"*{SUFFIX}"))
    except OSError:
        return False


def _line_in(error: BaseException, file: Path) -> Place:
    if isinstance(error, SyntaxError) and error.filename:
        return Place(error.filename, error.lineno or 1, error.offset or 1)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(file)]
    return Place(str(file), frames[-1].lineno or 1, 1) if frames else Place(str(file))
