"""The file of an index: its tables, and whether a file that is there is one of ours and fits."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from harness.storage.files import no_link
from harness.storage.journal_lines import checks, file_name

from ._rows import COLUMNS

INDEX = "index.sqlite"
_VERSION = "2"
_SCHEMA = (
    "CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT)",
    "CREATE TABLE journals (file INTEGER PRIMARY KEY, name TEXT, size INTEGER, lines INTEGER, head INTEGER,"
    " tail INTEGER, pending TEXT)",
    "CREATE TABLE damage (file TEXT, line INTEGER, message TEXT)",
    "CREATE TABLE episodes (" + ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items()) + ")",
    "CREATE INDEX in_order ON episodes (position, n)",
    "CREATE TABLE details (n INTEGER PRIMARY KEY, search TEXT, places BLOB, ending INTEGER)",
)


def opened(folder: Path, key: str) -> sqlite3.Connection | None:
    """The index of a run's folder as it is, or an empty one; None where nothing can be written there.

    Args:
        folder: the run's folder.
        key: what else names the run.
    """
    path = folder / INDEX
    with contextlib.suppress(OSError, sqlite3.Error):
        if path.is_symlink():  # what it points to is not ours
            path.unlink()
        if path.is_file() and (there := _fitting(path, key)) is not None:
            return there
        path.unlink(missing_ok=True)
        os.close(no_link(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        return create(path, key)
    return None


def _fitting(path: Path, key: str) -> sqlite3.Connection | None:
    """The index that is there, if this module wrote it and for these journals.

    Its schema must be ours to the letter: a file from elsewhere could bring triggers along.
    """
    with contextlib.suppress(sqlite3.Error, OSError, ValueError, TypeError):
        db = _connect(path)
        try:
            written = [sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 50")]
            facts = dict(db.execute("SELECT key, value FROM facts")) if written == list(_SCHEMA) else {}
            if (facts.get("version"), facts.get("key")) == (_VERSION, key) and same_journals(path.parent, db):
                return db
        except BaseException:
            db.close()
            raise
        db.close()
    return None


def same_journals(folder: Path, db: sqlite3.Connection) -> bool:
    """Whether the journals still begin with what was read of them. Raises `OSError`."""
    for name, size, head, tail in db.execute("SELECT name, size, head, tail FROM journals"):
        path = folder / file_name(name)
        if not path.exists():
            return False
        with open(path, "rb", opener=no_link) as file:
            if os.fstat(file.fileno()).st_size < size or checks(file, size) != (head, tail):
                return False
    return True


def create(path: Path, key: str) -> sqlite3.Connection:
    """An empty index. Raises `sqlite3.Error`."""
    db = _connect(path)
    with db:
        for statement in _SCHEMA:
            db.execute(statement)
        db.executemany("INSERT INTO facts VALUES (?, ?)", [("version", _VERSION), ("key", key)])
    return db


def inode(path: Path) -> int:
    """What tells a file from another one under its name; -2 where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return -2


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    for pragma in ("trusted_schema = OFF", "synchronous = OFF", "cache_size = -32000", "temp_store = MEMORY"):
        db.execute(f"PRAGMA {pragma}")
    return db
