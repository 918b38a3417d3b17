"""What goes wrong inside a task of lm-eval, as an error that names the task's file and the line of its function."""

from __future__ import annotations

import dataclasses
import re
import traceback
from pathlib import Path

from harness.api.errors import DataError, Place, PluginError, UserError, near

from . import _package

_UNKNOWN_KEY = re.compile(r"TaskConfig\.__init__\(\) got an unexpected keyword argument '(\w+)'")
_HUB = ("huggingface_hub", "requests", "httpx")
"""Packages whose errors say that the hub cannot be reached."""


class UnreadableDataError(Exception):
    """The data set of a task could not be loaded; its cause says why."""


def place_of_function(error: BaseException, yaml: Path | None) -> Place | None:
    """The innermost line of a task's own Python file that was running: beside its YAML, or in the package's folders."""
    homes = [_package.folder().resolve()] + ([yaml.resolve().parent] if yaml else [])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename).resolve()
        # A compiled module names a relative path that no folder here holds.
        if file.is_file() and any(file.is_relative_to(home) and file.parent != homes[0] for home in homes):
            return Place(str(file), frame.lineno or 1, 1)
    return None


def first_line(error: BaseException) -> str:
    """Kind and first line of a foreign error's message."""
    own = error.args[0] if isinstance(error, KeyError) and error.args else error  # a KeyError's text is a repr
    text = next(iter(str(own).strip().splitlines()), "")
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def explain_error(error: BaseException, name: str, yaml: Path | None, doing: str) -> UserError:
    """The error to raise for whatever `lm_eval`, a data set or a `!function` raised.

    Args:
        error: what was raised.
        name: the task's.
        yaml: its file, if it has one.
        doing: what was being done, in words that follow "while".
    """
    if isinstance(error, UserError):
        if error.place is None and yaml is not None:
            error.message, error.place = f"task {name!r}: {error.message}", Place(str(yaml), 1, 1)
        return error
    if isinstance(error, UnreadableDataError) and error.__cause__ is not None:
        return _no_data(error, name, yaml)
    where = Place(str(yaml), 1, 1) if yaml is not None else None
    if isinstance(error, ConnectionError) or type(error).__module__.partition(".")[0] in _HUB:
        message = f"task {name!r} cannot load its data ({first_line(error)})"
        hint = (
            "Its own Python code loads them: run it once with a network, so that they are in the cache of `datasets`."
        )
        return DataError(message, place=where, hint=hint)
    key = _UNKNOWN_KEY.search(str(error)) if isinstance(error, TypeError) else None
    if key is not None:
        from lm_eval.config.task import TaskConfig

        hint = near(key[1], (field.name for field in dataclasses.fields(TaskConfig)))
        return PluginError(f"a task of lm-eval has no key {key[1]!r}", place=_line_of(key[1], yaml) or where, hint=hint)
    function = place_of_function(error, yaml)
    if isinstance(error, ModuleNotFoundError) and function is not None:
        hint = f'{function} imports it: install it, e.g. pip install "lm_eval[…]" with the task\'s extra.'
        return PluginError(f"task {name!r} needs the package {error.name}", place=where, hint=hint)
    of = f"; its function fails at {function}" if function is not None else ""
    return PluginError(f"task {name!r}, {doing}: {first_line(error)}{of}", place=where)


def _line_of(key: str, yaml: Path | None) -> Place | None:
    """Where a key at the left of a YAML file stands."""
    try:
        lines = yaml.read_text("utf-8").splitlines() if yaml is not None else []
    except (OSError, UnicodeDecodeError):
        return None
    return next((Place(str(yaml), i, 1) for i, line in enumerate(lines, 1) if line.startswith(f"{key}:")), None)


def _no_data(error: UnreadableDataError, name: str, yaml: Path | None) -> DataError:
    cause = error.__cause__ or error
    hint = (
        "Without a network give task: {data_dir: FOLDER} (or --data_dir) with a copy of the data set, one file a split "
        "(test.jsonl, train.jsonl, …), or data_files: {test: FILE, …}."
    )
    if isinstance(cause, FileNotFoundError):
        hint = f"Look for a slip in the file's name. {hint}"
    place = Place(str(yaml), 1, 1) if yaml is not None else None
    return DataError(f"task {name!r}: {error} cannot be read ({first_line(cause)})", place=place, hint=hint)
