"""The documents of the tasks in this folder: one JSON lines file each, found from any working directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import DatasetDict


def splits(file: str = "", **_: Any) -> DatasetDict:
    """The file's rows by their key `split`, without it. lm-eval also passes all metadata of task and model."""
    import json

    from datasets import Dataset, DatasetDict

    rows: dict[str, list[dict[str, Any]]] = {}
    for line in (Path(__file__).parent / f"{file}.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row.pop("split"), []).append(row)
    return DatasetDict({split: Dataset.from_list(of) for split, of in rows.items()})
