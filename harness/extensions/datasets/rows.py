"""Rows of a data set, one at a time: from local JSON, JSONL, CSV or Parquet files, or through Hugging Face `datasets`.

Local JSON lines and CSV are read without any package, line by line: `datasets` alone takes more memory than a run.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, Place, SetupError, near

Row = Mapping[str, Any]
LOADERS = ("json", "csv", "parquet")
"""Values of `dataset_path` that name a kind of files instead of a data set, as in `datasets.load_dataset`."""


@dataclass(frozen=True)
class Source:
    """Where rows come from.

    Attributes:
        dataset_path: a data set on the hub, a local folder, or json, csv, parquet for `data_files`.
        dataset_name: its configuration.
        data_files: a file, several (patterns allowed), or split → file or files.
        data_dir: the folder of files; without `data_files` the split's name finds them.
        kwargs: more for `datasets.load_dataset`, e.g. revision.
        roots: the folders from which relative paths count; the first that has the file decides.
    """

    dataset_path: str | None = None
    dataset_name: str | None = None
    data_files: str | Sequence[str] | Mapping[str, Any] | None = None
    data_dir: str | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    roots: tuple[Path, ...] = (Path(),)

    def __str__(self) -> str:
        return str(self.data_dir or self.dataset_path or self.data_files)

    @property
    def local(self) -> bool:
        """Whether the rows are in local files."""
        return bool(self.data_files or self.data_dir or self._has_folder)

    @property
    def _has_folder(self) -> bool:
        """Whether `dataset_path` is a local folder."""
        return bool(self.dataset_path and any((root / self.dataset_path).is_dir() for root in self.roots))

    def rows(self, split: str) -> Iterator[tuple[Place, Row]]:
        """Yield the rows of a split with their places.

        Raises:
            DataError: if a file is missing or unreadable.
            SetupError: if a package is missing or the hub cannot be reached.
        """
        if self.local:
            return read_files(self.files(split))
        return _hub(self, split)

    def files(self, split: str) -> list[Path]:
        """Return the split's local files. Raises `DataError` if there are none, or the choice is ambiguous."""
        given = Path(self.data_dir or (self.dataset_path if self._has_folder else None) or ".").expanduser()
        folders = list(dict.fromkeys(root / given for root in self.roots))
        files = self.data_files
        if isinstance(files, Mapping):
            if split not in files:
                raise DataError(f"data_files has no split {split!r}", hint=near(split, map(str, files)))
            files = files[split]
        if files:
            names = [files] if isinstance(files, str) else files
            return [file for name in names for file in _matching_files(folders, name)]
        folder = next((one for one in folders if one.exists()), None)
        if folder is None:
            hint = f"{_looked_for(folders)}Set it to a folder with the data set's files, or to one file."
            raise DataError(f"file not found: {given}", hint=hint)
        if folder.is_file():
            return [folder]
        candidates = sorted(f for f in folder.rglob("*") if f.suffix in READERS and f.is_file())
        if not candidates:
            raise DataError("there is nothing to read", place=Place(str(folder)), hint=_KINDS)
        return _of_split(split, candidates, folder)


def _matching_files(folders: Sequence[Path], name: str) -> list[Path]:
    """The files of a name, or of a pattern, in the first folder that has one. Raises `DataError`."""
    paths = list(dict.fromkeys(folder / Path(name).expanduser() for folder in folders))
    for path in paths:
        files = sorted(path.parent.glob(path.name)) if re.search(r"[*?\[]", path.name) else [path]
        if files and files[0].is_file():
            return files
    others = [file.name for path in paths for file in path.parent.glob("*") if file.suffix in READERS]
    hint = f"{_looked_for(paths)}{near(paths[0].name, others)}"
    raise DataError("there is no such file", place=Place(str(paths[0])), hint=hint)


def _looked_for(paths: Sequence[Path]) -> str:
    """The beginning of a hint; nothing of an absolute path, which the message names."""
    if paths[0].is_absolute():
        return ""
    return f"Looked for {' and '.join(str(path.absolute()) for path in paths)}. "


def _of_split(split: str, files: list[Path], folder: Path) -> list[Path]:
    """Return the files named like the split, else with it as a word, else in such a folder, else the only file."""
    for fits in (
        lambda file: file.stem == split or re.fullmatch(rf"{re.escape(split)}-\d+-of-\d+", file.stem),
        lambda file: split in re.split(r"[^a-z0-9]+", file.stem.lower()),
        lambda file: split in file.relative_to(folder).parts[:-1],
        lambda file: len(files) == 1,
    ):
        matches = [file for file in files if fits(file)]
        if matches:
            return matches
    names = ", ".join(str(file.relative_to(folder)) for file in files[:10])
    hint = f"Files there: {names}. Say which, e.g. data_files: {{{split}: {files[0].name}}}."
    raise DataError(f"no file for the split {split!r}", place=Place(str(folder)), hint=hint)


# --------------------------------------------------------------------------------------------- files


Reader = Callable[[Path], Iterator[tuple[int, Any]]]


def read_files(files: Iterable[Path], readers: Mapping[str, Reader] | None = None) -> Iterator[tuple[Place, Row]]:
    """Yield the rows of files. Raises `DataError` with the place for unreadable files and rows that are not objects."""
    for file in files:
        reader = (readers or READERS).get(file.suffix)
        if reader is None:
            raise DataError(f"cannot read {file.suffix or 'this'} files", place=Place(str(file)), hint=_KINDS)
        try:
            for line, row in reader(file):
                if not isinstance(row, Mapping):
                    raise DataError(f"row {line} is not an object but {row!r:.60}", place=Place(str(file), line, 1))
                yield Place(str(file), line, 1), row
        except (OSError, ValueError, RecursionError, csv.Error) as error:
            raise DataError(f"the file cannot be read: {error}", place=Place(str(file))) from error


def _json(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open(encoding="utf-8-sig") as text:
        value = json.load(text)
    if isinstance(value, Mapping) and isinstance(value.get("data"), list):
        value = value["data"]
    yield from enumerate(value if isinstance(value, list) else [value], 1)


def _jsonl(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open(encoding="utf-8-sig") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"not JSON: {error}", place=Place(str(file), number, 1)) from error


def _csv(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        csv.field_size_limit(max(csv.field_size_limit(), 1 << 27))
        reader = csv.DictReader(lines, delimiter="\t" if file.suffix == ".tsv" else ",")
        columns = list(reader.fieldnames or ())
        if len(set(columns)) < len(columns):
            raise DataError(f"two columns have one name ({', '.join(columns)})", place=Place(str(file), 1, 1))
        for row in reader:
            if None in row:
                message = f"the row has more values than the heading has columns ({', '.join(reader.fieldnames or ())})"
                raise DataError(message, place=Place(str(file), reader.line_num, 1))
            yield reader.line_num, row


def _parquet(file: Path) -> Iterator[tuple[int, Any]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise SetupError("reading Parquet files needs the `pyarrow` package", hint=_INSTALL) from error
    number = 0
    for batch in parquet.ParquetFile(file).iter_batches(batch_size=1000):
        for row in batch.to_pylist():
            number += 1
            yield number, row


READERS: dict[str, Reader] = {
    ".json": _json,
    ".jsonl": _jsonl,
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
}
_KINDS = f"Files that can be read: {', '.join(READERS)}."
_INSTALL = "pip install 'mas-eval-harness[data]'"


# ----------------------------------------------------------------------------------------------- hub


def _hub(source: Source, split: str) -> Iterator[tuple[Place, Row]]:
    if not source.dataset_path or source.dataset_path in LOADERS:
        raise DataError("there is no data source", hint="Set dataset_path, data_files, or --data_dir.")
    try:
        import datasets
    except ImportError as error:
        raise SetupError(f"the data set {source} needs the `datasets` package", hint=_INSTALL) from error
    kwargs = {key: value for key, value in source.kwargs.items() if key not in ("data_files", "data_dir")}
    try:
        rows = datasets.load_dataset(source.dataset_path, source.dataset_name, split=split, **kwargs)
    except Exception as error:  # the package raises dozens of kinds
        configuration = f" ({source.dataset_name})" if source.dataset_name else ""
        raise SetupError(
            f"the data set {source.dataset_path}{configuration}, split {split}, cannot be loaded: {error}",
            hint="Without a connection use a folder with its files: --data_dir FOLDER (or data_files in the spec).",
        ) from error
    for number, row in enumerate(rows, 1):
        yield Place(f"{source.dataset_path}[{split}]", number, 1), row
