"""One process on a results folder: refused while another lives, whatever a dead one has left behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.api.errors import DataError
from harness.storage.locks import LOCK, Lock, holder

ROOT = Path(__file__).parents[3]
HOLDER = """
import os, sys
from pathlib import Path
from harness.storage.locks import Lock
lock = Lock(Path(sys.argv[1]))
if len(sys.argv) == 2:
    print("held", flush=True)
elif os.fork() == 0:  # a worker of an engine, say: it has all that its parent has open
    print(os.getpid(), flush=True)
sys.stdin.read()
"""


def hold(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A process that holds the folder until its input ends; with `more` also a child of it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLDER, str(folder), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def test_one_at_a_time(tmp_path: Path) -> None:
    first = Lock(tmp_path)
    with pytest.raises(DataError, match=rf"another process is writing .* \(process {os.getpid()} on"):
        Lock(tmp_path)
    first.release()
    first.release()
    assert (tmp_path / LOCK).read_bytes() == b""
    Lock(tmp_path).release()


def test_another_process_is_named_and_its_death_is_its_release(tmp_path: Path) -> None:
    with hold(tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with pytest.raises(DataError, match=f"process {process.pid} on"):
            Lock(tmp_path)
        process.kill()
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == process.pid
    Lock(tmp_path).release()


def test_who_lets_go_lets_go_for_its_children_too(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    copy = os.dup(lock._file)  # as a forked child has it
    lock.release()
    Lock(tmp_path).release()
    os.close(copy)


def test_children_of_a_killed_process_keep_no_process_out(tmp_path: Path) -> None:
    with hold(tmp_path, "and a child") as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        with pytest.raises(DataError, match=f"process {process.pid} on"):
            Lock(tmp_path)
        process.send_signal(signal.SIGKILL)
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass
        os.kill(child, 0)  # it is there, and has the file
        lock = Lock(tmp_path)
        with pytest.raises(DataError, match=f"process {os.getpid()} on"):
            Lock(tmp_path)
        os.kill(child, signal.SIGKILL)
    with pytest.raises(DataError):
        Lock(tmp_path)
    lock.release()


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"pid": "x"}', '{"host": "elsewhere", "pid": 1}', "\x00" * 5000])
def test_a_dead_process_s_note_beside_a_free_lock_does_not_matter(tmp_path: Path, left: str) -> None:
    (tmp_path / LOCK).write_text(left)
    lock = Lock(tmp_path)
    assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
    lock.release()


def test_a_folder_that_is_not_there_is_the_callers_to_tell(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Lock(tmp_path / "none")


LOOKING = """
import sys
from pathlib import Path
from harness.storage.locks import LOCK, holder

print("looking", flush=True)
while True:
    holder(Path(sys.argv[1]) / LOCK)
"""


def test_who_looks_keeps_no_process_out(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", LOOKING, str(tmp_path)], stdout=subprocess.PIPE) as looking:
        try:
            assert looking.stdout is not None and looking.stdout.readline()
            for _ in range(2000):
                Lock(tmp_path).release()
        finally:
            looking.kill()


def test_who_looks_sees_the_holder(tmp_path: Path) -> None:
    assert holder(tmp_path / LOCK) is None
    with hold(tmp_path) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            there = holder(tmp_path / LOCK)
            assert there is not None and there["pid"] == process.pid
        finally:
            process.kill()
    assert holder(tmp_path / LOCK) is None
