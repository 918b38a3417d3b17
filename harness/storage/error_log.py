"""`errors.jsonl` of a run: what plugins raised, with tracebacks."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path

from .files import no_link


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
