"""Offline runs of Weights & Biases, written by the real package and read with its own messages."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import StorageError
from harness.extensions.exports import export
from harness.extensions.exports.weights_and_biases import folder_name
from tests.helpers.commands import invoke
from tests.helpers.disk import full_disk
from tests.helpers.toy import run

pytestmark = pytest.mark.export
BLOCK = 1 << 15


def records(path: Path) -> Iterator[Any]:
    """The messages of a run's file: a LevelDB log behind a header of seven bytes."""
    from wandb.proto import wandb_internal_pb2

    data, position, parts = path.read_bytes(), 7, b""
    assert data.startswith(b":W&B")
    while position + 7 <= len(data):
        left = BLOCK - position % BLOCK
        if left < 7:
            position += left
            continue
        _, size, kind = struct.unpack("<IHB", data[position : position + 7])
        parts += data[position + 7 : position + 7 + size]
        position += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


class Offline:
    """An exported run, and what its file holds."""

    def __init__(self, exported: harness.Run, folder: Path) -> None:
        self.before = dict(os.environ)
        done = export(exported, "wandb", folder)
        assert dict(os.environ) == self.before
        (self.folder,), self.summary = done.files, done.summary
        (self.file,) = self.folder.glob("wandb/offline-run-*/run-*.wandb")
        self.records = list(records(self.file))

    def of(self, kind: str) -> list[Any]:
        return [getattr(record, kind) for record in self.records if record.WhichOneof("record_type") == kind]

    def values(self) -> dict[str, Any]:
        return {u.key: json.loads(u.value_json) for record in self.of("summary") for u in record.update if u.key}

    def table(self, name: str) -> list[dict[str, Any]]:
        (file,) = self.file.parent.glob(f"files/media/table/{name}_*.table.json")
        table = json.loads(file.read_text("utf-8"))
        return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


@pytest.fixture(scope="module")
def offline(done: harness.Run, tmp_path_factory: pytest.TempPathFactory) -> Offline:
    return Offline(done, tmp_path_factory.mktemp("wandb") / "x")


def test_the_configuration_is_what_was_run(offline: Offline, done: harness.Run) -> None:
    (started,) = offline.of("run")
    config = {update.key: json.loads(update.value_json) for update in started.config.update}
    assert (started.project, started.display_name, config["model"]) == ("toy", "r", "mock") and started.host == "-"
    assert config["spec"]["matrix"] == {"agents": [2, 3]} and config["spec_digest"] == done.meta["spec_digest"]


def test_the_summary_has_every_metric(offline: Offline, done: harness.Run) -> None:
    summary = offline.values()
    numbers = [score.number("agreed") for score in done.scores]
    assert summary["agreed"] == sum(numbers) / 8 and summary["agreed/n"] == summary["episodes"] == 8
    assert summary["failed"] == 0 and "agreed/stderr" in summary


def test_a_headline_is_there_where_enough_turns_were_read(offline: Offline, done: harness.Run, tmp_path: Path) -> None:
    assert done.headline_missing and "headline" not in offline.values()
    (started,) = offline.of("run")
    config = {update.key: json.loads(update.value_json) for update in started.config.update}
    assert config["headline"]["missing"] == done.headline_missing
    summary = Offline(run(tmp_path / "r", overrides=("headline.metric=agreed",)), tmp_path / "x").values()
    assert summary["headline"] == summary["agreed"] and summary["headline/low"] <= summary["headline"]


def test_tables(offline: Offline, done: harness.Run) -> None:
    results, episodes = offline.table("result_table"), offline.table("episode_table")
    assert [(row["condition"], row["metric"], row["value"], row["label_agents"]) for row in results] == [
        (row["condition"], row["metric"], row["value"], row["labels"]["agents"]) for row in done.rows
    ]
    assert [row["agreed"] for row in episodes] == [row["agreed"] for row in done.episodes()]
    assert all(len(cell) <= 1_001 for row in episodes for cell in row.values() if isinstance(cell, str))


def test_the_artifact_has_everything_where_it_says(offline: Offline) -> None:
    artifact = next(record for record in offline.of("artifact") if record.type == "evaluation")
    places = {entry.path: Path(entry.local_path) for entry in artifact.manifest.contents}
    assert set(places) == {"episodes.parquet", "turns.parquet", "run.json", "spec.yaml", "results.json"}
    staged = [Path(entry.local_path) for other in offline.of("artifact") for entry in other.manifest.contents]
    assert all(place.is_file() and place.is_relative_to(offline.folder) for place in staged)


def test_nothing_of_this_machine_is_written(offline: Offline) -> None:
    assert {file.name for file in (offline.file.parent / "files").iterdir()} == {"media"}


def test_the_package_would_upload_it(offline: Offline, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "wandb", "sync", "--dry-run", str(offline.file.parent)]
    environment = {**os.environ, "WANDB_ERROR_REPORTING": "false", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert offline.file.parent.name in done.stdout + done.stderr
    assert f"wandb sync {offline.file.parent}" in offline.summary


def test_what_is_there_stays(offline: Offline, capsys: pytest.CaptureFixture[str], done: harness.Run) -> None:
    folder = offline.folder.parent
    code, _, err = invoke(capsys, "export", str(done.folder), "--to", "wandb", "-o", str(folder))
    assert code == 2 and f"already contains {folder_name(done)}" in err and offline.file.is_file()


def test_a_full_disk_leaves_nothing_behind(done: harness.Run, tmp_path: Path) -> None:
    with full_disk(4_000), pytest.raises(StorageError, match="cannot write the export"):
        export(done, "wandb", tmp_path)
    assert not any(tmp_path.iterdir())
