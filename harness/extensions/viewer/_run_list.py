"""The runs below a folder, and the state of each."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from harness.api.errors import DataError, UserError
from harness.api.run_files import META, SCORES, SPEC
from harness.config import yamls
from harness.config.user_prices import known_prices
from harness.extensions.viewer.run_index import ClosedIndexError, Goal, RunIndex
from harness.report.provenance import ended_early
from harness.runtime.run_schema import check_journals, read_meta, why_stopped
from harness.storage import SCHEMA, journals, read_json
from harness.storage.locks import LOCK, holder
from harness.storage.redaction import without_secrets
from harness.tables.cost import Prices

_MAX_DEPTH, _MAX_FOLDERS = 5, 20_000
_MAX_OPEN_INDEXES = 12  # indexes that are kept open
_MAX_JOURNAL_BYTES = 1 << 23  # bytes of journals that a list of runs reads
_COUNTED_STATUSES = ("running", "stopped", "finished")  # statuses of runs whose tokens a list shows
_MAX_SPEC_BYTES = 1 << 20
_MAX_TEXT_CHARS = 2000  # characters of a text in run.json
_MAX_WORD_CHARS = 40  # characters


class StillIndexingError(Exception):
    """The index of a run is being made; `progress` is the share that is done."""

    def __init__(self, progress: float) -> None:
        super().__init__(f"{progress:.0%} of the journal is read")
        self.progress = progress


class _Sums(NamedTuple):
    """Of a run's episodes, as far as they are known."""

    episodes: int | None = None
    tokens: int | None = None
    inner_calls: float | None = None
    cost: float | None = None
    cost_is_whole: bool | None = None


_NO_SUMS = _Sums()


class ListedRun:
    """One run's folder. All methods may be called from any thread.

    Args:
        id: the run's id in URLs.
        name: its folder, relative to the folder that is shown.
        folder: its folder.
        patience: seconds that `index` waits while the journal is being read.
    """

    def __init__(self, id: str, name: str, folder: Path, patience: float) -> None:
        self.id, self.name, self.folder, self._patience = id, name, folder, patience
        self._lock = threading.Lock()
        self._index: RunIndex | None = None
        self._files: dict[str, tuple[tuple[int, int, int], Any]] = {}
        self._of: tuple[Any, ...] = ()  # start and headline of the run that is indexed, and prices
        self._headline: tuple[str, Goal | None, dict[str, str], Any] = (
            "",
            None,
            {},
            None,
        )  # of which text of spec.yaml
        self._work: threading.Thread | None = None
        self._failure: Exception | None = None
        self._progress = (0, 1)
        self._counts: tuple[Any, _Sums] = (None, _NO_SUMS)  # of which state of the journals

    @property
    def meta(self) -> dict[str, Any]:
        """run.json. Raises `DataError`."""
        meta: dict[str, Any] = self._of_file(META, read_meta)
        return meta

    def _of_file(self, name: str, read: Callable[[Path], Any]) -> Any:
        """What `read` makes of a file, remembered until the file changes."""
        path = self.folder / name
        try:
            there = path.stat()
        except OSError:
            return read(path)
        stamp = (there.st_mtime_ns, there.st_size, there.st_ino)
        if self._files.get(name, (None, None))[0] != stamp:
            self._files[name] = stamp, read(path)
        return self._files[name][1]

    def standing(self) -> tuple[str, str | None, dict[str, Any]]:
        """(status, problem, run.json as far as it can be read)."""
        try:
            meta = self.meta
            check_journals(meta, self.folder)
        except (DataError, OSError, AttributeError, TypeError, ValueError) as error:  # of a record of a strange shape
            try:
                there = read_json(self.folder / META)
            except DataError:
                return "damaged", str(error), {}
            known = isinstance(there.get("schema"), int) and there["schema"] != SCHEMA
            return ("other version" if known else "damaged"), str(error), there
        status = str(meta.get("status"))
        if status == "running" and not self._is_held():
            return "stopped", "its process is gone: the same eval command resumes it", meta
        if (enough := ended_early(meta)) is not None:
            return "finished", enough, meta  # with tables, which say so too
        if status == "stopped" and isinstance(meta.get("stopped"), dict):
            return status, f"{why_stopped(meta)}; the same eval command resumes it", meta
        if (index := self._index) is not None and self._work is None:
            with contextlib.suppress(DataError):
                if damage := index.damage:
                    more = f" ({len(damage)} such lines)" if len(damage) > 1 else ""
                    return "damaged", f"{damage[0]}{more}; all other lines are shown", meta
        return (status if status in ("finished", "running") else "stopped"), None, meta

    def _is_held(self) -> bool:
        try:
            return holder(self.folder / LOCK) is not None
        except OSError:
            return True  # of someone else, and not for us to open: run.json says that it runs

    def index(self) -> RunIndex:
        """The run's index with all that the journals hold now.

        Raises:
            StillIndexingError: reading takes longer than a request should wait.
            DataError: the journals cannot be read; `ClosedIndexError` if the index was closed meanwhile: ask again.
        """
        with self._lock:
            if self._work is None:
                self._failure = None
                self._work = threading.Thread(target=self._update, name=f"index {self.name}", daemon=True)
                self._work.start()
            work = self._work
        work.join(self._patience)
        if work.is_alive():
            done, of = self._progress
            raise StillIndexingError(done / max(of, 1))
        if self._failure is not None:
            raise self._failure
        if (index := self._index) is None:
            raise ClosedIndexError(f"the index of {self.folder} was closed")
        return index

    def _update(self) -> None:
        try:
            of = (str(self.meta.get("start")), self._goal(), self.prices())
            if self._index is not None and self._of != of:  # replaced by another run, or another headline
                self._index.close()
                self._index = None
            if self._index is None:
                self._index, self._of = RunIndex(self.folder, of[1], of[2]), of
            self._index.update(self._on_progress)
        except Exception as error:
            self._failure = error
        finally:
            with self._lock:
                self._work = None

    def _goal(self) -> Goal | None:
        """The spec's headline."""
        return self._of_spec()[1]

    def words(self) -> dict[str, str]:
        """What the spec calls episodes that are `solved` or `unsolved`; empty if it does not say."""
        return self._of_spec()[2]

    def prices(self) -> Prices:
        """Model, by its own name → price: the spec's, and the user's."""
        entry = self._of_spec()[3]
        try:
            return known_prices(entry)
        except (UserError, KeyError, TypeError, AttributeError):  # eval says what is wrong with them
            return {}

    def _of_spec(self) -> tuple[str, Goal | None, dict[str, str], Any]:
        if (text := self.spec()) != self._headline[0]:
            headline = _mapping_of(text, "headline")
            self._headline = text, _goal_of(headline), _words_of(headline), _mapping_of(text, "prices")
        return self._headline

    def _on_progress(self, done: int, of: int) -> None:
        self._progress = done, of

    def close(self) -> None:
        """Close the index, unless it is being made."""
        with self._lock:
            if self._work is None and self._index is not None:
                self._index.close()
                self._index = None

    def line(self, may_read: bool = True) -> dict[str, Any]:
        """The run in a list of runs. `may_read`: whether its journals may be read for that, if they are small."""
        status, problem, meta = self.standing()
        stopped = meta["stopped"] if isinstance(meta.get("stopped"), dict) else {}
        counted, sums = stopped.get("episodes"), _NO_SUMS
        try:
            sums = self._counted(status, counted, may_read)
            counted = sums.episodes
        except OSError as error:
            problem = problem or f"cannot read {Path(str(error.filename)).name}: {error.strerror}"
        except DataError as error:
            problem = problem or error.message
        planned = counted if status == "finished" else meta.get("planned", stopped.get("of"))
        return {
            "id": self.id,
            "name": self.name,
            "spec": meta.get("spec"),
            "model": meta.get("model"),
            "status": status,
            "problem": problem,
            "episodes": counted,
            "of": planned,
            "start": meta.get("start"),
            "end": meta.get("end"),
            "duration": _duration(meta, status),
            **{name: getattr(sums, name) for name in _Sums._fields[1:]},
        }

    def _counted(self, status: str, recorded: int | None, may_read: bool) -> _Sums:
        """As far as they are known without reading much; `recorded`: episodes by run.json."""
        index = self._index if self._work is None else None
        if index is None and status in _COUNTED_STATUSES and (state := self._small()) is not None:
            if self._counts[0] != state and (may_read or status != "finished"):
                with contextlib.suppress(ClosedIndexError, StillIndexingError):
                    self._counts = state, _sums(self.index())
            if self._counts[0] == state or status != "finished":
                return self._counts[1]
        if index is not None:
            with contextlib.suppress(ClosedIndexError):
                return _sums(index)
        scores = self.folder / SCORES
        if status == "finished" and scores.is_file() and not scores.is_symlink():
            return _NO_SUMS._replace(episodes=self._of_file(SCORES, _lines_in))
        return _NO_SUMS._replace(episodes=recorded)

    def _small(self) -> tuple[Any, ...] | None:
        """What changes when journals do, if they are small."""
        there = [path.stat() for path in journals(self.folder) if path.is_file()]
        state = [(file.st_ino, file.st_size, file.st_mtime_ns) for file in there]
        return (
            None if sum(file.st_size for file in there) > _MAX_JOURNAL_BYTES else (str(self.meta.get("start")), *state)
        )

    def spec(self) -> str:
        """The text of spec.yaml, empty if there is none."""
        path = self.folder / SPEC
        if path.is_symlink() or not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(_MAX_SPEC_BYTES).decode("utf-8", "replace")

    def parent(self) -> Path | None:
        """The folder of the run that this one plays again, as its spec says; None for other runs."""
        text = self.spec()
        if "\nreplay:" not in f"\n{text}":
            return None
        try:
            spec = yamls.parse(text, SPEC).data
        except UserError:
            return None
        entry = spec.get("replay") if isinstance(spec, dict) else None
        there = entry.get("run") if isinstance(entry, dict) else None
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            return (self.folder / there).resolve() if isinstance(there, str) else None
        return None

    def public_meta(self) -> dict[str, Any]:
        """run.json for the page: without what could be a key."""
        cleaned: dict[str, Any] = without_secrets(_cut(self.standing()[2]))
        return cleaned

    def stamp(self) -> str:
        """What changes when the run's tables may have changed."""
        parts = []
        for name in (SCORES, SPEC):
            path = self.folder / name
            if not path.is_file():
                return ""
            parts.append(f"{path.stat().st_mtime_ns} {path.stat().st_size}")
        return " ".join(parts)


class RunList:
    """All runs below a folder, which may be a run itself. Links are not followed.

    Args:
        root: the folder.
        patience: as in `ListedRun`.
    """

    def __init__(self, root: Path, patience: float = 1.5) -> None:
        self.root, self._patience = root.resolve(), patience
        self._lock = threading.Lock()
        self._runs: dict[str, ListedRun] = {}
        self._opened: OrderedDict[str, ListedRun] = OrderedDict()
        self._looked = float("-inf")

    def all(self) -> list[ListedRun]:
        """The runs there are now, by name."""
        with self._lock:
            there = {url_id(name): (name, folder) for name, folder in _folders(self.root)}
            for id in self._runs.keys() - there.keys():
                self._runs.pop(id).close()
                self._opened.pop(id, None)
            for id, (name, folder) in there.items():
                self._runs.setdefault(id, ListedRun(id, name, folder, self._patience))
            self._looked = time.monotonic()
            return sorted(self._runs.values(), key=lambda run: run.name)

    def get(self, id: str) -> ListedRun | None:
        """The run with an id; None if there is none."""
        if id not in self._runs and time.monotonic() - self._looked > 1:
            self.all()
        run = self._runs.get(id)
        if run is not None:
            with self._lock:
                self._opened[id] = run
                self._opened.move_to_end(id)
                if len(self._opened) > _MAX_OPEN_INDEXES:
                    self._opened.popitem(last=False)[1].close()
        return run

    def lines(self, runs: Iterable[ListedRun]) -> list[dict[str, Any]]:
        """`ListedRun.line` of each. Finished runs whose tokens are not known yet are read for `patience` seconds in
        all;
        the next list, for which pages ask every few seconds, has those of more."""
        late = time.monotonic() + self._patience
        return [self._line(run, time.monotonic() < late) for run in runs]

    def _line(self, run: ListedRun, may_read: bool) -> dict[str, Any]:
        """`ListedRun.line`, whatever the run's files hold; an index that only this needs is closed again."""
        try:
            return run.line(may_read)
        except Exception as error:  # no run hides all others
            problem = f"{type(error).__name__}: {error}"[:500]
            nothing = dict.fromkeys(("spec", "model", "of", "start", "end", "duration", *_Sums._fields))
            return {"id": run.id, "name": run.name, "status": "damaged", "problem": problem, **nothing}
        finally:
            if run.id not in self._opened:
                run.close()

    def close(self) -> None:
        """Close all indexes."""
        for run in list(self._runs.values()):
            run.close()


def _folders(root: Path) -> Iterator[tuple[str, Path]]:
    """(name, folder) of every run: folders with a run.json. What is in a run's folder is not another run."""
    left, looked = [(root, 0)], 0
    while left and looked < _MAX_FOLDERS:
        folder, depth = left.pop()
        looked += 1
        try:
            is_run = (folder / META).is_file() and not (folder / META).is_symlink()
        except OSError:  # of someone else, and not for us to open
            continue
        if is_run:
            relative = folder.relative_to(root).as_posix()
            yield (root.name if relative == "." else relative), folder
            continue
        if depth < _MAX_DEPTH:
            try:
                with os.scandir(folder) as entries:
                    below = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            left += [(path, depth + 1) for path in below if not path.name.startswith(".")]


def url_id(name: str) -> str:
    """The name as one segment of a URL; no two names give the same."""
    data = os.fsencode(name.replace("/", "\0"))
    return re.sub(rb"[^A-Za-z0-9._\0-]", lambda match: b"~%02x" % match[0][0], data).replace(b"\0", b":").decode()


def _mapping_of(text: str, key: str) -> dict[str, Any]:
    """A mapping of a spec; empty if it has none, or cannot be read."""
    try:
        spec = yamls.parse(text, SPEC).data
    except UserError:
        return {}
    found = spec.get(key) if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}


def _goal_of(headline: dict[str, Any]) -> Goal | None:
    cell = headline.get("metric")
    return Goal(cell, headline.get("better") != "lower") if isinstance(cell, str) else None


def _words_of(headline: dict[str, Any]) -> dict[str, str]:
    words = headline.get("words")
    if not isinstance(words, list) or len(words) != 2 or not all(isinstance(word, str) and word for word in words):
        return {}
    return {"solved": words[0][:_MAX_WORD_CHARS], "unsolved": words[1][:_MAX_WORD_CHARS]}


def _sums(index: RunIndex) -> _Sums:
    totals = index.totals()
    parts = [int(number) for name in ("input_tokens", "output_tokens") if (number := totals[name]) is not None]
    cost = totals["cost"]
    whole = None if cost is None else bool(totals["cost_is_whole"])
    return _Sums(index.counts()["finished"], sum(parts) if parts else None, totals["inner_calls"], cost, whole)


def _lines_in(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _cut(value: Any, depth: int = 0) -> Any:
    """The value with long texts cut: engines may have been given whole replies."""
    if isinstance(value, dict) and depth < 20:
        return {str(key)[:200]: _cut(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list) and depth < 20:
        return [_cut(item, depth + 1) for item in value[:1000]]
    if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
        return f"{value[:_MAX_TEXT_CHARS]}…"
    return value if isinstance(value, str | int | float | None) else "…"


def _duration(meta: dict[str, Any], status: str) -> float | None:
    """Seconds; of a run that is going those of its session so far come on top."""
    seconds = meta.get("duration")
    if not isinstance(seconds, int | float):
        return None
    if status == "running" and isinstance(meta.get("session_start"), str):
        try:
            seconds += max(0.0, time.time() - datetime.fromisoformat(meta["session_start"]).timestamp())
        except ValueError:
            return float(seconds)
    return float(seconds)
