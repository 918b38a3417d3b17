"""Tables and headlines of finished runs: as the run wrote them (`written`).

Where it wrote none that belong to its scores, they are made in a process that ends, once its page is asked for.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.api.errors import DataError

from . import saved_tables
from ._reader_process import TABLE_SECONDS, Reader, TooSlowError
from ._run_list import ListedRun

_WAIT_SECONDS = 0.3  # seconds that a request waits for tables, or reads headlines
_MAX_SCORES_BYTES = (
    1 << 23
)  # bytes of scores.jsonl up to which a list of runs looks for the headline that the run wrote


class Results:
    """What finished runs came to. All methods may be called from any thread.

    Args:
        project: the root of the project whose metrics are used.
    """

    def __init__(self, project: Path) -> None:
        self._project = project
        self._lock = threading.Lock()
        self._results: dict[str, tuple[str, dict[str, Any]]] = {}  # run → its stamp, and the results
        self._making: dict[str, threading.Thread] = {}
        self._headlines: dict[str, tuple[str, Any]] = {}

    def tables(self, run: ListedRun) -> tuple[Any, str | None, bool]:
        """(tables or None, what went wrong, whether they are still being made)."""
        if not (stamp := run.stamp()):
            return [], None, False
        if self._of(self._results, run, stamp) is None and (there := saved_tables.read(run.folder)) is not None:
            self._keep(run, stamp, {**there, "problem": None})
        with self._lock:
            if self._of(self._results, run, stamp) is None and run.id not in self._making:
                self._making[run.id] = threading.Thread(target=self._make, args=(run, stamp), daemon=True)
                self._making[run.id].start()
            maker = self._making.get(run.id)
        if maker is not None:
            maker.join(_WAIT_SECONDS)
        made = self._of(self._results, run, stamp)
        return (None, None, True) if made is None else (made["tables"], made["problem"], False)

    def headline(self, run: ListedRun) -> Any:
        """The headline, as far as it is known: {name, metric, value, text, low, high, n, better}, or None."""
        return self._of(self._headlines, run, run.stamp())

    def look(self, runs: Iterable[ListedRun]) -> None:
        """Read the headlines that runs wrote and that are not known yet, for a moment; later calls go on."""
        until = time.monotonic() + _WAIT_SECONDS
        for run in runs:
            if time.monotonic() > until:
                return
            if (stamp := run.stamp()) and self._headlines.get(run.id, ("",))[0] != stamp:
                self._headlines[run.id] = stamp, _headline(run)

    @staticmethod
    def _of(known: dict[str, tuple[str, Any]], run: ListedRun, stamp: str) -> Any:
        there = known.get(run.id)
        return there[1] if there is not None and there[0] == stamp else None

    def _make(self, run: ListedRun, stamp: str) -> None:
        reader = Reader(self._project)  # all scores of the run are in memory for that: a process that ends with it
        try:
            made = {**json.loads(reader.do("results", str(run.folder), seconds=TABLE_SECONDS)), "problem": None}
        except (DataError, TooSlowError) as error:
            made = {"tables": [], "headline": None, "problem": f"no tables: {error}"}
        finally:
            reader.close()
        self._keep(run, stamp, made)

    def _keep(self, run: ListedRun, stamp: str, made: dict[str, Any]) -> None:
        with self._lock:
            self._results[run.id] = stamp, made
            self._headlines[run.id] = stamp, made["headline"]
            self._making.pop(run.id, None)


def _headline(run: ListedRun) -> Any:
    """The headline that a run wrote; None if it wrote none, or is too large for a list."""
    try:
        is_large = (run.folder / "scores.jsonl").stat().st_size > _MAX_SCORES_BYTES
    except OSError:  # the run is gone
        return None
    there = None if is_large else saved_tables.read(run.folder)
    return None if there is None else there["headline"]
