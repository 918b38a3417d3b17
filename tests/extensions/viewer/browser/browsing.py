"""A browser, runs to look at, and the viewer as its command starts it."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

import harness
from harness.api import Completion, Request
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from tests.helpers.programs import Ask, Programs

MARKUP = "<img src=x onerror=window.hacked=6>"
HOSTILE = f"hostile{MARKUP}"  # a folder's name, too
SCRIPT = "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'><svg onload=window.hacked=3>"
LINK = "[here](javascript:window.hacked=4) <a href='javascript:window.hacked=5'>now</a> https://example.org/"
UNSEEN_CODES = [0xAD, 0x34F, 0x115F, 0x180E, 0x2800, 0x3164, 0xFFA0, 0x200D, 0xE0041, 0xE007F, 0x1D173]
CONTROLS = "nul \x00 escape \x1b[31m bell \x07 override \u202eabc\u202c isolate \u2066x\u2069 end"
UNSEEN = "".join(f"<{chr(code)}>" for code in UNSEEN_CODES)
JOINED = " می\u200cخواهم \U0001f468\u200d\U0001f469\u200d\U0001f467 "
JOINED += "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f "
LARGE = "long " * 2_100_000  # 10 MB


def hostile_reply(request: Request) -> str:
    """What a model may write: one thing a question."""
    number = int(re.search(r"/(\d+)/0", request.id)[1])
    return [SCRIPT, LINK, CONTROLS + UNSEEN + JOINED, LARGE][number % 4] + "\nThe answer is 42."


class Gate:
    """An engine whose replies wait until a test lets them through, so many at a time, first asked first.

    Attributes:
        asked: set when the first reply is waited for: the run is on the disk.
    """

    def __init__(self, answer: str) -> None:
        self.asked = threading.Event()
        self._answer = answer
        self._lock = threading.Lock()
        self._passes = 0
        self._waiting = deque[Future[None]]()

    def let(self, count: int) -> None:
        """Let so many replies through."""
        with self._lock:
            self._passes += count
            self._serve()

    async def reply(self, request: Request) -> str:
        """An answer, once it may be given."""
        turn = Future[None]()
        with self._lock:
            self._waiting.append(turn)
            self._serve()
        self.asked.set()
        await asyncio.wrap_future(turn)
        return f"thinking {request.thread.messages[-1]['content'][:20]}\nThe answer is {self._answer}."

    def _serve(self) -> None:
        while self._passes and self._waiting:
            self._passes -= 1
            self._waiting.popleft().set_result(None)


def make_runs(folder: Path) -> None:
    """A run of every family, one with hostile replies."""
    for name in ("agentsnet_quick", "dpbench_quick", "silo_quick", "mas_quick"):
        harness.evaluate(name, output_path=folder / name)
    harness.evaluate("darkforest_quick", output_path=folder / "darkforest_quick", limit=2)
    one = ["matrix.terms=[2]", f"task.labels={{trap: {json.dumps(MARKUP)}}}"]
    harness.evaluate(
        "arithmetic", Mock(model=MARKUP, function=hostile_reply), output_path=folder / HOSTILE, limit=4, overrides=one
    )
    harness.evaluate(
        "agentsnet_quick",
        Mock(text="no JSON here"),
        output_path=folder / "unread",
        overrides=["matrix.problem=[coloring]"],
    )
    _make_inner_run(folder / "inner")


def _make_inner_run(folder: Path) -> None:
    """An agent whose program asks its model sixty times and more a turn, hostile things among them."""

    def answer(request: Request) -> Completion:
        return Completion(SCRIPT + CONTROLS, input_tokens=10, output_tokens=2)

    async def program(ask: Ask, request: Request) -> str:
        first = [{"role": MARKUP, "content": SCRIPT}, {"role": "user", "content": LINK}]
        await ask("", messages=first, tools=[{"name": MARKUP, "description": SCRIPT, "parameters": {}}])
        await ask("", messages=[*first, {"role": "user", "content": "go on"}])
        for number in range(60):
            await ask(f"question {number}")
        return "The answer is 42."

    prices = f"prices={{{json.dumps(MARKUP)}: {{input: 1000, output: 1000}}}}"
    one = spec.load("arithmetic", builtin(), ["matrix.terms=[2]", prices], limit=1)
    engine = Programs(program=program, inner=Mock(model=MARKUP, function=answer))
    execute(resolve.plan(one, builtin(), engine), Options(output_path=folder))


@contextlib.contextmanager
def started_viewer(folder: Path, *more: str) -> Iterator[str]:
    """`harness view FOLDER`, with more options; gives its URL."""
    command = [sys.executable, "-m", "harness", "view", str(folder), "--port", "0", *more]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            found = None
            while found is None:
                line = process.stdout.readline()
                assert line, "the viewer ended before it said where it is"
                found = re.search(r"http://127\.0\.0\.1:\d+/\S*", line)
            yield found[0]
        finally:
            process.terminate()
            process.wait(60)


def chromium_path() -> str:
    """Debian's Chromium, or another one on the path."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "there is no Chromium: run .ci/install_chromium.sh"
    return found


CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Console:
    """What a page complains about."""

    def __init__(self, page: Any) -> None:
        self.complaints: list[str] = []
        page.on("console", lambda message: self._said(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and "status of 503" not in text:  # a journal is being read: the page asks again
            self.complaints.append(f"{kind}: {text}")

    def forget(self, matches: Callable[[str], bool]) -> None:
        """Leave out what a test brought about."""
        self.complaints = [text for text in self.complaints if not matches(text)]


def api(url: str, path: str, **query: Any) -> Any:
    with urllib.request.urlopen(f"{url}api/{path}?{urllib.parse.urlencode(query)}") as answer:
        return json.load(answer)


def run_id(url: str, start: str) -> str:
    """The id of the run whose name starts so."""
    return next(run["id"] for run in api(url, "runs")["runs"] if run["name"].startswith(start))


def address(url: str, run: str, match: str = "", **more: Any) -> str:
    """The hash of the run's first episode whose id has a text."""
    run = urllib.parse.quote(run_id(url, run))
    found = api(url, f"runs/{run}/episodes", limit=200)["episodes"]
    name = next(row["id"] for row in found if match in row["id"])
    return f"/#/runs/{run}/episode?{urllib.parse.urlencode({'id': name, **more})}"


def fits(page: Page) -> None:
    """No page is wider than a phone, or than a desk's screen."""
    for width in (400, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, page.url
