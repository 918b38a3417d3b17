"""Where a server has its Unix socket: in a folder that only this user may enter."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

_PREFIX, _NAME = "harness-model-", "model.sock"
_MAX_FOLDER = 80
"""Bytes of a path below which a socket can be: its own has at most 107."""
_NEW = 60.0
"""Seconds for which a server may take to listen."""


def make_folder(where: Path | None) -> Path:
    """A path for a socket in a folder of its own, below `where`: by default with the temporary files of this machine.

    It is in /tmp if the path would be too long. What killed servers have left at the same place is removed.
    """
    place = where or Path(tempfile.gettempdir())
    place = place if len(os.fsencode(place)) < _MAX_FOLDER else Path("/tmp")
    for folder in place.glob(f"{_PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place)) / _NAME


def _is_left(folder: Path) -> bool:
    """Whether it holds a socket at which no process listens."""
    try:
        if time.time() - folder.stat().st_mtime < _NEW:
            return False
        with socket.socket(socket.AF_UNIX) as link:
            link.setblocking(False)
            link.connect(os.fspath(folder / _NAME))
    except ConnectionRefusedError:
        return True
    except OSError:
        pass  # gone, busy, or another user's
    return False
