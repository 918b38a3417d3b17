"""One lock a worker: while a process holds it, the worker's journal may still grow.

The system releases a lock when its process dies, however it dies. So what a lost worker recorded is read, and its
episodes are assigned to another one, only when it can write nothing more: even if the cluster merely lost sight of
it.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from harness.api.errors import DataError, StorageError
from harness.storage.locks import LOCK, Lock, holder

WAIT_SECONDS = 30.0
"""Seconds to wait for workers to be gone. A cluster ends those of a dead driver within a few."""
_SILENT = 2.0
"""Seconds of waiting after which the log says so."""
_log = logging.getLogger(__name__)


def path_of(folder: Path, worker: int) -> Path:
    """The lock file of a worker."""
    return folder / f"{LOCK}-{worker}"


def hold(folder: Path, worker: int) -> Lock:
    """Hold a worker's lock until it is released. Raises `StorageError`."""
    try:
        return Lock(folder, path_of(folder, worker).name)
    except DataError:
        raise StorageError(f"another process is worker {worker} of {folder}") from None
    except OSError as error:
        raise StorageError(f"cannot write to {folder}: {error.strerror or error}") from None


def wait(*locks: Path, patience: float = WAIT_SECONDS, silent: float = _SILENT) -> None:
    """Wait until no process holds any of these locks.

    Args:
        locks: their files.
        patience: seconds to wait for all of them together.
        silent: seconds after which the log (standard error, if a program does nothing about it) names the process.

    Raises:
        StorageError: when a process still holds one, naming it.
    """
    start = time.monotonic()
    has_warned = False
    for lock in locks:
        while (process := holder(lock)) is not None:
            waited = time.monotonic() - start
            named = f"process {process.get('pid', '?')} on {str(process.get('host', 'some machine')).split(' ')[0]}"
            named += ", a worker of this run or an earlier one,"
            if waited > patience:
                raise StorageError(
                    f"{named} still writes its journal", hint="End it, then give the same command again."
                )
            if not has_warned and waited >= silent:
                has_warned = True
                _log.warning("waiting for %s to end: %g s at most", named, patience)
            time.sleep(0.05)


def clear(folder: Path) -> None:
    """Wait for all workers of an earlier run in this folder to be gone, and remove their locks."""
    wait(*folder.glob(f"{LOCK}-*"))
    sweep(folder)


def sweep(folder: Path) -> None:
    """Remove the locks that no process holds."""
    for lock in folder.glob(f"{LOCK}-*"):
        if holder(lock) is None:
            lock.unlink(missing_ok=True)
