"""What an engine has started ends with the process that started it, however that one ends."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from harness.engines.child_reaper import ChildReaper

STARTER = """
import sys
from harness.engines.child_reaper import ChildReaper
reaper = ChildReaper()
for pid in sys.argv[1:]:
    reaper.add(int(pid))
print("ready", flush=True)
sys.stdin.read()
"""
WORKER = "print('working', flush=True); import sys; sys.stdin.read()"


def started(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline()
    return process


@pytest.fixture
def workers() -> Iterator[list[subprocess.Popen[str]]]:
    both = [started(WORKER), started(WORKER)]
    yield both
    for worker in both:
        worker.kill()
        worker.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_orphans_are_asked_to_end(workers: list[subprocess.Popen[str]], how: signal.Signals) -> None:
    starter = started(STARTER, *(worker.pid for worker in workers))
    starter.send_signal(how)
    assert [worker.wait(60) for worker in workers] == [-signal.SIGTERM] * 2
    starter.communicate()


def test_none_is_touched_while_who_started_it_lives_and_those_that_ended_are_let_be() -> None:
    worker = started(WORKER)
    reaper = ChildReaper()
    reaper.add(worker.pid)
    worker.communicate("")  # its input ends, and so does it
    reaper.close()
    reaper.close()
    assert worker.returncode == 0


def test_closing_ends_what_is_left(workers: list[subprocess.Popen[str]]) -> None:
    reaper = ChildReaper()
    for worker in workers:
        reaper.add(worker.pid)
    reaper.close()
    assert [worker.wait(60) for worker in workers] == [-signal.SIGTERM] * 2


FORKS = """
import multiprocessing, os, signal, sys
from harness.engines.child_reaper import ChildReaper

def engine():
    reaper, process = ChildReaper(), multiprocessing.get_context("fork").Process(target=signal.pause)
    with reaper.over_children():
        process.start()
    return reaper, process

(reaper, process), (later, another) = engine(), engine()
if sys.argv[1] == "close":
    reaper.close()
    process.join()
    print(process.exitcode, another.is_alive(), flush=True)
    later.close()
    another.join()
else:
    print(process.pid, another.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_forks_of_this_process_keep_no_reaper_waiting() -> None:
    """On a GPU vLLM forks: its process must not hold the pipe whose end is waited for."""
    closed = subprocess.run([sys.executable, "-c", FORKS, "close"], capture_output=True, text=True, timeout=60)
    assert closed.stdout == f"{-signal.SIGTERM} True\n", closed.stderr
    killed = subprocess.run([sys.executable, "-c", FORKS, "die"], capture_output=True, text=True, timeout=60)
    assert killed.returncode == -signal.SIGKILL and len(killed.stdout.split()) == 2, killed.stderr
