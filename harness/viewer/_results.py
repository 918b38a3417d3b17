"""Tables and headlines of finished runs: made in processes that end, and again when the run's files change."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import DataError

from ._found import FoundRun
from ._reading import SECONDS, TABLE_SECONDS, Reader, TooSlowError

_WITHIN = 0.3  # seconds that a request for a run waits for its tables
_FEW = 1 << 23  # bytes of scores.jsonl up to which a list of runs shows a headline that was not made yet


class Results:
    """What finished runs came to. All methods may be called from any thread.

    Args:
        project: the root of the project whose metrics are used.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._made: dict[str, tuple[str, dict[str, Any]]] = {}  # run → its stamp, and the results
        self._making: dict[str, threading.Thread] = {}
        self._headlines: dict[str, tuple[str, Any]] = {}
        self._looking: threading.Thread | None = None
        self._is_closed = False

    def tables(self, run: FoundRun) -> tuple[Any, str | None, bool]:
        """(tables or None, what went wrong, whether they are still being made)."""
        if not (stamp := run.stamp()):
            return [], None, False
        with self._lock:
            if self._of(self._made, run, stamp) is None and run.id not in self._making:
                self._making[run.id] = threading.Thread(target=self._make, args=(run, stamp), daemon=True)
                self._making[run.id].start()
            maker = self._making.get(run.id)
        if maker is not None:
            maker.join(_WITHIN)
        made = self._of(self._made, run, stamp)
        return (None, None, True) if made is None else (made["tables"], made["problem"], False)

    def headline(self, run: FoundRun) -> Any:
        """The headline, as far as it is known: {name, metric, value, text, low, high, n, better}, or None."""
        return self._of(self._headlines, run, run.stamp())

    def look(self, runs: Iterable[FoundRun]) -> None:
        """Begin to find the headlines of runs that have none yet."""
        with self._lock:
            new = [run for run in runs if (stamp := run.stamp()) and self._headlines.get(run.id, ("",))[0] != stamp]
            if new and self._looking is None and not self._is_closed:
                self._looking = threading.Thread(target=self._find, args=(new,), daemon=True)
                self._looking.start()

    def close(self) -> None:
        """Let what is being made come to nothing."""
        self._is_closed = True

    @staticmethod
    def _of(known: dict[str, tuple[str, Any]], run: FoundRun, stamp: str) -> Any:
        there = known.get(run.id)
        return there[1] if there is not None and there[0] == stamp else None

    def _make(self, run: FoundRun, stamp: str) -> None:
        reader = Reader(self._project)  # all scores of the run are in memory for that: a process that ends with it
        try:
            made = {**json.loads(reader.do("results", str(run.folder), True, seconds=TABLE_SECONDS)), "problem": None}
        except (DataError, TooSlowError) as error:
            made = {"tables": [], "headline": None, "problem": f"no tables: {error}"}
        finally:
            reader.close()
        with self._lock:
            self._made[run.id] = stamp, made
            self._headlines[run.id] = stamp, made["headline"]
            self._making.pop(run.id, None)

    def _find(self, runs: list[FoundRun]) -> None:
        reader = Reader(self._project)
        try:
            for run in runs:
                if self._is_closed:
                    return
                stamp, found = run.stamp(), None
                if (run.folder / "scores.jsonl").stat().st_size <= _FEW:
                    try:
                        found = json.loads(reader.do("results", str(run.folder), False, seconds=SECONDS))["headline"]
                    except (DataError, TooSlowError):
                        found = None  # the run's page says why
                self._headlines[run.id] = stamp, found
        except OSError:
            return  # the run is gone
        finally:
            reader.close()
            self._looking = None
