"""Bubblewrap as the fence around files: a view of the machine in which nothing else is (bwrap(1)).

The process gets namespaces of its own: it sees Python's library, to read, and its own folder; no other process, no
network, no host name. What the process gives up itself (`_confine`) it gives up in there as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ._confine import READ

_NAMESPACES = ("--unshare-all", "--die-with-parent", "--new-session")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


@lru_cache(maxsize=1)
def probe() -> tuple[str, str]:
    """The path of a `bwrap` that works here; or an empty path, and the reason."""
    path = shutil.which("bwrap")
    if path is None:
        return "", "there is no program bwrap"
    try:
        process = subprocess.run(
            [path, *_NAMESPACES, "--ro-bind", "/", "/", sys.executable, "-I", "-S", "-c", ""],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    message = process.stderr.decode("utf-8", "replace").strip()[:200]
    return ("", message or f"it ends with {process.returncode}") if process.returncode else (path, "")


def command(binary: str, folder: str, python: Sequence[str], package: str) -> list[str]:
    """The command line that runs `python` with nothing in sight but its library, `package` and `folder`.

    Args:
        binary: where bubblewrap is.
        folder: the only one that can be written.
        python: a command line that starts with `sys.executable`.
        package: a folder that it may read.
    """
    executable = str(Path(sys.executable).resolve())
    command_line = [binary, *_NAMESPACES]
    for path in (*library(), *READ, executable, package):
        command_line += ["--dev-bind-try" if path in _DEVICES else "--ro-bind-try", path, path]
    command_line += ["--dev-bind", "/dev/null", "/dev/null", "--bind", folder, folder]
    command_line += ["--remount-ro", "/", "--chdir", folder]
    return [*command_line, "--", executable, *python[1:]]


@lru_cache(maxsize=1)
def library() -> tuple[str, ...]:
    """Folders of the standard library and of the libraries that Python itself is linked with."""
    folders = [Path(os.__file__).parent, Path(sys.base_prefix, "lib"), Path(sys.base_exec_prefix, sys.platlibdir)]
    return tuple(dict.fromkeys(str(path) for folder in folders for path in (folder, folder.resolve())))
