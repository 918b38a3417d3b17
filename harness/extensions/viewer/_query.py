"""What can be asked of an index of episodes, as SQL with bound values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.api.errors import DataError, near

from ._rows import COLUMNS, plain

AS_TEXT: Final = (
    "CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(value AS TEXT) END"
)
"""A label's value as text, of a row of `json_each(labels)`."""
OUTCOMES: Final = {
    "solved": "finished AND error IS NULL AND value = 1",
    "partly solved": "finished AND error IS NULL AND value > 0 AND value < 1",
    "unsolved": "finished AND error IS NULL AND value = 0",
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
        if not self.sort:
            return f"position {way}, n {way}", []
        by, values = self._key()
        return f"{by} {way} NULLS LAST, position, n", values

    def neighbors(self, name: str) -> tuple[str, list[Any]]:
        """A SELECT of the ids before and after an episode, which need not match itself, and its values.

        In the order of the plan it reads the episodes in between. No other order has an index: all that match are read
        once. Raises `DataError` as `where` and `order`.
        """
        where, values = self.where()
        if self.sort:
            by, of = self._key()
            here = f"here AS MATERIALIZED (SELECT {by} AS key, position, n FROM episodes WHERE id = ?)"
            others = f"others AS MATERIALIZED (SELECT id, {by} AS key, position, n FROM episodes{where})"
            ask = f"WITH {here}, {others} SELECT ({self._beside(after=False)}), ({self._beside(after=True)})"
            return ask, [*of, plain(name), *of, *values]
        (less, down), (more, up) = ("<", "DESC"), (">", "ASC")
        if self.descending:
            (less, down), (more, up) = (more, up), (less, down)
        place = f"{f'{where} AND' if where else ' WHERE'} (position, n)"
        here = "(SELECT position, n FROM episodes WHERE id = ?)"
        before = f"SELECT id FROM episodes{place} {less} {here} ORDER BY position {down}, n {down} LIMIT 1"
        after = f"SELECT id FROM episodes{place} {more} {here} ORDER BY position {up}, n {up} LIMIT 1"
        return f"SELECT ({before}), ({after})", [*values, plain(name)] * 2

    def _beside(self, *, after: bool) -> str:
        """The nearest of `others` before or after `here`, with the order of `order` in words that WHERE knows."""
        key, place = "(SELECT key FROM here)", "(SELECT position, n FROM here)"
        sign, way = (">", "ASC") if after is not self.descending else ("<", "DESC")
        if after:
            none, tie = f"key IS NULL AND {key} IS NOT NULL", f"(position, n) > {place}"
            order = f"key {way} NULLS LAST, position, n"
        else:
            none, tie = f"key IS NOT NULL AND {key} IS NULL", f"(position, n) < {place}"
            order = f"key {way} NULLS FIRST, position DESC, n DESC"
        tests = f"key {sign} {key} OR {none} OR (key IS {key} AND {tie})"
        return f"SELECT id FROM others WHERE {tests} ORDER BY {order} LIMIT 1"

    def _key(self) -> tuple[str, list[Any]]:
        """What episodes are sorted by, and its values. Raises `DataError` for a column that does not exist."""
        kind, dot, name = self.sort.partition(".")
        if dot and kind in ("labels", "numbers"):
            return (_LABEL if kind == "labels" else _NUMBER), [plain(name)]
        if self.sort not in COLUMNS:
            raise DataError(f"no column {self.sort!r:.80}", hint=near(self.sort[:80], COLUMNS))
        return f'"{self.sort}"', []
