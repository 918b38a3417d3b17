"""Files of a run's folder are files themselves: no symbolic links to what is not ours to write, no pipes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, Place, StorageError

DAMAGED = "Take it from a copy. Without one delete the line, and `journals` in run.json: the run repeats its calls."

MAX_NAME_BYTES = 200
MAX_LABEL_BYTES = 120
"""Bytes of a name. File systems take 255, and what stands beside a run has its name with more at the end."""


def no_link(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `os.open` does, and as `opener` of `open`; a new one may be read and written as the umask says.

    Raises:
        OSError: a symbolic link is under its name, or what is neither a file nor a device (a pipe would wait for
            ever); and for what `os.open` does.
    """
    try:
        return no_pipe(path, flags | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link", str(path)) from None
        raise


def no_pipe(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file as `no_link` does, also through a symbolic link: for files that are read, and never written.

    Raises `OSError` for what is neither a file nor a device, and for what `os.open` does.
    """
    try:
        file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe that nothing reads
            raise OSError(errno.ENXIO, "it is not a file", str(path)) from None
        raise
    kind = os.fstat(file).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISCHR(kind)):
        os.close(file)
        raise OSError(errno.EINVAL, "it is not a file", str(path))
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(file, True)
    return file


def _pipe_with_reader(path: str, flags: int) -> int:
    """Open a pipe, a device or a terminal to write to. Raises `OSError` where nothing reads the pipe: none waits."""
    try:
        file = os.open(path, (flags | getattr(os, "O_NONBLOCK", 0)) & ~(os.O_CREAT | os.O_TRUNC))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe that nothing reads", path) from None
        raise
    if hasattr(os, "O_NONBLOCK"):
        os.set_blocking(file, True)
    return file


def file_name(text: str, most: int = MAX_NAME_BYTES) -> str:
    """The text as the name of a file or folder: one of more than so many bytes is cut, and ends in its digest.

    >>> len(file_name("a" * 300)), file_name("a" * 200)[-9:] == file_name("a" * 300)[-9:]
    (200, False)
    """
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) <= most:
        return text
    digest = hashlib.sha256(raw).hexdigest()[:8]
    return f"{raw[: most - len(digest) - 1].decode('utf-8', 'ignore')}-{digest}"


def short_name(text: str) -> str:
    """A model's name as tables and notes show it: one that is too long for them is cut, and ends in its digest."""
    return file_name(text, MAX_LABEL_BYTES)


def write_atomically(path: Path, text: str | Iterable[str]) -> None:
    """Replace a file in one step, so that a reader never sees half of it. Raises `StorageError`.

    Of a text in parts, one is in memory at a time.
    A symbolic link under the name is replaced, never followed. What is not a file (a pipe that is read, a terminal) is
    written to.
    """
    temporary, parts = path.with_name(f".{path.name}.part"), (text,) if isinstance(text, str) else text
    try:
        if path.exists() and not path.is_file():
            with open(path, "w", encoding="utf-8", errors="backslashreplace", opener=_pipe_with_reader) as file:
                file.writelines(parts)
            return
        temporary.unlink(missing_ok=True)  # of a process that was killed
        with temporary.open("x", encoding="utf-8", errors="backslashreplace") as file:  # a file of its own, or none
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave an empty file under the name
        temporary.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from None


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_own(path: Path, most: int) -> bytes | None:
    """What a file holds that the harness itself once wrote; None where there is none.

    Args:
        path: the file.
        most: bytes that it may have.

    Raises:
        DataError: with the file as its place: it is a symbolic link, no file, larger, or cannot be read.
    """
    try:
        with open(path, "rb", opener=no_link) as file:
            raw = file.read(most + 1) if os.fstat(file.fileno()).st_size <= most else None
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = f"The harness writes no such thing there: remove it. `ls -l {path}` shows what it is."
        raise DataError(f"cannot be read: {error.strerror or error}", place=Place(str(path)), hint=hint) from None
    if raw is None or len(raw) > most:
        hint = "The harness writes no such file: remove it."
        raise DataError(f"larger than {most:,} bytes", place=Place(str(path)), hint=hint)
    return raw


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file. Raises `DataError`."""
    try:
        with open(path, "rb", opener=no_pipe) as file:
            return json_object(file.read(), path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from None


def json_object(raw: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    """The object that `raw` holds; `number` is the line of the journal it is in, if it does. Raises `DataError`."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        hint = DAMAGED if number else None
        raise DataError("not a JSON object: the file is damaged", place=Place(str(path), number or 1, 1), hint=hint)
    return line


def cache_folder() -> Path:
    """Where the user keeps what programs can make again (`XDG_CACHE_HOME`, by default ~/.cache)."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "mas-eval-harness"
