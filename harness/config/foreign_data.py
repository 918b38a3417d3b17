"""The files and folders that a foreign spec would put into prompts. Loaded for such specs alone."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from harness.config.spec import Spec
from harness.plugins import approvals
from harness.plugins.approvals import NeededApproval

_LONGEST = 4096
"""Characters of a path."""
_MAGIC = re.compile(r"[*?\[]")


def readings(spec: Spec) -> list[NeededApproval]:
    """The files and folders that foreign documents name in the spec, and that are not theirs to read.

    Any text of a spec may be the path that some plugin reads. It counts as one if something is there: in the working
    directory, or where it says itself. What a pattern may match counts as the folder that it begins with.
    """
    found: dict[NeededApproval, None] = {}
    for variant in spec.variants():
        waiting: list[tuple[tuple[Hashable, ...], Any]] = [((), variant.data)]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, Mapping):
                waiting += [((*path, key), one) for key, one in value.items()]
            elif isinstance(value, list):
                waiting += [((*path, i), one) for i, one in enumerate(value)]
            elif isinstance(value, str) and (there := _there(value)) is not None:
                document = spec.place_in(variant, *path).file
                if not approvals.may_read(there, document):
                    found[NeededApproval.reading(there, ".".join(map(str, path)))] = None
    return list(found)


def _there(text: str) -> Path | None:
    """The file or folder that a text names; None if it names none. A bare word is none, unless it has a suffix."""
    if (not text.startswith("~") and "/" not in text and not Path(text[:_LONGEST]).suffix) or len(text) > _LONGEST:
        return None
    try:
        path = Path(text).expanduser()
        if magic := next((i for i, part in enumerate(path.parts) if _MAGIC.search(part)), 0):
            path = Path(*path.parts[:magic])
        return path.resolve() if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # no path at all: a NUL, or the home of a user that is not there
        return None
