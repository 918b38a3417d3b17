"""`harness export --to csv | jsonl | parquet`, and the same rows from Python."""

import csv
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

import harness
from harness.api.errors import DataError, StorageError
from harness.extensions.exports import export
from harness.extensions.exports._output import output
from harness.tables import NOT_RUN, EpisodeScore
from harness.transcripts.tidy import TURN_COLUMNS, Tidy
from tests.helpers.commands import invoke
from tests.helpers.disk import full_disk
from tests.helpers.toy import TOY, run


def test_rows_from_python(done: harness.Run, replies: set[str]) -> None:
    episodes, turns = list(done.episodes()), list(done.turns())
    assert {episode["episode"] for episode in episodes} == {score.id for score in done.scores}
    assert [list(episode) for episode in episodes] == [[c.name for c in done.tidy.episode_columns]] * len(episodes)
    assert [list(turn) for turn in turns] == [[c.name for c in TURN_COLUMNS]] * len(turns)
    scores = {score.id: score for score in done.scores}
    for episode in episodes:
        own = [turn for turn in turns if turn["episode"] == episode["episode"]]
        assert episode["agreed"] == scores[episode["episode"]].numbers["agreed"]
        assert (episode["model"], episode["spec"], episode["agents"]) == ("mock", "toy", len(episode["models"]))
        assert (episode["turns"], episode["rounds"]) == (len(own), 3)
        assert episode["calls"] == sum(turn["calls"] for turn in own)
        assert episode["failed_turns"] == sum(turn["error"] is not None for turn in own)
    unread = next(turn for turn in turns if turn["error_kind"] == "parse")
    assert unread["prompt"][-1]["role"] == "user" and unread["reply"] in replies and unread["action"] is None
    read = next(turn for turn in turns if turn["error"] is None)
    assert (read["action"], read["model"], read["policy"], read["group"]) == ("b", "mock", None, "default")


def test_data_frames(done: harness.Run) -> None:
    episodes, turns = done.to_pandas("episodes"), done.to_pandas("turns")
    assert len(episodes) == len(done.scores) and len(turns) == episodes["turns"].sum()
    assert episodes["agreed"].dtype == "float64" and turns["input_tokens"].isna().all()
    assert list(done.to_pandas().columns) == list(done.to_pandas("results").columns)
    with pytest.raises(ValueError, match="not 'rounds'"):
        done.to_pandas("rounds")  # type: ignore[arg-type]


def test_a_policys_turns_name_the_policy(tmp_path: Path) -> None:
    turn = next(run(tmp_path / "r").turns())
    assert (turn["policy"], turn["model"], turn["reply"], turn["calls"]) == ("coin", None, None, 0)


def test_csv_is_safe_in_a_spreadsheet(capsys: pytest.CaptureFixture[str], done: harness.Run, tmp_path: Path) -> None:
    code, out, _ = invoke(capsys, "export", str(done.folder), "--to", "csv", "-o", str(tmp_path / "x"))
    assert code == 0 and f"wrote: {tmp_path / 'x' / 'turns.csv'}" in out and "8 episodes, 60 turns" in out
    csv.field_size_limit(1 << 20)
    for name in ("episodes", "turns"):
        text = (tmp_path / "x" / f"{name}.csv").read_text("utf-8")
        rows = list(csv.DictReader(text.splitlines()))
        assert len(rows) == len(text.splitlines()) - 1
        assert not any(cell[:1] in tuple("=+-@") or len(cell) > 32_767 for row in rows for cell in row.values())
    cells = {row["reply"] for row in rows}
    assert "'=HYPERLINK('x')" in cells and "\\x1b[2J\\u202ea�" in cells
    assert any(cell.endswith("… [cut: 40000 characters]") for cell in cells)
    assert json.loads(rows[0]["prompt"])[-1]["role"] == "user"


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_other_tables_hold_everything(done: harness.Run, tmp_path: Path, replies: set[str], form: str) -> None:
    files = export(done, form, tmp_path / "x").files
    assert [file.name for file in files] == [f"episodes.{form}", f"turns.{form}"]
    episodes, turns = (_read(file) for file in files)
    assert {turn["reply"] for turn in turns} == replies
    expected = list(done.turns())
    for turn, row in zip(turns, expected, strict=True):
        action = json.loads(turn["action"]) if form == "parquet" and turn["action"] is not None else turn["action"]
        assert action == row["action"] and turn["prompt"] == row["prompt"] and turn["round"] == row["round"]
    assert [episode["agreed"] for episode in episodes] == [row["agreed"] for row in done.episodes()]
    assert {episode["label_agents"] for episode in episodes} == {2, 3}


def _read(file: Path) -> list[dict[str, Any]]:
    if file.suffix == ".parquet":
        rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
        return rows
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def test_columns_have_names_of_their_own_and_types() -> None:
    def score(number: int, **labels: Any) -> EpisodeScore:
        return EpisodeScore(f"c/{number}/0", "c", {"model": "m", **labels}, {"calls": 1.0, "size": 2})

    scores = [score(0, size=1, turns="x", mixed=1, none=None), score(1, size=2.5, turns="y", mixed="z", none=True)]
    tidy = Tidy({"run": "r", "spec": "s", "model": "m"}, scores, {"calls": None, "size": None})  # type: ignore[dict-item]
    kinds = {column.name: column.kind for column in tidy.episode_columns}
    assert kinds["metric_calls"] == kinds["size"] == "number" and kinds["calls"] == "integer"
    assert (kinds["label_size"], kinds["label_turns"]) == ("number", "text")
    assert (kinds["mixed"], kinds["none"]) == ("json", "flag")
    (row, turns), _ = tidy.rows([])
    assert (row["size"], row["label_size"], row["label_turns"], row["turns"], [*turns]) == (2, 1, "x", None, [])


def test_episodes_that_never_ran_are_rows(done: harness.Run) -> None:
    absent = EpisodeScore("agents=9/c9/0", "agents=9", {"model": "mock", "agents": 9}, error=NOT_RUN)
    rows = list(Tidy(done.meta, [*done.scores, absent], done.metrics).rows(done.transcripts()))
    assert len(rows) == 9 and rows[-1][0]["error"] == "not run" and rows[-1][0]["agreed"] is None


def test_what_is_there_stays(capsys: pytest.CaptureFixture[str], done: harness.Run, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    command = ("export", str(done.folder), "--to", "jsonl", "-o", str(folder))
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    (folder / "turns.jsonl").write_text("mine")
    code, _, err = invoke(capsys, *command)
    assert code == 2 and err.startswith(f"error: {folder} already contains turns.jsonl") and "--overwrite" in err
    assert (folder / "turns.jsonl").read_text() == "mine"
    assert invoke(capsys, *command, "--overwrite")[0] == 0
    assert sorted(path.name for path in folder.iterdir()) == ["episodes.jsonl", "mine.txt", "turns.jsonl"]
    assert len((folder / "turns.jsonl").read_text().splitlines()) == 60


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_full_disk_leaves_nothing_behind(done: harness.Run, tmp_path: Path, form: str) -> None:
    with full_disk(20_000), pytest.raises(StorageError, match="cannot write the export"):
        export(done, form, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_what_a_killed_export_left_is_removed_by_the_next_one(done: harness.Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    script = (
        "import os, signal, sys; from pathlib import Path; from harness.extensions.exports._output import output\n"
        "with output(Path(sys.argv[1]), ('a.csv',)) as target:\n"
        "    (target.parts / 'a.csv').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(folder)], check=False).returncode == -signal.SIGKILL
    [left] = folder.iterdir()
    with output(folder, ("b.csv",)) as living:  # another export that is under way stays
        (living.parts / "b.csv").write_text("b")
        export(done, "csv", folder)
        assert not left.exists() and living.parts.exists()
    assert sorted(path.name for path in folder.iterdir()) == ["b.csv", "episodes.csv", "turns.csv"]


def test_mistakes(capsys: pytest.CaptureFixture[str], done: harness.Run, tmp_path: Path) -> None:
    _, _, err = invoke(capsys, "export", str(done.folder.parent / "rr"), "--to", "csv")
    assert err.splitlines()[0].startswith("error: folder not found") and "r" in err
    (tmp_path / "run.json").write_text((done.folder / "run.json").read_text())
    code, _, err = invoke(capsys, "export", str(tmp_path), "--to", "csv")
    assert code == 2 and "is not finished" in err and "eval command again" in err
    (tmp_path / "file").write_text("")
    code, _, err = invoke(capsys, "export", str(done.folder), "--to", "csv", "-o", str(tmp_path / "file"))
    assert code == 2 and "cannot write to" in err and "Traceback" not in err
    with pytest.raises(DataError, match="parquet"):
        export(done, "parket")
    with pytest.raises(DataError, match="public"):
        export(done, "csv", tmp_path, public=True)


@pytest.mark.parametrize(
    ("package", "form", "extra"),
    [("pyarrow", "parquet", "parquet"), ("huggingface_hub", "hub", "hub"), ("wandb", "wandb", "wandb")],
)
def test_without_a_package_the_pip_command_is_reported(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    done: harness.Run,
    tmp_path: Path,
    package: str,
    form: str,
    extra: str,
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    more = ("--repo", "me/runs") if form == "hub" else ()
    code, _, err = invoke(capsys, "export", str(done.folder), "--to", form, "-o", str(tmp_path / "x"), *more)
    assert code == 2 and f"needs the package {package}" in err
    assert f'pip install "mas-eval-harness[{extra}]"' in err and not (tmp_path / "x").exists()


def test_metrics_are_those_of_the_last_scoring(tmp_path: Path) -> None:
    run(tmp_path / "r")
    scores = (tmp_path / "r" / "scores.jsonl").read_text()
    (tmp_path / "r" / "scores.jsonl").write_text(re.sub(r'"agreed": [\d.]+', '"agreed": 0.25', scores))
    assert {row["agreed"] for row in harness.load_run(tmp_path / "r").episodes()} == {0.25}


def test_a_damaged_journal_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    damaged = run(tmp_path / "r")
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"k":"move"', b'"k":"mvoe"', 1))
    with pytest.raises(DataError, match="checksum"):
        export(damaged, "jsonl")
    assert not (tmp_path / "r" / "export" / "jsonl").exists()
    assert damaged.project is TOY


@pytest.mark.parametrize("link", ["out", "out/model"])
def test_nothing_is_written_through_a_link(done: harness.Run, tmp_path: Path, link: str) -> None:
    """A received run may bring a folder of exports that leads elsewhere."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="is a link"), output(tmp_path / "out", ("model/rows.csv",), overwrite=True):
        raise AssertionError("it is open")
    assert not any((tmp_path / "elsewhere").iterdir())
