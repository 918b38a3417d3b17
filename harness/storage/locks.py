"""One process at a time on a results folder, and on a worker's journal in it, by locks that no crash leaves behind."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.storage.files import no_link

LOCK = ".lock"


class Lock:
    """Holds a results folder for one process, or what else in it `name` stands for.

    The system's own file lock is freed with the process, however it dies. What it leaves open is seen to by a note in
    the file that says who holds it: children of a killed process may still have the lock (its engine's workers, say),
    and some network disks know no locks. A holder of this machine that lives no more is then passed over.

    Raises:
        DataError: another process holds the folder.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        self._path = folder / name
        self._file = -1
        with _alone(folder):
            file = no_link(self._path, os.O_RDWR | os.O_CREAT)
            try:
                free, holder = _lock(file), _read(file)
                if free is not True and _lives(holder, certain=free is False):
                    raise DataError(
                        f"another process is writing {folder}{_named(holder)}",
                        hint=f"Wait for it, or choose another --output_path. If it is surely over: rm {self._path}",
                    )
                if free is False:  # children of the dead holder have the file open: a new one takes its place
                    self._path.unlink()
                    os.close(file)
                    file = no_link(self._path, os.O_RDWR | os.O_CREAT)
                    _lock(file)
                _write(file, {"host": _host(), "pid": os.getpid(), "began": _began(os.getpid())})
            except BaseException:
                os.close(file)
                raise
        self._file = file

    def release(self) -> None:
        """Let go."""
        if self._file >= 0:
            with contextlib.suppress(OSError):  # a full disk, a mount that is gone
                _write(self._file, {})
                _unlock(self._file)  # closing is not enough where a child has the file open too
            os.close(self._file)
            self._file = -1


def holder(path: Path) -> dict[str, Any] | None:
    """Who has a lock: `host` and `pid`, or {} where its file does not say. None: nobody who lives.

    Where there are no locks only a process of this machine can be seen; others are taken for gone.
    """
    with contextlib.suppress(FileNotFoundError), _alone(path.parent):
        file = no_link(path, os.O_RDWR)
        try:
            free, found = _lock(file), _read(file)
        finally:
            os.close(file)
        if free is False or (free is None and found.get("host") == _host()):
            return found if _lives(found, certain=free is False) else None
    return None


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While the lock's file is looked at nobody else does so. Where folders cannot be locked, one has to be lucky."""
    seen = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(seen, fcntl.LOCK_EX)
        yield
    finally:
        os.close(seen)


def _lock(file: int) -> bool | None:
    """Whether the lock could be had; None where there is none to be had."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _unlock(file: int) -> None:
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def _host() -> str:
    """This machine, and within it the container: processes of different ones do not see each other's numbers."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def _lives(holder: dict[str, Any], certain: bool) -> bool:
    """Whether who stands in the file is still there; `certain`: somebody has the lock, only not who."""
    if not holder:
        return certain
    if holder.get("host") != _host():
        return True  # nobody here can tell
    return _began(holder.get("pid")) == holder.get("began")


def _began(pid: Any) -> str | None:
    """When a process of this machine began, which tells it from a later one of the same number; None: it is dead."""
    if not isinstance(pid, int) or pid <= 0:
        return None
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if state in "ZX" else fields[18]  # dead, and nobody has looked after it
    except (OSError, ValueError, IndexError):
        pass  # no such process, or no /proc
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # somebody else's
        pass
    return "runs"


def _read(file: int) -> dict[str, Any]:
    try:
        found = json.loads(os.pread(file, 4096, 0))
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: int, holder: dict[str, Any]) -> None:
    data = json.dumps(holder).encode() if holder else b""
    os.ftruncate(file, 0)
    os.pwrite(file, data, 0)


def _named(holder: dict[str, Any]) -> str:
    return f" (process {holder['pid']} on {holder.get('host')})" if "pid" in holder else ""
