"""The folder of a site: nothing is written outside it, and no folder of something else is written into."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, Final

from harness.api.errors import DataError, StorageError

MARK: Final = "site.json"
"""The file that says that a folder is a site, and which files in it are."""
_MADE_BY: Final = "harness leaderboard --format site"
_SCHEMA: Final = 1


class SiteFolder:
    """Files of a site. `close` removes those of its last making that were not written again; others stay.

    Args:
        root: the folder. It need not exist.

    Raises:
        DataError: it holds files and is no site.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._written: dict[str, None] = {}
        self._before = _files_of(root)

    def open(self) -> None:
        """Make the folder, and mark it as a site. Raises `StorageError` if it cannot be written."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write {self.root}: {error.strerror or error}") from None
        self._mark(self._before)

    def write(self, name: str, content: str) -> None:
        """Write a file by its path in the site, whose parts are `slug`s and names of files.

        Raises:
            StorageError: it cannot be written, or a link is in its way.
            DataError: another page has this address.
        """
        if name in self._written:
            raise DataError(f"two pages of the site have the address {name}", hint="Rename one of what they are about.")
        self._written[name] = None
        self._put(name, content)

    def close(self) -> None:
        """Remove what is no longer a part of the site, and note what is."""
        for name in self._before:
            if name not in self._written:
                self._remove(name)
        self._mark(self._written)

    def _mark(self, names: Iterable[str]) -> None:
        record = {"made_by": _MADE_BY, "schema": _SCHEMA, "files": sorted(names)}
        self._put(MARK, json.dumps(record, indent=0) + "\n")

    def _put(self, name: str, content: str) -> None:
        file, data = self.root / name, content.encode("utf-8", "backslashreplace")
        temporary = file.with_name(f".{file.name}.part")
        try:
            self._enter(PurePosixPath(name).parent, make=True)
            if not file.is_symlink() and file.is_file() and file.read_bytes() == data:
                return  # so that copying a site copies what is new
            temporary.unlink(missing_ok=True)
            with temporary.open("xb") as opened:
                opened.write(data)
            temporary.replace(file)  # a link under the name is replaced, and not followed
        except OSError as error:
            raise StorageError(f"cannot write {file}: {error.strerror or error}") from None

    def _enter(self, folder: PurePosixPath, make: bool) -> bool:
        """Whether a folder of the site is there and no link leads to it. `make`: it is made, or the error says why."""
        path = self.root
        for part in folder.parts:
            path = path / part
            if path.is_symlink():
                if make:
                    raise StorageError(f"cannot write below {path}: it is a symbolic link", hint="Remove it.")
                return False
            if make:
                path.mkdir(exist_ok=True)
        return path.is_dir()

    def _remove(self, name: str) -> None:
        """Remove a file, and the folders that are empty then. What its own mark names may have been edited."""
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or not self._enter(pure.parent, make=False):
            return
        try:
            (self.root / pure).unlink(missing_ok=True)
            for folder in [*pure.parents][:-1]:
                (self.root / folder).rmdir()
        except OSError:
            return  # a folder has other files


def _files_of(root: Path) -> list[str]:
    """The files of the site that a folder holds; none where it is empty or missing. Raises `DataError`."""
    if root.exists() and not root.is_dir():
        raise DataError(f"{root} is a file", hint="Give -o the name of a folder: the site's.")
    if not root.exists() or not any(root.iterdir()):
        return []
    record = _record(root / MARK)
    files = record.get("files")
    if record.get("made_by") != _MADE_BY or not isinstance(files, list):
        raise DataError(
            f"{root} holds files and is no site that `harness leaderboard` made: nothing was written",
            hint="Give -o a new or an empty folder.",
        )
    return [name for name in files if isinstance(name, str) and name]


def _record(file: Path) -> dict[str, Any]:
    try:
        record = json.loads(file.read_bytes()) if file.is_file() and not file.is_symlink() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
