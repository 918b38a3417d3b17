"""What the pages over several runs ask for: the leaderboard, and two runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError
from harness.api.run_files import META

from ._making import Making
from ._run_list import ListedRun, RunList

_KEPT: Final = 8  # leaderboards and comparisons
_MAX_PAGE: Final = 200  # cases


Sides = tuple[ListedRun, ListedRun, tuple[str, str, str] | None]
"""Two runs; or twice the same one, with a label and two of its values."""


class Boards:
    """Both, as `harness leaderboard` and `harness compare` compute them. All methods may be called from any thread.

    Args:
        run_list: the runs.
        project: the root of the project whose plugins are used.
        project_state: what changes when a plugin does.
    """

    def __init__(self, run_list: RunList, project: Path, project_state: Callable[[], int]) -> None:
        self._run_list, self._state = run_list, project_state
        self._making = Making(project, _KEPT)

    def leaderboard(self, known: str = "") -> dict[str, Any]:
        """The leaderboard of the folder, without the specs' tables.

        Returns:
            {"pending": True} while it is being made, {"same": True} where it is still what `stamp` says that the page
            knows, {"problem"}; else `stamp` and what `_board_jobs.leaderboard` gives.
        """
        made, stamp = self._leaderboard()
        if made is None or "problem" in made:
            return made or {"pending": True}
        if stamp == known:
            return {"same": True}
        there = {run.id for run in self._run_list.all()}
        sections = []
        for section in made["sections"]:
            runs = {model: id for model, id in section["runs"].items() if id in there}
            sections.append({**section, "tables": len(section["tables"]), "runs": runs})
        return {**made, "sections": sections, "stamp": stamp}

    def tables(self, number: int) -> dict[str, Any]:
        """The spec's tables over all runs of a section, by its number. Raises `DataError` if there is none."""
        made, _ = self._leaderboard()
        if made is None or "problem" in made:
            return made or {"pending": True}
        if number >= len(made["sections"]):
            raise DataError(f"the leaderboard has {len(made['sections'])} sections; reload the page")
        return {"tables": made["sections"][number]["tables"]}

    def _leaderboard(self) -> tuple[dict[str, Any] | None, str]:
        stamps = [f"{run.id} {_stamp(run)}" for run in self._run_list.all()]
        stamp = f"{self._state()} {hash(tuple(stamps))}"
        return self._making.get("", stamp, "leaderboard", self._run_list.root), stamp

    def comparison(self, sides: Sides) -> dict[str, Any]:
        """Two sides, of the metrics how many cases differ: what `_board_jobs.comparison` gives, or as
        `leaderboard`."""
        made = self._comparison(sides)
        if made is None or "problem" in made:
            return made or {"pending": True}
        counts = {name: {**of, "cases": len(of["cases"])} for name, of in made["cases"].items()}
        return {**made, "cases": counts}

    def cases(self, sides: Sides, metric: str, offset: int, limit: int) -> dict[str, Any]:
        """Cases in which the sides differ by a metric, the largest difference first.

        Raises:
            DataError: no case has two numbers of it.
        """
        made = self._comparison(sides)
        if made is None or "problem" in made:
            return made or {"pending": True}
        metric = metric or made["headline"]["metric"]
        if metric not in made["cases"]:
            raise DataError(f"in no case the two runs differ by {metric!r:.80}")
        listed = made["cases"][metric]["cases"]
        return {"total": len(listed), "cases": listed[offset : offset + min(limit, _MAX_PAGE)]}

    def _comparison(self, sides: Sides) -> dict[str, Any] | None:
        a, b, parts = sides
        stamp = f"{self._state()} {_stamp(a)} {_stamp(b)}"
        return self._making.get(repr((a.id, b.id, parts)), stamp, "comparison", a.folder, b.folder, parts)

    def close(self) -> None:
        """End what is being made."""
        self._making.close()


def _stamp(run: ListedRun) -> str:
    """What changes when what a finished run says does; of another one whether it has become one."""
    if not (stamp := run.stamp()):
        return ""
    try:
        record = (run.folder / META).stat()
    except OSError:  # the run is gone
        return ""
    return f"{stamp} {record.st_mtime_ns} {record.st_size}"
