"""`errors.jsonl` of a run: what plugins raised, with tracebacks."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from harness.errors import DataError, Place

from .files import no_link, no_pipe

ERRORS = "errors.jsonl"


class ErrorLog:
    """The `errors.jsonl` of a run: what plugins raised, one JSON object per line.

        {"stage": "grade", "episode": "agents=2/c0/0", "error": "ZeroDivisionError: … (registry/tasks/x.py:12)",
         "place": "registry/tasks/x.py:12", "traceback": "Traceback (most recent call last): …"}

    A line for each error; only the first of a kind and place has a traceback. A line has `agent` if the caller knows
    it. The file exists only once there is an error.

    Args:
        path: the file; None: no file, only messages.
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
        """Write one error down, whether it fails its episode or not; returns `plugin_errors.describe` of it.

        Args:
            error: what the plugin raised.
            stage: what was done: "play", "reply", "grade", "metric exact", …
            episode: the episode's id.
            agent: whose turn it was.
            plugin: the plugin that was asked, for the place where no line of it was running.

        Raises nothing: where the disk is full the run's journal says so.
        """
        from .plugin_errors import describe, place, whole  # what only a failing plugin needs

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

    Raises `DataError`.
    """
    for path in folder.glob("errors*.jsonl"):
        try:
            _forget_scoring(path)
        except (OSError, UnicodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"cannot be read: {why or error}", place=Place(str(path)), hint="Remove it.") from None


def _forget_scoring(path: Path) -> None:
    with open(path, encoding="ascii", opener=no_pipe) as file:
        lines = file.readlines()
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
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace", opener=no_pipe) as lines:
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, AttributeError):  # a torn last line
                    text = json.loads(line).get("traceback")
                    if text is not None and text not in texts:
                        texts.add(text)
                        yield str(text)
