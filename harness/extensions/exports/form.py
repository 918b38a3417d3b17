"""What a form of export is: the extension point `exports` names objects of this kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ExportForm:
    """A form in which a finished run is written.

    Attributes:
        files: the names of what it writes into its folder, for a run and the options that it `takes`.
        write: called with a run and a folder that is empty, or `in_place` may hold earlier exports; writes the run into
            it and returns a summary in words. Raises `DataError`, `SetupError`, `OSError`.
        in_place: whether it adds to what is there; `files` then has one name, that of the folder.
        takes: the names of options of `export` that `write` takes too, where they are given.
    """

    files: Callable[..., tuple[str, ...]]
    write: Callable[..., str]
    in_place: bool = False
    takes: tuple[str, ...] = ()
