"""A task's data set from local files, in place of the hub's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.api.errors import DataError
from harness.extensions.datasets.rows import Source

_KINDS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


@dataclass(frozen=True)
class LocalData:
    """Where the rows of a task are, if not where its YAML says.

    Attributes:
        data_dir: a folder with the data set's files; of several data sets, with a folder for each of them.
        data_files: a file, several, or split → file or files.
        dataset_kwargs: more for `datasets.load_dataset`.
    """

    data_dir: str | None = None
    data_files: str | Sequence[str] | Mapping[str, Any] | None = None
    dataset_kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def replaces_hub(self) -> bool:
        """Whether a copy takes the data set's place."""
        return self.data_dir is not None or self.data_files is not None

    def load(self, path: str | None, name: str | None, splits: Sequence[str]) -> Any:
        """The `DatasetDict` of a task.

        Args:
            path: the `dataset_path` of the task.
            name: its `dataset_name`.
            splits: those that the task uses.

        Raises:
            DataError: for missing folders, files or splits.
        """
        import datasets

        folder = self._folder(path, name)
        if folder is not None and self.data_files is None:
            if (folder / "dataset_dict.json").is_file():
                return datasets.load_from_disk(str(folder))
            if (folder / "README.md").is_file() or (folder / "dataset_infos.json").is_file():  # a clone of the hub's
                config = {"name": name} if name in datasets.get_dataset_config_names(str(folder)) else {}
                return datasets.load_dataset(str(folder), **config, **self.dataset_kwargs)
        source = Source(None, None, self.data_files, str(folder) if folder is not None else None)
        files = {split: [str(file) for file in source.files(split)] for split in splits}
        kinds = {_KINDS.get(Path(file).suffix, "") for paths in files.values() for file in paths}
        if len(kinds) != 1 or "" in kinds:
            names = ", ".join(sorted({Path(file).name for paths in files.values() for file in paths}))
            raise DataError(f"the files {names} are not all of one kind", hint="JSON lines, CSV or Parquet are read.")
        [kind] = kinds
        more = {"delimiter": "\t"} if all(f.endswith(".tsv") for paths in files.values() for f in paths) else {}
        return datasets.load_dataset(kind, data_files=files, **more)

    def _folder(self, path: str | None, name: str | None) -> Path | None:
        """The folder of this data set: `data_dir` itself, or the one in it that is called like the data set."""
        if self.data_dir is None:
            return None
        folder = Path(self.data_dir).expanduser()
        for part in (path, (path or "").rpartition("/")[2]):
            if part and not Path(part).is_absolute() and ".." not in Path(part).parts and (folder / part).is_dir():
                folder = folder / part
                break
        if name and not Path(name).is_absolute() and ".." not in Path(name).parts and (folder / name).is_dir():
            folder = folder / name
        return folder
