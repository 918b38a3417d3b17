"""One process at a time on a results folder, and on a worker's journal in it, by locks that no crash leaves behind."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from harness.api.errors import DataError

from .files import no_link

LOCK = ".lock"
_held: dict[Path, int] = {}
"""Lock file → the process that holds it, of this process and those it was forked from. Such a file must not be opened
a second time: closing it would release the lock."""


class Lock:
    """Holds a results folder for one process, or what else in it `name` stands for.

    The system releases the lock with the process, however it dies; its children do not inherit it. The file names the
    holder, for messages. On a disk without locks that name alone keeps others out, until you remove it.

    Raises:
        DataError: another process holds the folder.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        self._path = folder.resolve() / name
        self._file = -1
        if (process := _held.get(self._path)) == os.getpid():
            raise self._refusal({"pid": process, "host": socket.gethostname()})
        file = no_link(self._path, os.O_RDWR | os.O_CREAT)
        try:
            is_free, holder = try_lock(file), _read(file)
            if is_free is False or (is_free is None and holder):
                raise self._refusal(holder)
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode(), 0)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        _held[self._path] = os.getpid()

    def release(self) -> None:
        """Release the lock. Does nothing the second time."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a full disk, a mount that is gone
                os.ftruncate(self._file, 0)
            os.close(self._file)  # which releases the lock
            self._file = -1
            _held.pop(self._path, None)

    def _refusal(self, holder: dict[str, Any]) -> DataError:
        process = f" (process {holder['pid']} on {holder.get('host')})" if "pid" in holder else ""
        return DataError(
            f"another process is writing {self._path.parent}{process}",
            hint=f"Wait for it, or choose another --output_path. If it is surely over: rm {self._path}",
        )


def holder(path: Path) -> dict[str, Any] | None:
    """The living process that holds a lock: `host` and `pid`, or {} if its file does not say. None: there is none.

    If the file system has no locks, None. Linux reports the holder of a lock; on other systems this function takes the
    lock for a moment, in which a run that begins would find the folder locked.
    """
    path = path.parent.resolve() / path.name
    if _held.get(path) == os.getpid():
        return {"host": socket.gethostname(), "pid": os.getpid()}
    with contextlib.suppress(FileNotFoundError):
        file = no_link(path, os.O_RDWR)
        try:
            return _read(file) if _is_held(file) else None
        finally:
            os.close(file)
    return None


def _is_held(file: int) -> bool:
    """Whether another process holds the lock."""
    if sys.platform != "linux":
        return try_lock(file) is False
    import fcntl

    # struct flock: l_type, l_whence, l_start, l_len, l_pid (fcntl(2)); the answer names a lock that is in the way.
    asked = struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        answer = fcntl.fcntl(file, fcntl.F_GETLK, asked)
    except OSError:
        return False
    return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)


def try_lock(file: int) -> bool | None:
    """Whether the lock was free, and is this process's now; None if the system or the disk knows no locks."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


def _read(file: int) -> dict[str, Any]:
    try:
        note = json.loads(os.pread(file, 4096, 0))
    except (ValueError, OSError):
        return {}
    return note if isinstance(note, dict) else {}
