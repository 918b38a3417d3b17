"""An index of a run's journals: which episodes there are, how each went, and where its lines stand.

It is made in one streaming pass, continues from where it stopped when the journals have grown, and starts over where
they are others. It is kept in a temporary file that has no name and ends with the viewer, so nobody else can change it.

A damaged line is noted with its place; all others stay readable.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sqlite3
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from harness.api.errors import DataError
from harness.api.run_files import SCORES
from harness.storage.files import json_object, no_link
from harness.storage.inner_calls import DROPPED, INNER
from harness.storage.journal import Line, journals
from harness.storage.pending_failures import PendingFailures
from harness.tables.cost import Prices

from ._journal_lines import FILES, MAX_LINE_BYTES, as_data_error, checks, lines_at, reason, sealed_line, stamp
from ._query import AS_TEXT, FILTERS, OUTCOMES, EpisodeQuery
from ._rows import COLUMNS, EpisodeRow, Goal, measured, plain, row_of
from ._search import matching_lines, snippet

__all__ = [
    "FILTERS",
    "OUTCOMES",
    "ClosedIndexError",
    "Damage",
    "EpisodeQuery",
    "Goal",
    "IndexedEpisode",
    "RunIndex",
    "SearchHit",
    "lines_at",
]
_FLUSH = 2000  # finished episodes that are written at once
_MAX_OPEN_EPISODES = 20_000  # episodes in memory
_MAX_NOTED_LINES = 100  # damaged lines that are kept
_LISTED = ", ".join(f'"{name}"' for name in COLUMNS)
_SCHEMA = f"""
PRAGMA synchronous = OFF;
PRAGMA journal_mode = MEMORY;
PRAGMA cache_size = -32000;
CREATE TABLE episodes ({", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())});
CREATE INDEX in_order ON episodes (position, n);
CREATE TABLE details (n INTEGER PRIMARY KEY, search TEXT, places BLOB, ending INTEGER, inner TEXT);
"""


class ClosedIndexError(DataError):
    """An index was closed."""


class OnProgress(Protocol):
    """Called with the bytes that are read and those there are."""

    def __call__(self, done: int, of: int) -> None:
        """Show it."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A line that cannot be read: file, line number from 1, and why."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class IndexedEpisode:
    """What the index knows about one episode.

    Attributes:
        row: its columns and `outcome`, as in `RunIndex.page`.
        places: of its moves, for `RunIndex.lines`.
        ending: place of its end; None while it is unfinished.
        inner: places of its inner calls, as JSON: agent → index of its turn → places.
        journals: number → name of the journals that places are in.
        previous, next: ids of the neighbors in the list that was asked for.
    """

    row: dict[str, Any]
    places: array[int]
    ending: int | None
    inner: str
    journals: Mapping[int, str]
    previous: str | None
    next: str | None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A turn in which something was said: episode, number of the turn in it from 0, agent, what is around it."""

    episode: str
    turn: int
    agent: str
    snippet: str


@dataclass(slots=True)
class _Journal:
    """What was read of a journal: bytes, lines, checksums to know it again, failures that may not count."""

    name: str
    size: int = 0
    lines: int = 0
    checks: tuple[int, int] = (0, 0)
    pending: PendingFailures = field(default_factory=PendingFailures)


class RunIndex:
    """The index of one run's folder. All methods may be called from any thread.

    Args:
        folder: the run's folder.
        goal: what says whether an episode was solved; None: the first of the usual names.
        prices: of models, by their own names.
    """

    def __init__(self, folder: Path, goal: Goal | None = None, prices: Prices = MappingProxyType({})) -> None:
        self.folder, self.goal, self.prices = folder, goal, prices
        self._lock = threading.RLock()
        self._is_closed = False
        # Without a name SQLite keeps it in a temporary file, which it deletes.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.executescript(_SCHEMA)
        self._start_over()

    def _start_over(self) -> None:
        """Forget all that was read."""
        self._db.execute("DELETE FROM episodes")
        self._db.execute("DELETE FROM details")
        self._journals: dict[int, _Journal] = {}
        self._damage: list[Damage] = []
        self._scores = ""  # which scores.jsonl was read
        self._rows: dict[str, EpisodeRow] = {}  # what has changed and is not yet in the file
        self._finished = self._last = 0  # of these rows, how many have ended; the number of the newest
        self._known: dict[str, list[Any]] = {}  # what was asked of all episodes

    def close(self) -> None:
        """Close the file; all that is asked after that raises `ClosedIndexError`."""
        with self._lock:
            self._is_closed = True
            self._db.close()

    @contextlib.contextmanager
    def _open_still(self) -> Iterator[None]:
        with self._lock, as_data_error(self.folder):
            if self._is_closed:
                raise ClosedIndexError(f"the index of {self.folder} was closed")
            yield

    # ------------------------------------------------------------------------------------------- reading journals

    def update(self, on_progress: OnProgress | None = None) -> bool:
        """Read what the journals hold beyond what is indexed; returns whether there was anything.

        Raises:
            DataError: the journals cannot be read.
        """
        with self._open_still():
            if not self._is_behind():
                return False
            try:
                if not self._same_journals():
                    self._start_over()
                self._known.clear()
                self._db.execute("BEGIN")
                for path in journals(self.folder):
                    if path.exists() and path.name not in self._names().values() and len(self._journals) < FILES:
                        self._journals[len(self._journals)] = _Journal(path.name)
                sizes = [(self.folder / journal.name).stat().st_size for journal in self._journals.values()]
                done = 0
                for (number, journal), size in zip(self._journals.items(), sizes, strict=True):
                    self._read(number, journal, functools.partial(on_progress or _ignore, of=sum(sizes)), done)
                    done += size
                self._flush()
                self._take_scores()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._start_over()
                raise
            return True

    def _is_behind(self) -> bool:
        known = {journal.name: journal.size for journal in self._journals.values()}
        return self._scores != stamp(self.folder / SCORES) or any(
            path.stat().st_size != known.get(path.name) for path in journals(self.folder) if path.exists()
        )

    def _same_journals(self) -> bool:
        """Whether the journals still begin with what was read of them."""
        for journal in self._journals.values():
            path = self.folder / journal.name
            if not path.exists() or path.stat().st_size < journal.size:
                return False
            with open(path, "rb", opener=no_link) as file:
                if checks(file, journal.size) != journal.checks:
                    return False
        return True

    def _read(self, number: int, journal: _Journal, on_bytes: Callable[[int], None], before: int) -> None:
        with open(self.folder / journal.name, "rb", opener=no_link) as file:
            file.seek(journal.size)
            for raw in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
                if not raw.endswith(b"\n") and len(raw) < MAX_LINE_BYTES:
                    break  # torn by a kill, or not yet whole
                journal.lines += raw.endswith(b"\n")
                try:
                    for at, line in journal.pending.add(sealed_line(raw), journal.size):
                        self._take(line, at * FILES + number)
                except (KeyError, TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
                    self._note(journal.name, max(journal.lines, 1), reason(error))
                journal.size += len(raw)
                if not journal.lines % 4096:
                    on_bytes(before + journal.size)
            journal.checks = checks(file, journal.size)
        on_bytes(before + journal.size)

    def _take(self, line: Line, place: int) -> None:
        kind = line.get("k")
        if kind not in ("move", "end", INNER, DROPPED):
            return
        row = self._row(line["e"])
        if kind == "move":
            row.add_move(line, place)
        elif kind != "end":
            row.add_inner(line, place)
        else:
            row.add_end(line, place, self.goal, self.prices)
            self._finished += 1
            if self._finished >= _FLUSH:
                self._flush(finished_only=True)
        if len(self._rows) > _MAX_OPEN_EPISODES:
            self._flush()

    def _row(self, name: str) -> EpisodeRow:
        row = self._rows.get(name)
        if row is None:
            name.encode()  # an id is text: lone surrogates are damage
            query = f"SELECT {_LISTED}, search, places, ending, inner FROM episodes JOIN details USING (n) WHERE id = ?"
            there = self._db.execute(query, (name,)).fetchone()
            self._last += not there
            row = EpisodeRow.read(there) if there else EpisodeRow(self._last, name)
            self._rows[name] = row
        return row

    def _flush(self, finished_only: bool = False) -> None:
        rows = [row for row in self._rows.values() if row.finished or not finished_only]
        marks = ", ".join("?" * len(COLUMNS))
        self._db.executemany(f"INSERT OR REPLACE INTO episodes VALUES ({marks})", [row.columns() for row in rows])
        self._db.executemany("INSERT OR REPLACE INTO details VALUES (?, ?, ?, ?, ?)", [row.details() for row in rows])
        for row in rows:
            del self._rows[row.name]
        self._finished = 0

    def _take_scores(self) -> None:
        """The numbers of a finished run: `harness score` may have measured again since; and the order of its plan."""
        path = self.folder / SCORES
        if (now := stamp(path)) == self._scores:
            return
        update = (
            "UPDATE episodes SET position = ?, labels = ?, numbers = ?, error = ?, limited = ?,"
            " value = coalesce(?, value), cost = ?, cost_is_whole = ? WHERE id = ?"
        )
        self._damage = [one for one in self._damage if one.file != path.name]
        with contextlib.suppress(FileNotFoundError), open(path, "rb", opener=no_link) as file:
            for count, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                try:
                    line = json_object(raw, path)
                    self._db.execute(update, (count, *measured(line, self.goal, self.prices), plain(line["id"])))
                except (DataError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
                    self._note(path.name, count, reason(error))
        self._scores = now

    def _note(self, file: str, line: int, message: str) -> None:
        if len(self._damage) < _MAX_NOTED_LINES:
            self._damage.append(Damage(file, line, message))

    # ------------------------------------------------------------------------------------------- asking

    @property
    def damage(self) -> list[Damage]:
        """Lines that cannot be read, the first ones of them."""
        with self._open_still():
            return list(self._damage)

    def counts(self) -> dict[str, int]:
        """How many episodes there are (`total`), and how they went."""
        sums = ", ".join(f"count(*) FILTER (WHERE {test})" for test in OUTCOMES.values())
        [row] = self._once(
            f"SELECT count(*), count(*) FILTER (WHERE finished), count(*) FILTER (WHERE limited), {sums} FROM episodes"
        )
        return dict(zip(("total", "finished", "limited", *OUTCOMES), row, strict=True))

    def totals(self) -> dict[str, float | None]:
        """Moves, calls, tokens, inner calls and USD, of all moves that count; None for what no engine reported. And
        `cost_is_whole`: 0 where something that was asked has no known cost."""
        names = ("moves", "calls", "input_tokens", "output_tokens", "inner_calls", "cost")
        whole = "min(coalesce(cost_is_whole, calls + coalesce(inner_calls, 0) = 0))"
        [row] = self._once(f"SELECT {', '.join(f'sum({name})' for name in names)}, {whole} FROM episodes")
        return dict(zip((*names, "cost_is_whole"), row, strict=True))

    def labels(self, most: int = 200) -> dict[str, list[str]]:
        """Label → its values as texts, at most `most` each, in the order of their first episodes."""
        values: dict[str, list[str]] = {}
        query = (
            f"SELECT key, {AS_TEXT} AS text, min(n) AS first FROM"
            " (SELECT labels, min(n) AS n FROM episodes GROUP BY labels), json_each(labels) GROUP BY key, text"
        )
        numbered = f"SELECT *, row_number() OVER (PARTITION BY key ORDER BY first) AS place FROM ({query})"
        for name, text in self._once(f"SELECT key, text FROM ({numbered}) WHERE place <= {int(most)} ORDER BY first"):
            values.setdefault(name, []).append(text)
        return values

    def metrics(self) -> list[str]:
        """The names of all numbers, in the order of the spec."""
        rows = self._once("SELECT numbers FROM episodes WHERE finished GROUP BY condition")
        with as_data_error(self.folder):
            return list(dict.fromkeys(name for (numbers,) in rows for name in json.loads(numbers)))

    def conditions(self) -> list[str]:
        """The conditions, in the order of the plan or of their first episodes."""
        return [c for (c,) in self._once("SELECT condition FROM episodes GROUP BY condition ORDER BY min(position)")]

    def page(self, query: EpisodeQuery) -> tuple[int, list[dict[str, Any]]]:
        """How many episodes match, and those of one page, as rows with the columns of the index and `outcome`.

        Raises:
            DataError: there is no such column or outcome.
        """
        where, values = query.where()
        [(total,)] = self._all(f"SELECT count(*) FROM episodes{where}", values)
        order, by = query.order()
        page = f"SELECT {_LISTED} FROM episodes{where} ORDER BY {order} LIMIT ? OFFSET ?"
        rows = self._all(page, (*values, *by, max(0, min(query.limit, 200)), max(0, min(query.offset, 1 << 40))))
        with as_data_error(self.folder):
            return total, [row_of(row) for row in rows]

    def episode(self, name: str, among: EpisodeQuery | None = None) -> IndexedEpisode | None:
        """One episode; None if the journals have no line of it.

        Args:
            name: its id.
            among: the list in which it has neighbors, whatever its page; None: all episodes in the order of the plan.

        Raises:
            DataError: as `page`.
        """
        query = f"SELECT {_LISTED}, places, ending, inner FROM episodes JOIN details USING (n) WHERE id = ?"
        for *values, places, ending, inner in self._all(query, (plain(name),)):
            [(before, after)] = self._all(*(among or EpisodeQuery()).neighbors(name))
            with as_data_error(self.folder):
                own = array("Q", places), ending, inner, self._names()
                return IndexedEpisode(row_of(values), *own, before, after)
        return None

    def places(self, name: str) -> array[int]:
        """Places of an episode's moves; none if there is no such episode."""
        found = self._all("SELECT places FROM episodes JOIN details USING (n) WHERE id = ?", (plain(name),))
        with as_data_error(self.folder):
            return array("Q", found[0][0] if found else b"")

    def lines(self, places: Iterable[int]) -> Iterator[Line]:
        """The lines at these places. Raises `DataError` if one is not as it was written."""
        return lines_at(self.folder, self._names(), places)

    def _names(self) -> dict[int, str]:
        return {number: journal.name for number, journal in self._journals.items()}

    def _once(self, query: str) -> list[Any]:
        """The rows of a query over all episodes, remembered until the index changes."""
        with self._open_still():
            if query not in self._known:
                self._known[query] = self._db.execute(query).fetchall()
            return list(self._known[query])

    def _all(self, query: str, values: Iterable[Any] = ()) -> list[Any]:
        with self._open_still():
            return self._db.execute(query, tuple(values)).fetchall()

    def search(self, text: str, most: int = 50, seconds: float = 3.0) -> tuple[list[SearchHit], bool]:
        """Turns whose replies, reasoning or action hold `text`, in the journals' order; and whether that is all.

        Args:
            text: what to look for, whatever its case.
            most: at most this many turns.
            seconds: how long to look.
        """
        hits: list[SearchHit] = []
        until, numbers = time.monotonic() + seconds, _TurnNumbers(self)
        if not text:
            return hits, True
        for number, name in self._names().items():
            with as_data_error(self.folder):
                for match in matching_lines(self.folder / name, text, until):
                    if match is None or len(hits) >= most:
                        return hits, False
                    with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError, DataError):
                        line = sealed_line(match[1])
                        said = snippet([line.get("calls"), line.get("a")], text) if line["k"] == "move" else None
                        turn = None if said is None else numbers.of(line, match[0] * FILES + number)
                        if said is not None and turn is not None:
                            hits.append(SearchHit(line["e"], turn, line["s"], said))
        return hits, True


def _ignore(done: int, of: int) -> None:
    """Nothing is shown."""


class _TurnNumbers:
    """Numbers turns as they were played: by batch, then by place in it. Remembers the last episode."""

    def __init__(self, index: RunIndex) -> None:
        self._index, self._name = index, ""
        self._places: frozenset[int] = frozenset()
        self._batches: Counter[int] = Counter()

    def of(self, line: Line, place: int) -> int | None:
        """The turn's number from 0; None for a move that does not count."""
        if line["e"] != self._name:
            self._name, self._places = line["e"], frozenset(self._index.places(line["e"]))
            turns = {(move["b"], move["p"]) for move in self._index.lines(sorted(self._places))}
            self._batches = Counter(batch for batch, _ in turns)
        if place not in self._places:
            return None
        return sum(count for batch, count in self._batches.items() if batch < line["b"]) + int(line["p"])
