"""A response cache around an engine, in an SQLite file.

engine = Cache(Gate(engine), "answers.sqlite")
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.api import Completion, Engine, Facts, Request
from harness.api.errors import DataError, StorageError
from harness.engines.call_keys import EngineKeys
from harness.engines.gate import Wrapper
from harness.storage import completion_of, fields_of
from harness.storage.locks import Lock, try_lock


def check_path(path: Path) -> None:
    """Raise `DataError` where no cache can be: at a folder, or below a file."""
    above = next((one for one in path.absolute().parents if one.exists()), Path("/"))
    why = "it is a folder" if path.is_dir() else None if above.is_dir() else f"{above} is no folder"
    if why is not None:
        raise DataError(f"the response cache {path} cannot be opened: {why}", hint="Name a file, or a new one.")


class Cache(Wrapper):
    """Remembers answers across runs and processes. Identical calls in flight at the same time are made once.

    The key holds everything an answer depends on: the engine's description (model and revision among it, not its
    `incidental` fields), messages, sampling, constraint, and the seed derived for the call. So repeats, and agents that
    happen to ask the same, keep answers of their own; log-likelihoods, in which nothing is drawn, they share. Errors
    are not remembered.

    Elsewhere another model may have the same name, so the key holds the engine's `location` too. Where that is a list
    of places, an answer is kept for, and looked up at, every one of them: in what order they stand, and whether one is
    added, does not matter.

    Args:
        inner: answers what is not known: an engine, its gate, or another cache.
        path: the file.
        share: it is the cache of one run (`dedupe_calls`), which may continue elsewhere: the key holds no location. The
            seed of such a run's calls does not depend on the condition, so that equal questions of different conditions
            are one call, and each gets the answer with its tokens, as if it had asked alone.
    """

    def __init__(self, inner: Engine, path: str | Path, *, share: bool = False) -> None:
        super().__init__(inner)
        self.path, self.share = Path(path), share
        self.hits = self.misses = 0
        places = () if share else self.engine.location
        self._keys = EngineKeys(self.engine, location=not share, places=places)
        self._pending: dict[bytes, asyncio.Future[Completion]] = {}
        self._base: sqlite3.Connection | None = None
        self._lock: Lock | None = None
        self._failure: StorageError | None = None

    async def start(self) -> None:
        """Start the engine and open the file.

        Raises:
            DataError: if the file cannot be made or is not a cache, or another process uses it on a disk without locks.
        """
        await self.inner.start()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Autocommit with a write-ahead log: a write costs microseconds and other processes may read meanwhile.
            with tempfile.TemporaryFile(dir=self.path.parent) as file:
                has_locks = try_lock(file.fileno()) is not None
            if has_locks:
                self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            else:
                self._base = self._alone()
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID")
        except DataError:
            await self.close()
            raise
        except (OSError, sqlite3.Error) as error:
            await self.close()
            raise DataError(f"the response cache {self.path} cannot be opened: {error}") from error

    def _alone(self) -> sqlite3.Connection:
        """The file on a disk without locks, which one process needs none of. Raises `DataError` for a second one."""
        try:
            self._lock = Lock(self.path.parent, f"{self.path.name}.lock")
        except DataError as error:
            what = (
                f"another process uses the response cache {self.path}, and its disk has no locks, so that only one may"
            )
            hint = f"Wait for it, or put the cache on another disk. If it is surely over: rm {self.path}.lock"
            raise DataError(what, hint=hint) from error
        address = f"{self.path.resolve().as_uri()}?vfs=unix-none"
        base = sqlite3.connect(address, timeout=60, isolation_level=None, uri=True)
        base.execute("PRAGMA locking_mode=EXCLUSIVE")
        return base

    async def complete(self, request: Request) -> Completion:
        """Raises `StorageError` if the file can be read or written no more."""
        if self._failure is not None:
            raise self._failure
        keys = self._keys.of(request)
        while (pending := self._pending.get(keys[0])) is not None:
            try:
                answer = await asyncio.shield(pending)
            except asyncio.CancelledError:
                if not pending.cancelled():  # this call itself is cancelled, not the one that it waits for
                    raise
            else:
                self.hits += 1
                return answer
        rows = self._sql(f"SELECT answer FROM answers WHERE key IN ({', '.join('?' * len(keys))}) LIMIT 1", *keys)
        # What cannot be read (damage, another version's), or lacks tokens, is as good as nothing, and is written again.
        if rows and (cached := as_asked(self.engine, _read(rows[0][0]))) is not None:
            self.hits += 1
            return cached
        self.misses += 1
        pending = self._pending[keys[0]] = asyncio.get_running_loop().create_future()
        try:
            answer = await request.send(self.inner)
        except Exception as error:
            pending.set_exception(error)
            pending.exception()  # retrieved: perhaps no other call waits for it
            raise
        except BaseException:  # cancelled: the calls that wait ask again
            pending.cancel()
            raise
        finally:
            del self._pending[keys[0]]
        pending.set_result(answer)
        kept = fields_of(replace(answer, began=None))  # who finds it there asks nothing
        # An answer that is there can be recorded as a move: it is the next call that stops the run.
        with contextlib.suppress(StorageError):
            for key in keys:
                self._sql("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, json.dumps(kept))
        return answer

    async def close(self) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        await self.inner.close()

    def report(self) -> Facts:
        hits, misses = ("calls_shared", "calls_asked") if self.share else ("cache_hits", "cache_misses")
        return {**super().report(), hits: self.hits, misses: self.misses}

    def _sql(self, statement: str, *values: Any) -> list[Any]:
        assert self._base is not None, "start() first"
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            hint = "Make room, fix the file or use another one; then give the same command again."
            self._failure = StorageError(f"the response cache {self.path} fails: {error}", hint=hint)
            raise self._failure from error


def as_asked(engine: Engine, answer: Completion | None) -> Completion | None:
    """An answer that was kept, as this engine would give it: with the tokens that it is asked for, and no others. None
    if it lacks them."""
    if answer is None or answer.likelihoods is not None:
        return answer
    ids = engine.return_token_ids or engine.return_logprobs
    if ids and None in (answer.prompt_token_ids, answer.token_ids):
        return None
    if engine.return_logprobs and answer.logprobs is None:
        return None
    if not ids and answer.token_ids is not None:
        answer = replace(answer, prompt_token_ids=None, token_ids=None)
    return answer if engine.return_logprobs or answer.logprobs is None else replace(answer, logprobs=None)


def _read(answer: Any) -> Completion | None:
    try:
        return completion_of(json.loads(answer))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
