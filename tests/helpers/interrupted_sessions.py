"""A session that gets Ctrl-C at every line of Python before its work begins, asyncio's own lines included.

In a process of its own (`python -m tests.helpers.interrupted_sessions`): an interrupt inside of an `except` clause that
is traced leaves the interpreter with an exception that it takes for handled.
"""

import asyncio
import os
import signal
import sys
from types import FrameType
from typing import Any

from harness.runtime.session import Session


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


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    line = 1
    while interrupted_at(line, []):
        line += 1
    print(line)
