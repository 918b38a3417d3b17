"""Exceptions that plugins raise: where in the plugin it was, and the whole traceback in the run's folder."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from harness.errors import UserError

from .files import no_link

MOUNT = "_harness_project_"
"""How the names of all modules begin that are plugins (`harness.config.project` mounts projects under them)."""
DIGEST = "__harness_digest__"
"""The attribute of such a module that holds the SHA-256 of its source."""
ERRORS = "errors.jsonl"
_LONGEST_MESSAGE = 2_000  # characters
_LONGEST_TRACEBACK = 20_000


def describe(error: BaseException, plugin: object = None) -> str:
    """One line for the author of a plugin: kind, message, and in brackets the place (see `place`).

    A mistake of a spec, such as an expression's, has its place in the message.
    """
    text, where = f"{type(error).__name__}: {_message(error)}", place(error, plugin)
    if isinstance(error, UserError) and error.place is not None:
        return text
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
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        frames = traceback.walk_tb(cause.__traceback__)
        if own := [(frame, line) for frame, line in frames if str(frame.f_globals.get("__name__")).startswith(MOUNT)]:
            return own
        cause = cause.__cause__
    return []


def whole(error: BaseException) -> str:
    """The traceback as Python prints it, bounded in length."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # a plugin's error may hold what Python cannot print
        text = "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__
    half = _LONGEST_TRACEBACK // 2
    return text if len(text) <= 2 * half else f"{text[:half]}\n  …\n{text[-half:]}"


class ErrorLog:
    """The `errors.jsonl` of a run: what plugins raised, one JSON object per line.

        {"stage": "grade", "episode": "agents=2/c0/0", "error": "ZeroDivisionError: … (registry/tasks/x.py:12)",
         "place": "registry/tasks/x.py:12", "traceback": "Traceback (most recent call last): …"}

    A line for each error, its traceback only where this log has none of the same kind and place yet. `agent` is there
    where the caller knows it. The file exists only when there is something in it.

    Args:
        path: the file; None for nothing but the messages.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._known: set[tuple[str, str | None]] = set()
        self._lock = threading.Lock()  # tasks that execute programs grade in threads

    def record(
        self,
        error: BaseException,
        stage: str,
        episode: str | None = None,
        agent: str | None = None,
        plugin: object = None,
    ) -> str:
        """Write one error down, whether it fails its episode or not; returns `describe(error, plugin)`.

        Args:
            error: what the plugin raised.
            stage: what was done: "play", "reply", "grade", "metric exact", …
            episode: the episode's id.
            agent: whose turn it was.
            plugin: the plugin that was asked, for the place where no line of it was running.

        Raises nothing: where the disk is full the run's journal says so.
        """
        text, where = describe(error, plugin), place(error, plugin)
        if self.path is None:
            return text
        entry = {"stage": stage, "episode": episode, "agent": agent, "error": text, "place": where}
        entry = {key: value for key, value in entry.items() if value is not None}
        with self._lock, contextlib.suppress(OSError):
            if (key := (type(error).__name__, where)) not in self._known:
                self._known.add(key)
                entry["traceback"] = whole(error)
            with open(self.path, "a", encoding="ascii", opener=no_link) as file:
                file.write(json.dumps(entry) + "\n")
        return text


def forget_scoring(folder: Path) -> None:
    """Take out of a run's `errors.jsonl` what grading and measuring raised: both are about to be done again.

    Raises `OSError`.
    """
    for path in folder.glob("errors*.jsonl"):
        lines = path.read_text("ascii").splitlines(keepends=True)
        others = [line for line in lines if not re.match(r'\{"stage": "(grade|metric )', line)]
        if not others:
            path.unlink()
        elif len(others) < len(lines):
            with open(path, "w", encoding="ascii", opener=no_link) as file:
                file.write("".join(others))


def tracebacks(folder: Path) -> Iterator[str]:
    """The different tracebacks in a run's `errors.jsonl` and those of its workers, each once."""
    texts = set()
    for path in sorted(folder.glob("errors*.jsonl")):
        with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, AttributeError):  # a torn last line
                    text = json.loads(line).get("traceback")
                    if text is not None and text not in texts:
                        texts.add(text)
                        yield str(text)


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
    return text if len(text) <= _LONGEST_MESSAGE else text[:_LONGEST_MESSAGE] + " …"
