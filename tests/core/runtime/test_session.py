"""The event loop of a command."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from harness.runtime.session import Session


@pytest.fixture
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted_at(line: int, began: list[str]) -> bool:
    """Run work in a session that gets Ctrl-C at the n-th line of Python that is executed, asyncio's own included;
    whether there were so many lines before the work began."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if event == "line":
            lines += 1
            if lines == line:
                sys.settrace(None)
                os.kill(os.getpid(), signal.SIGINT)
                return None
        return trace

    async def work() -> None:
        sys.settrace(None)
        began.append("began")
        try:
            await asyncio.sleep(5 if lines >= line else 0)
        except asyncio.CancelledError:
            began.append("ended in order")
            raise

    one = Session()
    coroutine = work()
    try:
        sys.settrace(trace)
        one.run(coroutine)
        return False
    except KeyboardInterrupt:
        assert began in ([], ["began", "ended in order"]), line
        return True
    finally:
        sys.settrace(None)
        coroutine.close()
        one.close()


@pytest.mark.filterwarnings("error")
def test_ctrl_c_at_any_line_before_the_work_begins_ends_it_in_order(default_handler: None) -> None:
    """No loop is left half built, which Python would report when it is collected, and no work is cut off."""
    line = 1
    while interrupted_at(line, []):
        line += 1
    assert line > 50  # it went through asyncio's own lines
