"""What can be asked of an index of episodes, as SQL with bound values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.errors import DataError, near

from ._rows import COLUMNS, plain

AS_TEXT: Final = (
    "CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(value AS TEXT) END"
)
"""A label's value as text, of a row of `json_each(labels)`."""
OUTCOMES: Final = {
    "solved": "finished AND error IS NULL AND value = 1",
    "unsolved": "finished AND error IS NULL AND value >= 0 AND value < 1",
    "unscored": "finished AND error IS NULL AND (value IS NULL OR value < 0 OR value > 1)",
    "failed": "error IS NOT NULL",
    "unfinished": "NOT finished",
}
"""Every episode is in one of these. `unscored`: no number from 0 to 1 says how well it went."""
FILTERS: Final = {**OUTCOMES, "finished": "finished", "limited": "limited"}
_NUMBER: Final = (
    "(SELECT CASE type WHEN 'array' THEN json_extract(value, '$[0]') * 1.0 / json_extract(value, '$[1]')"
    " ELSE value END FROM json_each(numbers) WHERE key = ?)"
)
_LABEL: Final = "(SELECT value FROM json_each(labels) WHERE key = ?)"


@dataclass(frozen=True)
class EpisodeQuery:
    """Which episodes, in which order.

    Attributes:
        offset, limit: the page; at most 200 episodes.
        sort: a column, `labels.NAME` or `numbers.NAME`; empty: the order of the plan.
        descending: the other way round. What has no value comes last either way.
        outcome: one of `FILTERS`; empty: all.
        condition: an id; None: all.
        labels: label → value as text.
        search: found in id, labels, answers or error, whatever its case.
    """

    offset: int = 0
    limit: int = 50
    sort: str = ""
    descending: bool = False
    outcome: str = ""
    condition: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    search: str = ""

    def where(self) -> tuple[str, list[Any]]:
        """A WHERE clause (or nothing) and its values. Raises `DataError` for an outcome that does not exist."""
        tests: list[str] = []
        values: list[Any] = []
        if self.outcome:
            if self.outcome not in FILTERS:
                raise DataError(f"no outcome {self.outcome!r:.80}", hint=near(self.outcome[:80], FILTERS))
            tests.append(f"({FILTERS[self.outcome]})")
        if self.condition is not None:
            tests.append("condition = ?")
            values.append(plain(self.condition))
        for name, value in self.labels.items():
            tests.append(f"EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND {AS_TEXT} = ?)")
            values += [plain(name), plain(value)]
        if self.search:
            tests.append("n IN (SELECT n FROM details WHERE instr(search, ?))")
            values.append(plain(self.search.casefold()))
        return (f" WHERE {' AND '.join(tests)}" if tests else ""), values

    def order(self) -> tuple[str, list[Any]]:
        """What follows ORDER BY, and its values. Raises `DataError` for a column that does not exist."""
        way = "DESC" if self.descending else "ASC"
        kind, dot, name = self.sort.partition(".")
        if dot and kind in ("labels", "numbers"):
            by, values = (_LABEL if kind == "labels" else _NUMBER), [plain(name)]
        elif self.sort in COLUMNS:
            by, values = f'"{self.sort}"', []
        elif not self.sort:
            return f"position {way}, n {way}", []
        else:
            raise DataError(f"no column {self.sort!r:.80}", hint=near(self.sort[:80], COLUMNS))
        return f"{by} {way} NULLS LAST, position, n", values
