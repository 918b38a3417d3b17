"""How often Python looks for garbage in cycles while episodes are played."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

_OBJECTS = 10_000
"""New objects before Python looks through the young ones; its default, 700, takes a tenth of a run's CPU time."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Within it Python looks for cycles less often: episodes make many objects, and hardly any cycles."""
    before = gc.get_threshold()
    if 0 < before[0] < _OBJECTS:  # 0: someone switched it off
        gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
