"""How much work reading a text is, in steps that are the same on every machine."""

from __future__ import annotations

import gc
import sys

from harness.api import Reply


def steps(form: Reply, text: str) -> int:
    """How many calls it takes to read `text`, those into C included."""
    count = 0

    def step(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += 1

    form.parse(text[:100])  # what is made once
    gc.disable()  # what it finalizes would be counted
    sys.setprofile(step)
    try:
        form.parse(text)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count
