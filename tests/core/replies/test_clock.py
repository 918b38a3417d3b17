"""Code that is not ours reads texts in another process, which ends when a text takes too long."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import Place, PluginError
from harness.extensions.sandbox.clock import LEAST, PATIENCE, ClockedFunction, UnreadableTextError

HERE = "tests.core.replies.test_clock"
ENDLESS = "a" * 45 + "b"


def searching(pattern: str) -> Any:
    compiled = re.compile(pattern)
    return lambda text: (match := compiled.search(text)) and match[0]


def hostile(folder: str) -> Any:
    def act(what: str) -> Any:
        if what == "exit":
            os._exit(0)
        if what == "leave":
            sys.exit(3)
        if what == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if what == "memory":
            return len(bytearray(1 << 40))
        if what == "print":
            print("x" * 100_000)
            os.write(1, b"y" * 10)
            return os.read(0, 10)
        if what == "raise":
            raise PluginError("no such thing", place=Place("file", 3), hint="Look.", at=("here",))
        if what == "odd":
            raise type("Odd", (Exception,), {})("locally defined")
        if what == "lambda":
            return lambda: 1
        if what == "big":
            return "é" * 3_000_000
        return what

    return act


def unmakable() -> Any:
    raise PluginError("cannot be made")


def test_a_text_that_takes_for_ever_is_unreadable_and_the_next_one_is_read() -> None:
    read = ClockedFunction(f"{HERE}:searching", "(a+)+$")
    for _ in range(2):
        with pytest.raises(UnreadableTextError):
            read(ENDLESS, seconds=0.05)
        assert read("aaa") == "aaa" and read("b") is None


def test_many_endless_texts_take_less_and_less() -> None:
    """The bound of the first few is given up once it is known how long readable texts take."""
    read = ClockedFunction(f"{HERE}:searching", "(a+)+$")
    for _ in range(PATIENCE):
        with pytest.raises(UnreadableTextError):
            read(ENDLESS, seconds=0.01)
    with pytest.raises(UnreadableTextError, match=f"after {LEAST:g} s"):
        read(ENDLESS)
    assert read("baa") == "aa"


@pytest.mark.parametrize("what", ["exit", "crash"])
def test_a_text_that_ends_the_process_is_unreadable(what: str, tmp_path: Path) -> None:
    act = ClockedFunction(f"{HERE}:hostile", str(tmp_path))
    with pytest.raises(UnreadableTextError):
        act(what)
    assert act("still here") == "still here"


def test_what_is_raised_or_printed_there(tmp_path: Path) -> None:
    act = ClockedFunction(f"{HERE}:hostile", str(tmp_path))
    with pytest.raises(PluginError, match="no such thing") as caught:
        act("raise")
    assert (caught.value.place, caught.value.hint, caught.value.at) == (Place("file", 3), "Look.", ("here",))
    assert "in act" in str(caught.value.__cause__)
    for what, kind in (("odd", "Odd: locally defined"), ("leave", "SystemExit: 3"), ("lambda", "pickle|Attribute")):
        with pytest.raises(Exception, match=kind):
            act(what)
    with pytest.raises(MemoryError):
        act("memory")
    assert act("print") == b"" and len(act("big")) == 3_000_000
    with pytest.raises(PluginError, match="cannot be made"):
        ClockedFunction(f"{HERE}:unmakable")("text")


def test_functions_share_the_process_and_threads_wait_for_each_other() -> None:
    reads = [ClockedFunction(f"{HERE}:searching", f"{letter}+") for letter in "abcd"]
    found: dict[int, list[str]] = {}

    def work(k: int) -> None:
        found[k] = [reads[i % 4]("aabbccdd" * (k + 1)) for i in range(40)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), ["aa", "bb", "cc", "dd"] * 10)


def test_first_work_is_not_counted(tmp_path: Path) -> None:
    """What a function imports and loads when it is first used is no fault of a text; a copy does it again."""
    read = ClockedFunction(f"{HERE}:lazy", warm=("",))
    assert read("text", seconds=0.2) == "text"
    with pytest.raises(UnreadableTextError):
        read("forever", seconds=0.05)
    assert read("more", seconds=0.2) == "more"


def lazy() -> Any:
    loaded: list[int] = []

    def act(text: str) -> str:
        if not loaded:
            loaded.append(sum(i * i % 7 for i in range(6_000_000)))
        while text == "forever":
            pass
        return text

    return act


@pytest.mark.slow
def test_a_fork_and_the_end_of_a_program(tmp_path: Path) -> None:
    """A forked process has a reader of its own; none is left when programs end, however they do."""
    program = (
        "import os, signal, sys\n"
        "from harness.extensions.sandbox import clock\n"
        "read = clock.ClockedFunction('operator:methodcaller', 'upper')\n"
        "assert read('baa') == 'BAA'\n"
        "first = clock._PROCESS._process.pid\n"
        "child = os.fork()\n"
        "assert read('baa') == 'BAA'\n"
        "if child == 0:\n"
        "    assert clock._PROCESS._process.pid != first\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "print(first, flush=True)\n"
        "os.kill(os.getpid(), getattr(signal, sys.argv[1]))\n"
    )
    root = Path(__file__).parents[3]
    for name in ("SIGKILL", "SIGTERM"):
        run = subprocess.run(
            [sys.executable, "-c", program, name], capture_output=True, text=True, cwd=root, timeout=60, check=False
        )
        assert run.returncode == -getattr(signal, name), run.stderr
        reader = int(run.stdout)
        poll = threading.Event()
        assert any(not Path(f"/proc/{reader}").exists() or poll.wait(0.05) for _ in range(200))
