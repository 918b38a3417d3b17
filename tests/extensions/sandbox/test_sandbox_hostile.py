"""Programs that cheat, attack or run away: none passes, none harms the host, none keeps us waiting."""

import gc
from pathlib import Path

import pytest

from tests.extensions.sandbox.problem import RIGHT, SHORT, graded, judged

LIAR = "class Liar{base}:\n    __eq__ = lambda self, other: True\n    __ne__ = lambda self, other: False\n"

CHEATS: dict[str, tuple[str, str, str | None]] = {  # what stands before the function, its body, how it ends
    "equals everything": (LIAR.format(base=""), "return Liar()", "failed"),
    "a list that equals everything": (LIAR.format(base="(list)"), "return Liar()", "failed"),
    "a class that says it is text": (
        "class Liar:\n    __class__ = property(lambda self: str)\n    __eq__ = lambda self, other: True",
        "return Liar()",
        "error",
    ),
    "leaves with success": ("import os", "os._exit(0)", "crashed"),
    "leaves while loading": ("import os\nos._exit(0)", RIGHT, "crashed"),
    "sys.exit": ("import sys", "sys.exit(0)", "error"),
    "sys.exit while loading": ("import sys\nsys.exit()", RIGHT, "error"),
    "quits by hand": ("", "raise KeyboardInterrupt", "error"),
    "at exit": ("import atexit, os\natexit.register(os._exit, 0)", "return None", "failed"),
    "patches assert": ("import builtins\nbuiltins.AssertionError = KeyError", "return None", "failed"),
    "patches what compares": ("import builtins\nbuiltins.list = builtins.len = lambda *a: 0", "return None", None),
    "its own check": ("def check(candidate):\n    pass", "return None", "failed"),
    "its own main": ("import __main__\n__main__.check = lambda c: None", "return None", "failed"),
    "optimizes asserts away": ("import sys\nsys.flags = None\n__debug__ is False", "return None", "failed"),
    "traces frames": (
        "import sys\n"
        "def patch(frame, event, arg):\n    frame.f_locals['candidate'] = None\n    return patch\n"
        "sys.settrace(patch)\nsys.setprofile(patch)",
        "return None",
        "failed",
    ),
    "walks the stack": (
        "import sys, gc",
        "frame = sys._getframe()\nwhile frame:\n"
        "    frame.f_globals['check'] = lambda c: None\n    frame = frame.f_back\n"
        "for thing in gc.get_objects():\n    if callable(thing) and getattr(thing, '__name__', '') == 'check':\n"
        "        thing.__code__ = (lambda job: None).__code__\nreturn None",
        "failed",
    ),
    "writes a verdict everywhere": (
        'import os\nfor fd in range(1, 64):\n    try: os.write(fd, b\'["passed", ""]\')\n    except OSError: pass',
        "return None",
        None,
    ),
    "answers before it is asked": (
        "import os\nanswer = b'{\"value\": [2, 4]}'\nfor fd in range(3, 64):\n"
        "    try: os.write(fd, len(answer).to_bytes(4, 'big') + answer)\n    except OSError: pass",
        "return None",
        "failed",
    ),
    "forges the codec": (
        'import json\nclass Any:\n    def encode(self): return b\'{"value": {"eval": "everything"}}\'\n'
        "json.dumps = lambda data: Any()",
        "return None",
        "crashed",
    ),
    "closes its channel": ("import os, time\nos.closerange(0, 64)\ntime.sleep(60)", RIGHT, "crashed"),
    "an exception that cannot be shown": (
        "class Bad(Exception):\n    def __str__(self): raise SystemExit(0)",
        "raise Bad",
        "error",
    ),
    "raises the test's own": ("", "raise AssertionError('all is well')", "error"),
    "stops iteration": ("", "raise StopIteration", "error"),
    "recurses": ("import sys\nsys.setrecursionlimit(10**9)", "return evens(evens(numbers))", None),
    "holds itself": ("", "numbers.append(numbers)\nreturn numbers", "error"),
    "signals the harness": ("import os, signal", "os.kill(os.getppid(), signal.SIGKILL)", "error"),
    "signals all": ("import os, signal", "os.kill(-1, signal.SIGKILL)", "error"),
    "signals its group": ("import os, signal", "os.killpg(0, signal.SIGKILL)", "error"),
    "stops itself": ("import os, signal", "os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
    "kills itself": ("import os, signal", "os.kill(os.getpid(), signal.SIGKILL)", "crashed"),
    "gets the signal of the limit": ("import os, signal", "os.kill(os.getpid(), signal.SIGXCPU)", "timeout"),
    "aborts": ("import os", "os.abort()", "crashed"),
    "forks": ("import os", "while True:\n    os.fork()", "error"),
    "forks, whatever is said": (
        "import os",
        "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
        "timeout",
    ),
    "threads": (
        "import threading",
        "while True:\n    threading.Thread(target=lambda: None).start()",
        "error",
    ),
    "runs a program": ("import subprocess", "subprocess.run(['/bin/true'])", "error"),
    "becomes a program": ("import os", "os.execv('/bin/true', ['true'])", "error"),
    "loops": ("", "while True:\n    pass", "timeout"),
    "loops while loading": ("while True:\n    pass", RIGHT, "timeout"),
    "loops, deaf to signals": (
        "import signal\nfor n in set(signal.Signals) - {9, 19}:\n    signal.signal(n, signal.SIG_IGN)",
        "while True:\n    pass",
        "timeout",
    ),
    "sleeps": ("import time", "time.sleep(600)", "timeout"),
    "reads what never comes": ("import sys", "return sys.stdin.read()", "failed"),
    "takes all memory": ("", "return [bytearray(1 << 40)]", "memory"),
    "takes memory bit by bit": ("", "x = []\nwhile True:\n    x.append(bytearray(1 << 26))", "memory"),
    "returns too much": ("", "return 'x' * (9 << 20)", "output"),
    "prints forever": ("", "while True:\n    print('x' * 10_000)", "timeout"),
    "a number too long to print": ("", "return [10 ** 20_000]", "failed"),
    "never compiles": ("(" * 5000, RIGHT, "error"),
    "no text": ("'\ud800'", "return None", "error"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_passes(name: str) -> None:
    before, body, status = CHEATS[name]
    verdict = graded(body, before, SHORT)
    assert not verdict.passed
    assert status in (verdict.status, None), verdict
    assert len(verdict.detail) < 3000
    verdict.detail.encode()  # what goes into records is text


def test_a_test_that_swallows_everything_does_not_let_the_dead_pass() -> None:
    swallowing = "try:\n    candidate(1)\nexcept BaseException:\n    pass"
    for last_words in ("import os; os._exit(0)", "import sys; sys.exit(0)", "import os; os.kill(os.getpid(), 9)"):
        assert not judged(f"def f(x):\n    {last_words}\n", swallowing).passed
    assert judged("def f(x):\n    raise ValueError\n", swallowing).passed


def test_nothing_is_left_behind() -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def children() -> set[str]:
        return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}

    graded(RIGHT)
    gc.collect()  # what other tests have left
    before, others = open_files(), children()
    for _ in range(2):
        assert graded(RIGHT).passed
        graded("import os; os._exit(1)")
        graded("open('left', 'w').write('x' * 1000)")
    assert open_files() <= before
    assert children() <= others, "no child, neither running nor waiting to be taken in"
