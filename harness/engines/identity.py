"""What an engine is: for the record of a run, for resuming it, for the keys of a cache."""

from __future__ import annotations

from typing import Any

from harness.api import Facts
from harness.engine_api import Describes, Engine


def describe(engine: Engine) -> Facts:
    """Its fields but for secrets, or what it says itself (`Describes`)."""
    return engine.describe() if isinstance(engine, Describes) else Describes.describe(engine)  # type: ignore[arg-type]


def identity(engine: Engine, *, location: bool) -> dict[str, Any]:
    """What of it can change an answer.

    Args:
        engine: the engine itself, not a gate or a cache before it.
        location: whether the fields count that say where it is.
    """
    free: frozenset[str] = frozenset()
    if isinstance(engine, Describes):
        free = engine.incidental if location else engine.incidental | engine.location
    return {key: value for key, value in describe(engine).items() if key not in free}
