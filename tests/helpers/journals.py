"""Journals for tests: lines with their checksums, and run folders as a kill leaves them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import storage


def sealed(*lines: Mapping[str, Any]) -> bytes:
    """These lines as a journal holds them."""
    return b"".join(storage.sealed(json.dumps(line, separators=(",", ":")).encode()) for line in lines)


def edited(journal: Path, before: str, after: str) -> None:
    """Replace text in every line, and make the checksums right again: as if other code had written it."""
    lines = [line for _, line in storage.lines(journal)]
    journal.write_bytes(sealed(*(json.loads(json.dumps(line).replace(before, after)) for line in lines)))


def as_killed(folder: Path) -> None:
    """Let run.json say what it says in the middle of a run: not how that ended."""
    meta = json.loads((folder / "run.json").read_text())
    meta |= {"status": "running", "session_start": meta["start"], "end": None}
    meta.pop("journals", None)
    (folder / "run.json").write_text(json.dumps(meta))
