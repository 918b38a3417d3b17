"""What is not approved, in words. Loaded for messages alone: most runs need no approval."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.api.errors import Place

if TYPE_CHECKING:
    from harness.plugins.needed_approval import NeededApproval

_TITLES: Final = {"run": "not approved to run", "sent": "not approved to be sent", "read": "not approved to be read"}
_IN_LINE: Final = 3
"""Things that one line names."""
_IN_ERROR: Final = 8
"""Things that one error lists."""


def listing(needed: Sequence[NeededApproval]) -> str:
    """All that lacks approval, by what would happen with it: a line each."""
    parts = []
    for does, words in _TITLES.items():
        lines = [str(one) for one in needed if one.does == does]
        more = [f"… and {len(lines) - _IN_ERROR} more"] if len(lines) > _IN_ERROR else []
        if lines:
            parts.append("\n    ".join([f"{words}:", *lines[:_IN_ERROR], *more]))
    return "\n  ".join(parts)


def in_one_line(needed: Sequence[NeededApproval], place: Place | None) -> str:
    """The first few, and what to do."""
    whats = [one.what for one in needed]
    more = f" and {len(whats) - _IN_LINE} more" if len(whats) > _IN_LINE else ""
    return f"{', '.join(whats[:_IN_LINE])}{more}, not approved. {advice(needed, place)}"


def advice(needed: Sequence[NeededApproval], place: Place | None, record: bool = True) -> str:
    """How to approve it. `place`: the document that asks for it; `record`: whether it stays where it is."""
    once = "--allow_code_execution allows it for one command"
    if not record or not any(one.digest for one in needed):
        return f"If you want that: {once}."
    files = [one.file for one in needed if one.file is not None]
    path = place.file if place is not None and Path(place.file).is_file() else files[0].parent if files else "SPEC"
    trust = f"`harness trust {shlex.quote(str(path))}` lists all of it and approves it"
    return f"If you trust it: {trust}; {once}."
