"""The folder that an export goes to: complete files appear there, or none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.api.errors import DataError, StorageError

_PARTS = ".export-"


class ExportFolder:
    """What an export writes: the files come to their place once all are whole.

    Attributes:
        folder: where they will be.
        parts: an empty folder to write them into.
        files: what came to its place, after the end.
    """

    def __init__(self, folder: Path, parts: Path) -> None:
        self.folder, self.parts, self.files = folder, parts, list[Path]()


@contextlib.contextmanager
def output(folder: Path, names: tuple[str, ...], overwrite: bool = False) -> Iterator[ExportFolder]:
    """Make `folder`, let the caller write, and move what was written there. Nothing else in it is touched.

    Args:
        folder: may exist and hold other things.
        names: the files and folders that will be written into it, FOLDER/NAME for one in a folder of its own.
        overwrite: replace those.

    Raises:
        DataError: one of them is there, a link would be written through, or the folder cannot be written.
        StorageError: writing failed, on a full disk for instance; then nothing has changed.
    """
    _refuse(folder, names, overwrite)
    was_there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        parts = Path(tempfile.mkdtemp(prefix=_PARTS, dir=folder))
        held = _locked(parts)
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror or error}"
        raise DataError(message, hint="Choose another folder with --output.") from None
    try:
        target = ExportFolder(folder, parts)
        yield target
        for name in sorted(names):
            place = folder / name
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            place.parent.mkdir(exist_ok=True)
            target.files.append((parts / name).replace(place))
    except OSError as error:
        raise _failed(folder, error) from None
    finally:
        shutil.rmtree(parts, ignore_errors=True)
        if held is not None:
            os.close(held)
        if not was_there:
            with contextlib.suppress(OSError):  # it holds the export
                folder.rmdir()


@contextlib.contextmanager
def in_place(folder: Path, name: str, overwrite: bool = False) -> Iterator[Path]:
    """Make an empty folder `name` in `folder`, for what notes down where its files are; removed where writing fails.

    Arguments and errors as for `output`, but what is overwritten is gone from the start.
    """
    _refuse(folder, (name,), overwrite)
    place, was_there = folder / name, folder.exists()
    try:
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)
        place.mkdir(parents=True)
    except OSError as error:
        message = f"cannot write to {folder}: {error.strerror or error}"
        raise DataError(message, hint="Choose another folder with --output.") from None
    try:
        yield place.resolve()
    except BaseException as error:
        shutil.rmtree(place, ignore_errors=True)
        if not was_there:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise _failed(folder, error) from None
        raise


def _sweep(folder: Path) -> None:
    """Remove what exports have left whose processes were killed: nothing else can, at such an end."""
    for left in folder.glob(f"{_PARTS}*"):
        if not left.is_symlink() and (held := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(held)


def _locked(parts: Path) -> int | None:
    """The folder, locked by this process until it ends or closes this; None if another one holds it."""
    try:
        held = os.open(parts, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a living export, or a disk without locks
        os.close(held)
        return None
    return held


def _refuse(folder: Path, names: tuple[str, ...], overwrite: bool) -> None:
    parents = [folder, *(folder / name for name in sorted({name.rpartition("/")[0] for name in names} - {""}))]
    if (link := next(filter(Path.is_symlink, parents), None)) is not None:  # of a run from elsewhere, perhaps
        hint = f"Give the folder itself with --output: {link.resolve()}"
        raise DataError(f"{link} is a link, and exports are not written through links", hint=hint)
    there = [name for name in names if (folder / name).exists() or (folder / name).is_symlink()]
    if there and not overwrite:
        message = f"{folder} already contains {', '.join(there)}"
        raise DataError(message, hint="Choose another folder with --output, or add --overwrite to replace it.")


def _failed(folder: Path, error: OSError) -> StorageError:
    hint = "Make room or choose another folder with --output; the run is as it was."
    return StorageError(f"cannot write the export to {folder}: {error.strerror or error}", hint=hint)
