"""Exceptions that plugins raise, in words: where in the plugin it was. Loaded where one has raised something."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType

from harness.api.causes import causes
from harness.api.errors import UserError
from harness.api.plugin import MOUNT

_MAX_MESSAGE_CHARS = 2_000  # characters
_MAX_TRACEBACK_CHARS = 20_000


def describe(error: BaseException, plugin: object = None) -> str:
    """One line for the author of a plugin: kind, message, and in brackets the place (see `place`).

    A mistake of a user, such as one in an expression or in data, is its message, with its own place if it has one.
    """
    if isinstance(error, UserError):
        return _message(error)
    text, where = f"{type(error).__name__}: {_message(error)}", place(error, plugin)
    return text if where is None else f"{text} ({where})"


def place(error: BaseException, plugin: object = None) -> str | None:
    """Where in a plugin it went wrong: `registry/tasks/x.py:12`, as a path relative to the project.

    That is the innermost line of a plugin that was running. Where none was, the harness refused what one gave: the
    place is the file of `plugin`, if the caller knows it, else the line that raised. None if there is no line.
    """
    frames = plugin_frames(error)
    if frames:
        frame, line = frames[-1]
        return f"{_relative(frame.f_code.co_filename, str(frame.f_globals['__name__']))}:{line}"
    module = sys.modules.get(type(plugin).__module__)
    if module is not None and module.__name__.startswith(MOUNT) and module.__file__:
        return _relative(module.__file__, module.__name__)
    last = traceback.extract_tb(error.__traceback__)[-1:]
    return f"{Path(last[0].filename).name}:{last[0].lineno}" if last else None


def plugin_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """(frame, line) of the plugins that were running when it was raised, or its cause was; the innermost last."""
    for cause in causes(error):
        frames = traceback.walk_tb(cause.__traceback__)
        if own := [(frame, line) for frame, line in frames if str(frame.f_globals.get("__name__")).startswith(MOUNT)]:
            return own
    return []


def whole(error: BaseException) -> str:
    """The traceback as Python prints it, bounded in length."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # a plugin's error may hold what Python cannot print
        text = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    half = _MAX_TRACEBACK_CHARS // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n  …\n{text[-half:]}"


def _relative(file: str, module: str) -> str:
    """A plugin's file as seen from the root of its project."""
    mounted = sys.modules.get(module.partition(".")[0])
    for root in getattr(mounted, "__path__", ()):
        if Path(file).is_relative_to(root):
            return Path(file).relative_to(root).as_posix()
    return Path(file).name


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as failure:
        text = f"(its message fails: {type(failure).__name__})"
    return text if len(text) <= _MAX_MESSAGE_CHARS else text[:_MAX_MESSAGE_CHARS] + " …"
