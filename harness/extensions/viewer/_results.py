"""Tables and headlines of finished runs: as the run wrote them (`tables.json`).

Where it wrote none that belong to its scores, they are made in a process that ends, once its page is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from harness.api.run_files import SCORES

from . import saved_tables
from ._making import WAIT_SECONDS, Making
from ._run_list import ListedRun

_KEPT: Final = 100  # runs
_MAX_SCORES_BYTES = (
    1 << 23
)  # bytes of scores.jsonl up to which a list of runs looks for the headline that the run wrote


class Results:
    """What finished runs came to. All methods may be called from any thread.

    Args:
        project: the root of the project whose metrics are used.
    """

    def __init__(self, project: Path) -> None:
        self._making = Making(project, _KEPT)
        self._headlines: dict[str, tuple[str, Any]] = {}

    def tables(self, run: ListedRun) -> tuple[Any, str | None, bool]:
        """(tables or None, what went wrong, whether they are still being made)."""
        if not (stamp := run.stamp()):
            return [], None, False
        made = self._making.there(run.id, stamp)
        if made is None and (made := saved_tables.read(run.folder)) is not None:
            self._making.keep(run.id, stamp, made)
        if made is None and (made := self._making.get(run.id, stamp, "results", str(run.folder))) is None:
            return None, None, True
        if (problem := made.get("problem")) is not None:
            return [], f"no tables: {problem}", False
        self._headlines[run.id] = stamp, made["headline"]
        return made["tables"], None, False

    def headline(self, run: ListedRun) -> Any:
        """The headline, as far as it is known: {name, metric, value, text, low, high, n, better}, or None."""
        there = self._headlines.get(run.id)
        return there[1] if there is not None and there[0] == run.stamp() else None

    def look(self, runs: Iterable[ListedRun]) -> None:
        """Read the headlines that runs wrote and that are not known yet, for a moment; later calls go on."""
        until = time.monotonic() + WAIT_SECONDS
        for run in runs:
            if time.monotonic() > until:
                return
            if (stamp := run.stamp()) and self._headlines.get(run.id, ("",))[0] != stamp:
                self._headlines[run.id] = stamp, _headline(run)

    def close(self) -> None:
        """End what is being made."""
        self._making.close()


def _headline(run: ListedRun) -> Any:
    """The headline that a run wrote; None if it wrote none, or is too large for a list."""
    try:
        is_large = (run.folder / SCORES).stat().st_size > _MAX_SCORES_BYTES
    except OSError:  # the run is gone
        return None
    there = None if is_large else saved_tables.read(run.folder)
    return None if there is None else there["headline"]
