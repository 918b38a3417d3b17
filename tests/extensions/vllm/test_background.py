"""Work that cannot be awaited runs beside the event loop, which says how long it takes and ends the waiting."""

import asyncio
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.extensions.vllm import background
from harness.extensions.vllm.background import in_background

ROOT = Path(__file__).parents[3]


def test_it_gives_what_the_work_gives_and_raises_what_it_raises() -> None:
    def fail(error: BaseException) -> None:
        raise error

    assert asyncio.run(in_background("work", threading.get_ident, lambda: None)) != threading.get_ident()
    with pytest.raises(KeyError):
        asyncio.run(in_background("work", lambda: fail(KeyError("x")), lambda: None))
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        asyncio.run(in_background("work", lambda: fail(SystemExit(3)), lambda: None))


def test_it_says_how_long_it_takes(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "INTERVAL_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "harness")
    said = threading.Event()
    monkeypatch.setattr(background._log, "info", lambda text, *args: said.set() if (text % args) == "work: 0 s" else 0)
    assert asyncio.run(in_background("work", lambda: said.wait(60), lambda: None))


@pytest.mark.parametrize("obeys", [True, False])
def test_who_is_cancelled_does_not_wait_for_the_work(obeys: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "EXIT_SECONDS", 30.0 if obeys else 0.0)
    monkeypatch.setattr(background, "given_up", given := list[str]())
    begun, given_up, end = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        (given_up if obeys else end).wait(60)

    async def main() -> None:
        task = asyncio.create_task(in_background("work", work, given_up.set))
        while not begun.is_set():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert given_up.is_set() and given == ["work"]
    assert obeys or not end.is_set()
    end.set()


PROGRAM = """
import asyncio, os, sys, threading
from pathlib import Path
from harness.cli.terminal import clean_streams
from harness.extensions.vllm.background import in_background
from harness.engines.engine_output import Output

clean_streams()
output = Output()
output.path = Path(sys.argv[1])
begun, said = threading.Event(), threading.Event()

def work():
    with output.diverted():
        print("by print")
        os.write(2, b"by C++\\n")
        begun.set()
        said.wait(60)
        print("to the console", file=sys.stderr)

async def main():
    loading = asyncio.create_task(in_background("work", work, lambda: None))
    while not begun.is_set():
        await asyncio.sleep(0)
    print("a table \x1b[2J", flush=True)
    print("a note", file=sys.stderr)
    if len(sys.argv) > 2:
        output.restore()
        os.write(2, b"C++ again\\n")
        print("another note", file=sys.stderr)
    said.set()
    await loading

asyncio.run(main())
print("the end")
"""


@pytest.mark.parametrize("restored", [False, True])
def test_only_what_the_work_prints_goes_to_the_log(tmp_path: Path, restored: bool) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "engine.log"), *(["restored"] if restored else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "a table \\x1b[2J\nthe end\n" or done.stdout.splitlines()[1:] == ["the end"]
    assert "\x1b" not in done.stdout
    assert done.stderr.splitlines() == ["a note", *(["C++ again", "another note"] if restored else [])]
    assert set((tmp_path / "engine.log").read_text().splitlines()) == {"by print", "by C++", "to the console"}
