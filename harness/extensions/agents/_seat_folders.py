"""Folders of seats: the home and the working folder of a program that plays a seat, kept over its conversation."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.api.errors import RequestError, SetupError

_VARIABLE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MAX_FILES, _MAX_BYTES = 1_000, 10_000_000
"""Files of a `home`, and the bytes of each."""
_FOLDERS = ("work", "tmp")
_OURS = (*_FOLDERS, "prompt.txt")
"""What each home has beside its files."""
_PASSED = ("PATH", "LANG", "LANGUAGE", "TZ", "SHELL", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables that a program with a home of its own gets of this process, beside LC_…: none has a key or names a file of
the person's."""


def home_files(home: str | Mapping[str, Any]) -> dict[str, str]:
    """Path → content of a `home`: its entries, or the files of the folder that it names. Neither is filled in.

    A content that is no text is written as JSON.

    Raises:
        SetupError: a path leads out of the home, or to what is there already, or the folder cannot be read.
    """
    if isinstance(home, str):
        files = _of_folder(Path(home).expanduser())
        _check_paths(files)
        return files
    _check_paths(home)
    return {
        name: value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
        for name, value in home.items()
    }


def _check_paths(names: Iterable[Any]) -> None:
    """Raise `SetupError` for a path that is none below a home, or that cannot be there beside another one."""
    taken: dict[Path, Any] = {Path(name): name for name in _OURS}
    for name in names:
        path = Path(name) if isinstance(name, str) and "\0" not in name else Path()
        if not path.parts or str(name).startswith(("/", "~")) or ".." in path.parts:
            hint = "Write paths below the home, such as .codex/config.toml."
            raise SetupError(f"home: {name!r:.200} is not a path below the home", hint=hint, at=("home",))
        if path in taken:
            hint = f"{' and '.join(_OURS)} are made for each turn; write any other file once."
            raise SetupError(f"home: {name!r:.200} is there already", hint=hint, at=("home",))
        taken[path] = name
    for path, name in taken.items():
        if (
            above := next((one for one in path.parents if one in taken and str(one) not in _FOLDERS), None)
        ) is not None:
            hint = "Leave one of them out."
            what = f"home: {taken[above]!r:.200} is a file, and {name!r:.200} lies in it"
            raise SetupError(what, hint=hint, at=("home",))


def _of_folder(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        hint = "Name a folder whose files are copied, or write them: home: {.codex/config.toml: …}."
        raise SetupError(f"home={folder}: there is no such folder", hint=hint, at=("home",))
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    if len(files) > _MAX_FILES:
        raise SetupError(f"home={folder} has more than {_MAX_FILES:,} files, found {len(files):,}", at=("home",))
    found = {}
    for file in files:
        try:
            if file.stat().st_size > _MAX_BYTES:
                raise SetupError(f"{file} is too large for a home: more than {_MAX_BYTES:,} bytes", at=("home",))
            found[str(file.relative_to(folder))] = file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"home: {file} cannot be read as text: {error}", at=("home",)) from None
    return found


def few_variables() -> dict[str, str]:
    """The variables of this process that say nothing of the person: where programs are, and the language."""
    return {name: value for name, value in os.environ.items() if name in _PASSED or name.startswith("LC_")}


class SeatFolder:
    """A seat's home, with its working folder `work` in it. Whatever a program does there, nothing elsewhere is touched.

    Args:
        path: the folder, which is made.
        files: path in the home → content; `{NAME}` stands for a variable of `variables`.
        variables: those by which the program finds its model.
        seen_as: where the program finds the folder; None: at the same path.

    Attributes:
        home, work: the folders, as the program finds them.

    Raises:
        RequestError: the folder cannot be made; an earlier program has left there what cannot be removed.
    """

    def __init__(
        self, path: Path, files: Mapping[str, str], variables: Mapping[str, str], seen_as: Path | None
    ) -> None:
        self.path, self.home = path, seen_as or path
        self.work = self.home / "work"
        known = {**variables, "HOME": str(self.home)}
        _remove(path)  # of a run that was killed
        try:
            path.mkdir(mode=0o700)
            for name, content in files.items():
                target = path / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_VARIABLE.sub(lambda found: known.get(found[1], found[0]), content))
        except OSError as error:
            raise RequestError(f"its folder cannot be made: {error}") from None

    def prepare(self, prompt: bytes, reply: str) -> Path:
        """Make what a turn needs: the folders, the file of the prompt; no reply is left of an earlier turn.

        Returns the prompt's file, as the program finds it. Raises `RequestError`: the program has made that impossible.
        """
        try:
            self.path.chmod(0o700)
            for name in _FOLDERS:
                self._own(name).mkdir(mode=0o700, exist_ok=True)
            self._own("work").chmod(0o700)
            if reply:
                self._own("work", reply).unlink(missing_ok=True)
            file = self._own("prompt.txt")
            file.unlink(missing_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
                out.write(prompt)
        except OSError as error:
            raise RequestError(f"its folder cannot be used: {error}") from None
        return self.home / "prompt.txt"

    def read(self, name: str, most: int) -> bytes:
        """A file of the working folder, of at most so many bytes; no link leads elsewhere, no pipe is waited for.

        Raises:
            RequestError: there is none, or it is longer.
        """
        try:
            with os.fdopen(os.open(self._own("work", name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise RequestError(f"{name} is not a file")
                data = file.read(most + 1)
        except FileNotFoundError:
            raise RequestError(f"it wrote no file {name}") from None
        except OSError as error:
            raise RequestError(f"{name} cannot be read: {error.strerror or error}") from None
        if len(data) > most:
            raise RequestError(f"{name} has more than {most:,} bytes")
        return data

    def _own(self, *parts: str) -> Path:
        """A path in the folder, whose parents are in it too. Raises `RequestError` where a link leads elsewhere."""
        path = self.path.joinpath(*parts)
        if not path.parent.resolve().is_relative_to(self.path.resolve()) or (parts == ("work",) and path.is_symlink()):
            raise RequestError(f"{'/'.join(parts)} leads out of its folder")
        return path

    def remove(self) -> None:
        _remove(self.path)


class SeatFolders:
    """The folders of an engine's seats, below one that only this user may enter.

    Args:
        run: what names the run and the engine: the folders of a resumed run have the paths that they had before, as far
            as it is the same. None: of no run.

    Raises:
        SetupError: the folder for temporary files cannot be used.
    """

    def __init__(self, run: str | None) -> None:
        base = Path(tempfile.gettempdir(), f"harness-{os.getuid()}")
        try:
            base.mkdir(mode=0o700, exist_ok=True)
            state = base.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
                hint = "Remove it, or set TMPDIR to a folder of your own."
                raise SetupError(f"{base} is not a folder that only you may enter", hint=hint)
            if run is None:
                self.root = Path(tempfile.mkdtemp(dir=base))
            else:
                self.root = base / _short(run)
                _remove(self.root)
                self.root.mkdir(mode=0o700)
        except OSError as error:
            raise SetupError(f"{base} cannot be written: {error.strerror or error}") from None
        self._folders: dict[str, SeatFolder] = {}

    def make(
        self, name: str, files: Mapping[str, str], variables: Mapping[str, str], seen_as: Path | None
    ) -> SeatFolder:
        """A new folder of a name, at the same path as one before."""
        folder = self._folders[name] = SeatFolder(self.root / _short(name), files, variables, seen_as)
        return folder

    def forget(self, name: str, folder: SeatFolder) -> None:
        """Remove a folder, unless a later one has its name."""
        if self._folders.get(name) is folder:
            del self._folders[name]
            folder.remove()

    def close(self) -> None:
        _remove(self.root)


def _remove(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as that is possible. What programs have forbidden in it is allowed
    again; none of them is alive."""
    with contextlib.suppress(OSError, RecursionError):  # folders in folders, hundreds deep
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.is_dir() or folder.is_symlink():
            return
        folder.chmod(0o700)
        for above, names, _ in os.walk(folder):
            for path in (Path(above, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _short(name: str) -> str:
    """A name for a folder, the same for the same text."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:16]
