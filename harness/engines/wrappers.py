"""Engines around an engine: a limit on requests in flight, a response cache, a recorder.

    engine = Limiter(Cache(OpenAI(model="m"), "answers.sqlite"), max_concurrency=64)

Each is an `Engine` itself and passes on what it does not change. None does work per call in proportion to a
conversation's history: what was seen of a thread is remembered in its `memo`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from itertools import count, product
from pathlib import Path
from typing import Any

from harness.api import Completion, Engine, Facts, Request, Thread
from harness.engines._priority import PriorityGate
from harness.errors import (
    DataError,
    EngineError,
    SetupError,
    StorageError,
)
from harness.storage import Journal


class Wrapper(Engine):
    """Passes everything on to `inner`; the base of the others."""

    def __init__(self, inner: Engine) -> None:
        self.inner = inner

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def incidental(self) -> frozenset[str]:  # type: ignore[override]
        return self.inner.incidental

    def log_to(self, path: Path) -> None:
        self.inner.log_to(path)

    async def start(self) -> None:
        await self.inner.start()

    async def complete(self, request: Request) -> Completion:
        return await self.inner.complete(request)

    def count_tokens(self, text: str) -> int | None:
        return self.inner.count_tokens(text)

    def halt(self, reason: Exception) -> None:
        self.inner.halt(reason)

    async def rest(self) -> bool:
        return await self.inner.rest()

    async def close(self) -> None:
        await self.inner.close()

    def report(self) -> Facts:
        return self.inner.report()

    def describe(self) -> Facts:
        return self.inner.describe()


class Limiter(Wrapper):
    """Lets at most `max_concurrency` requests be in flight; of those that wait the oldest conversation goes first."""

    def __init__(self, inner: Engine, max_concurrency: int) -> None:
        super().__init__(inner)
        if not (type(max_concurrency) is int and max_concurrency >= 1):
            raise SetupError(f"max_concurrency must be a whole number, at least 1, not {max_concurrency!r:.40}")
        self._line = PriorityGate(lambda flying: flying < max_concurrency)

    async def complete(self, request: Request) -> Completion:
        await self._line.enter(request.thread.age)
        try:
            return await self.inner.complete(request)
        finally:
            self._line.leave()


class Cache(Wrapper):
    """Remembers answers in an SQLite file, across runs and processes.

    The key holds everything an answer depends on: the engine's description (model and revision among it, not its
    `incidental` fields), messages, sampling, constraint, and the seed derived for the call. So repeats, and seats that
    happen to ask the same, keep answers of their own. Errors are not remembered.

    Elsewhere another model may have the same name, so the key holds the engine's `location` too. Where that is a list
    of places, an answer is kept for, and looked up at, every one of them: in what order they stand, and whether one is
    added, does not matter.
    """

    def __init__(self, inner: Engine, path: str | Path) -> None:
        super().__init__(inner)
        self.path = Path(path)
        self.hits = self.misses = 0
        self._base: sqlite3.Connection | None = None
        self._failure: StorageError | None = None

    async def start(self) -> None:
        """Start the engine and open the file.

        Raises:
            DataError: if the file cannot be made or is no cache.
        """
        await self.inner.start()
        self._places = self._identities()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Autocommit with a write-ahead log: a write costs microseconds and other processes may read meanwhile.
            self._base = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute("CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            await self.close()
            raise DataError(f"the response cache {self.path} cannot be opened: {error}") from error

    async def complete(self, request: Request) -> Completion:
        """Raises `StorageError` if the file can be read or written no more."""
        if self._failure is not None:
            raise self._failure
        keys = self._keys(request)
        rows = self._sql(f"SELECT answer FROM answers WHERE key IN ({', '.join('?' * len(keys))}) LIMIT 1", *keys)
        # What cannot be read (damage, another version's) is as good as nothing, and is written anew.
        if rows and (known := _read(rows[0][0])) is not None:
            self.hits += 1
            return known
        self.misses += 1
        answer = await self.inner.complete(request)
        # An answer that is there can be recorded as a move: it is the next call that stops the run.
        with contextlib.suppress(StorageError):
            for key in keys:
                self._sql("INSERT OR REPLACE INTO answers VALUES (?, ?)", key, json.dumps(_said(answer)))
        return answer

    async def close(self) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None
        await self.inner.close()

    def report(self) -> Facts:
        return {**self.inner.report(), "cache_hits": self.hits, "cache_misses": self.misses}

    def _sql(self, statement: str, *values: Any) -> list[Any]:
        assert self._base is not None, "start() first"
        try:
            return self._base.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            hint = "Make room, mend the file or take another one; then give the same command again."
            self._failure = StorageError(f"the response cache {self.path} fails: {error}", hint=hint)
            raise self._failure from error

    def _identities(self) -> list[bytes]:
        """What the engine is, at each of the places where it is."""
        engine = _innermost(self.inner)
        facts = {k: v for k, v in self.inner.describe().items() if k not in self.inner.incidental}
        facts = {"engine": type(engine).__qualname__, **facts}
        many = {name: facts[name] for name in engine.location if isinstance(facts.get(name), list | tuple)}
        return [
            _canonical({**facts, **dict(zip(many, places, strict=True))})
            for places in sorted(product(*many.values()), key=repr)
        ]

    def _keys(self, request: Request) -> list[bytes]:
        history = _history(request.thread)
        call = [request.sampling, request.constraint, request.seed]
        return [hashlib.sha256(history + _canonical([place, *call])).digest() for place in self._places]


class Shared(Cache):
    """A cache of one run, in which also calls that are in flight at the same time are asked once.

    With `share_calls` the seed of a call does not depend on the condition, so that equal questions of different
    conditions are one call. Every one of them is given its answer with its tokens, as if it had asked alone. A run may
    go on elsewhere, so the engine's `location` is no part of the key.
    """

    def __init__(self, inner: Engine, path: str | Path) -> None:
        super().__init__(inner, path)
        self._flying: dict[bytes, asyncio.Future[Completion]] = {}

    def _identities(self) -> list[bytes]:
        engine = _innermost(self.inner)
        left_out = engine.incidental | engine.location
        facts = {k: v for k, v in self.inner.describe().items() if k not in left_out}
        return [_canonical({"engine": type(engine).__qualname__, **facts})]

    async def complete(self, request: Request) -> Completion:
        [key] = self._keys(request)
        while (flying := self._flying.get(key)) is not None:
            try:
                answer = await asyncio.shield(flying)
            except asyncio.CancelledError:
                if not flying.cancelled():  # this call itself is cancelled, not the one that it waits for
                    raise
            else:
                self.hits += 1
                return answer
        asked = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            answer = await super().complete(request)
        except Exception as error:
            del self._flying[key]
            asked.set_exception(error)
            asked.exception()  # seen: nobody else may be waiting for it
            raise
        except BaseException:  # cancelled: who waits asks anew
            del self._flying[key]
            asked.cancel()
            raise
        del self._flying[key]
        asked.set_result(answer)
        return answer

    def report(self) -> Facts:
        return {**self.inner.report(), "calls_asked": self.misses, "calls_shared": self.hits}


class Recorder(Wrapper):
    """Appends every call to a JSONL file that the engine `replay` can answer from.

    A line holds `id`, `model`, `sampling`, `seed`, `thread` (a number), `start` (index of the first message given
    here), `messages` (those of the thread that no earlier line of it holds), and `completion`, or `error` and
    `error_kind`.
    """

    def __init__(self, inner: Engine, path: str | Path) -> None:
        super().__init__(inner)
        self.path = Path(path)
        self._threads = count()
        self._journal: Journal | None = None
        self._failure: StorageError | None = None  # that nobody was told yet

    async def start(self) -> None:
        """Start the engine and open the file for appending, without the torn line a crash may have left.

        Raises:
            StorageError: if the file cannot be written.
        """
        await self.inner.start()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(self.path, seal=False)
        except OSError as error:
            await self.close()
            raise StorageError(f"cannot write {self.path}: {error.strerror or error}") from None
        except StorageError:
            await self.close()
            raise

    async def complete(self, request: Request) -> Completion:
        """Raises `StorageError`, instead of asking, if the file can be written no more."""
        self._raise_failure()
        told = len(request.thread.messages)  # the thread may have grown by the time the answer is here
        try:
            answer = await self.inner.complete(request)
        except EngineError as error:
            self._write(request, told, {"error": str(error), "error_kind": error.kind})
            raise
        try:
            self._write(request, told, {"completion": _said(answer)})
        except StorageError as failure:  # an answer that is there can be recorded as a move
            self._failure = failure
        return answer

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    async def close(self) -> None:
        try:
            if self._journal is not None:
                journal, self._journal = self._journal, None
                journal.close()
            self._raise_failure()
        finally:
            await self.inner.close()

    def _write(self, request: Request, told: int, came: Mapping[str, Any]) -> None:
        assert self._journal is not None, "start() first"
        memo = request.thread.memo
        number, start = memo.get("recorder") or (next(self._threads), 0)
        memo["recorder"] = (number, told)
        line = {
            "id": request.id,
            "model": self.model,
            "sampling": dict(request.sampling),
            "seed": request.seed,
            "thread": number,
            "start": start,
            "messages": request.thread.messages[start:told],
            **came,
        }
        self._journal.append(line)


def _said(answer: Completion) -> dict[str, Any]:
    return {k: v for k, v in asdict(answer).items() if v is not None}


def _innermost(engine: Engine) -> Engine:
    while isinstance(engine, Wrapper):
        engine = engine.inner
    return engine


def _read(answer: Any) -> Completion | None:
    try:
        return Completion(**json.loads(answer))
    except (ValueError, TypeError, RecursionError):
        return None


def _canonical(value: Any) -> bytes:
    """The same bytes for equal JSON values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, default=repr).encode()


def _history(thread: Thread) -> bytes:
    """A digest of the thread's messages that only reads those added since it was last asked."""
    done, running = thread.memo.get("history") or (0, hashlib.sha256())
    if done < len(thread.messages):
        running = running.copy()
        for message in thread.messages[done:]:
            running.update(_canonical(message) + b"\n")
        thread.memo["history"] = (len(thread.messages), running)
    return running.digest()
