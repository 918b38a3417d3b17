"""Locks of workers: nobody reads a journal that may still grow."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import storage
from harness.api.errors import StorageError
from harness.extensions.ray import worker_locks
from harness.storage import locks
from tests.helpers.toy import run

ROOT = Path(__file__).parents[3]


HOLDER = """
import os, sys
from pathlib import Path
from harness.storage.locks import Lock
lock = Lock(Path(sys.argv[1]), ".lock-3")
if len(sys.argv) == 2:
    print("held", flush=True)
elif os.fork():
    os._exit(0)
else:
    print(os.getpid(), flush=True)
sys.stdin.read()
"""


def holding(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A process that is worker 3; with `more` it dies at once and leaves a child with its files open."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), *more],
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline()
    return process


def test_a_worker_that_still_writes_is_waited_for_and_then_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = holding(tmp_path)
    lock = worker_locks.path_of(tmp_path, 3)
    with pytest.raises(StorageError, match=f"process {process.pid} on .* still writes its journal"):
        worker_locks.wait(lock, patience=0)
    assert not caplog.messages
    with pytest.raises(StorageError):
        worker_locks.wait(tmp_path / "none", lock, lock, patience=0.1, silent=0)
    assert len(caplog.messages) == 1 and f"waiting for process {process.pid} on" in caplog.messages[0]
    worker_locks.sweep(tmp_path)
    assert lock.exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    worker_locks.clear(tmp_path)
    assert not lock.exists()


def test_a_run_removes_locks_that_dead_workers_have_left(tmp_path: Path) -> None:
    (tmp_path / ".lock-3").write_text("{}")
    assert run(tmp_path).scores and not (tmp_path / ".lock-3").exists()


def test_a_run_does_not_begin_beside_a_worker_that_no_executor_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = holding(tmp_path)
    monkeypatch.setattr(
        "harness.evaluation.stages.loadable_classes", lambda point, base: {}
    )  # the extension is not installed
    with pytest.raises(StorageError, match="workers of an earlier run still write into"):
        run(tmp_path)
    process.kill()
    process.communicate()
    assert run(tmp_path).scores


def test_children_of_a_dead_worker_keep_no_process_waiting(tmp_path: Path) -> None:
    process = holding(tmp_path, "and a child")
    assert process.wait() == 0
    worker_locks.wait(worker_locks.path_of(tmp_path, 3), patience=0)
    lock = locks.Lock(tmp_path, ".lock-3")
    assert locks.holder(worker_locks.path_of(tmp_path, 3)) is not None
    lock.release()
    assert locks.holder(worker_locks.path_of(tmp_path, 3)) is None
    process.communicate()


def test_journals_of_several_workers_are_read_as_one(tmp_path: Path) -> None:
    for name in ("journal-10.jsonl", "journal-9.jsonl", "journal-x.jsonl", "journal.jsonl"):
        (tmp_path / name).write_text("")
    assert [p.name for p in storage.journals(tmp_path)] == [
        "journal.jsonl",
        "journal-9.jsonl",
        "journal-10.jsonl",
    ]
    assert storage.journals(tmp_path / "none") == [tmp_path / "none" / "journal.jsonl"]
