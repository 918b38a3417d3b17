"""What a form of export is: the extension point `exports` names objects of this kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.evaluation.run import Run


@dataclass(frozen=True)
class ExportForm:
    """A form in which a finished run is written.

    Attributes:
        files: the names of what it writes into its folder, for a run.
        write: writes a run into a folder that is empty, or `in_place` into one that may hold earlier exports; returns
            a summary in words. Raises `DataError`, `SetupError`, `OSError`.
        in_place: whether it adds to what is there; `files` then has one name, that of the folder.
    """

    files: Callable[[Run], tuple[str, ...]]
    write: Callable[[Run, Path], str]
    in_place: bool = False
