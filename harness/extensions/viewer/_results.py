"""Tables and headlines of finished runs: as the run wrote them (`harness.report.written`).

Where it wrote none that belong to its scores, they are made in processes that end. Both again when its files change.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import DataError

from . import written
from ._found import FoundRun
from ._reading import SECONDS, TABLE_SECONDS, Reader, TooSlowError

_WITHIN = 0.3  # seconds that a request waits for tables, or for headlines
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
        if self._of(self._made, run, stamp) is None and (there := written.read(run.folder)) is not None:
            self._keep(run, stamp, {**there, "problem": None})
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
        """Find the headlines of runs that have none yet: those that runs wrote for a moment, then in a thread."""
        until = time.monotonic() + _WITHIN
        new = [run for run in runs if (stamp := run.stamp()) and self._headlines.get(run.id, ("",))[0] != stamp]
        while new and time.monotonic() < until and self._find_written(new[-1]):
            new.pop()
        with self._lock:
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
        self._keep(run, stamp, made)

    def _keep(self, run: FoundRun, stamp: str, made: dict[str, Any]) -> None:
        with self._lock:
            self._made[run.id] = stamp, made
            self._headlines[run.id] = stamp, made["headline"]
            self._making.pop(run.id, None)

    def _find_written(self, run: FoundRun) -> bool:
        """Take the headline that the run wrote; False if it wrote none, or is too large for a list."""
        stamp = run.stamp()
        try:
            if (run.folder / "scores.jsonl").stat().st_size > _FEW or (there := written.read(run.folder)) is None:
                return False
        except OSError:
            return False
        self._headlines[run.id] = stamp, there["headline"]
        return True

    def _find(self, runs: list[FoundRun]) -> None:
        reader = Reader(self._project)
        try:
            for run in runs:
                if self._is_closed:
                    return
                if self._find_written(run):
                    continue
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
