"""One lock file a worker: as long as somebody holds it, the worker's journal may still grow.

The system lets go of a lock when its process dies, however it dies. So what a lost worker recorded is read, and its
episodes are given to another one, only when it can write nothing more: also where the cluster had merely lost sight
of it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path
from typing import IO

from harness.errors import StorageError

PATIENCE = 30.0
"""Seconds to wait for a worker to be gone. Ray ends the workers of a dead driver within a few."""
_NAME = ".lock-"


def path_of(folder: Path, worker: int) -> Path:
    """The lock file of a worker."""
    return folder / f"{_NAME}{worker}"


def hold(folder: Path, worker: int) -> IO[str]:
    """Hold a worker's lock, with its machine and process written in it, until the file is closed.

    Where the file system has no locks nothing is locked. Raises `StorageError`.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(path_of(folder, worker).open("a"))
            if not _lock(file):
                raise StorageError(f"another process is worker {worker} of {folder}")
            file.truncate(0)
            print(_machine(), os.getpid(), sep="\t", file=file, flush=True)
        except OSError as error:
            raise StorageError(f"cannot write to {folder}: {error.strerror or error}") from None
        stack.pop_all()
    return file


def wait(lock: Path, patience: float = PATIENCE) -> None:
    """Wait until nobody holds a lock. Raises `StorageError` when somebody still does after `patience` seconds."""
    until = time.monotonic() + patience
    while not _free(lock):
        machine, _, process = lock.read_text("utf-8").strip().rpartition("\t")
        if machine == _machine() and not Path(f"/proc/{process}").exists() and Path("/proc/self").exists():
            return  # only children of it are left, with its files open; they know nothing of the journal
        if time.monotonic() > until:
            host = machine.split(" ")[0]
            raise StorageError(
                f"process {process} on {host}, a worker of this run or an earlier one, still writes its journal",
                hint="End it, then give the same command again.",
            )
        time.sleep(0.05)


def clear(folder: Path) -> None:
    """Wait for all workers of an earlier run in this folder to be gone, and take their locks away."""
    for lock in folder.glob(f"{_NAME}*"):
        wait(lock)
        lock.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Take away the locks that nobody holds."""
    for lock in folder.glob(f"{_NAME}*"):
        if _free(lock):
            lock.unlink(missing_ok=True)


def _free(lock: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), lock.open("r+") as file:
        return _lock(file)
    return True


def _machine() -> str:
    """This machine, and within it the container: processes of different ones do not see each other's numbers."""
    try:
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def _lock(file: IO[str]) -> bool:
    """Take the lock unless somebody has it; closing the file gives it back."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # no such locks on this system or file system: go on without
        return True
    return True
