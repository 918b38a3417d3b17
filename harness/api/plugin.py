"""The tag of plugins, bounds of their parameters, and seeds."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar, dataclass_transform

MOUNT: Final = "_harness_project_"
"""How the names of all modules begin that are plugins (`harness.config.project` mounts projects under them)."""
T = TypeVar("T")


@dataclass_transform(kw_only_default=True)
def plugin(cls: type[T]) -> type[T]:
    """Tag the one class of a plugin file. The class becomes a dataclass, and its fields are its YAML parameters."""
    made = dataclass(kw_only=True)(cls)
    made.__harness_plugin__ = True  # type: ignore[attr-defined]
    return made


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of a number parameter: `size: Annotated[int, Range(ge=2)]`. One that is `endless` may be infinite."""

    ge: float | None = None
    le: float | None = None
    gt: float | None = None
    lt: float | None = None
    endless: bool = False


def derive_seed(*parts: object) -> int:
    """Return a 63-bit seed that depends on every part and on nothing else, so never on the order of completion."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def as_text(value: Any) -> str:
    """A text unchanged; any other JSON value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


UNBOUNDED = (-math.inf, math.inf)


Bounds = tuple[Annotated[float, Range(endless=True)], Annotated[float, Range(endless=True)]]
"""Between which numbers something lies; each may be infinite (`.inf` in YAML)."""
