"""What a user has approved."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

_MAX_FILE_BYTES: Final = 8 << 20
"""Bytes of the record that are read at all."""


def config_folder() -> Path:
    """The user's own configuration: `HARNESS_CONFIG_DIR`, else `mas-eval-harness` in `XDG_CONFIG_HOME` (~/.config)."""
    own, home = Path(os.environ.get("HARNESS_CONFIG_DIR", "")), Path(os.environ.get("XDG_CONFIG_HOME", ""))
    if own.is_absolute():
        return own
    return (home if home.is_absolute() else Path.home() / ".config") / "mas-eval-harness"


def store() -> Path:
    """The file of approvals."""
    return config_folder() / "approvals.json"


def approved() -> dict[str, dict[str, Any]]:
    """Digest → what was approved, oldest first. Nothing where the file is missing, damaged or too large."""
    try:
        file = store()
        if file.stat().st_size > _MAX_FILE_BYTES:
            return {}
        entries = json.loads(file.read_bytes())["approved"]
        return {str(digest): dict(entry) for digest, entry in entries.items() if len(digest) == 64}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
