"""Logs one offline run with `wandb`, in a process of its own: run as a script with a JSON document on stdin.

The package writes the last of a run only when its process ends, and reads its folders from the environment. Imports
nothing of the harness.
"""

import json
import sys
from pathlib import Path
from typing import Any

import wandb
from pyarrow import parquet


def main(document: dict[str, Any]) -> None:
    """Log the run that the document describes (`weights_and_biases.write_run`)."""
    files, most, longest = Path(document["files"]), document["most_rows"], document["longest_cell"]
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        save_code=False,
        host="-",  # that of the export says nothing about the run
        x_disable_meta=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
        x_start_time=document["start"],
    )
    with wandb.init(mode="offline", tags=["harness"], settings=settings, **document["run"]) as run:
        run.summary.update(document["summary"])
        rows = [[_cell(value, longest) for value in row] for row in document["results"][:most]]
        results = wandb.Table(document["columns"], rows, allow_mixed_types=True)
        run.log({"result_table": results, "episode_table": _episodes(files / "episodes.parquet", most, longest)})
        artifact = wandb.Artifact(document["artifact"], type="evaluation")
        for file in sorted(files.iterdir()):
            artifact.add_file(str(file), policy="immutable", skip_cache=True)  # it stays where it is
        run.log_artifact(artifact)


def _episodes(file: Path, most: int, longest: int) -> Any:
    rows: list[list[Any]] = []
    with parquet.ParquetFile(file) as source:
        for batch in source.iter_batches(1_000):
            rows += [[_cell(value, longest) for value in row.values()] for row in batch.to_pylist()]
            if len(rows) >= most:
                break
        return wandb.Table(source.schema_arrow.names, rows[:most], allow_mixed_types=True)


def _cell(value: Any, longest: int) -> Any:
    if not isinstance(value, str | int | float | None):
        value = json.dumps(value, ensure_ascii=False)
    return f"{value[:longest]}…" if isinstance(value, str) and len(value) > longest else value


if __name__ == "__main__":
    main(json.load(sys.stdin))
