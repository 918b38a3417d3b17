"""Rows come from files of every kind, from the hub through `datasets`, and mistakes are told with their place."""

import contextlib
import csv
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import DataError
from harness.config.project import find
from harness.extensions.datasets.rows import Source
from tests.extensions.datasets.documents_kit import jsonl, offline

ROWS = [{"question": "1 + 1?", "answer": "2"}, {"question": 'a "b", c\nd?', "answer": "é"}]


def read(source: Source, split: str = "test") -> list[Any]:
    return [dict(row) for _, row in source.rows(split)]


def write(folder: Path, suffix: str, stem: str = "test") -> Path:
    file = folder / f"{stem}.{suffix}"
    if suffix == "jsonl":
        return jsonl(file, ROWS)
    if suffix == "json":
        file.write_text(json.dumps(ROWS), encoding="utf-8")
    elif suffix in ("csv", "tsv"):
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.DictWriter(opened, ["question", "answer"], delimiter="\t" if suffix == "tsv" else ",")
            writer.writeheader()
            writer.writerows(ROWS)
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), file)
    return file


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_kind_of_file(tmp_path: Path, suffix: str) -> None:
    file = write(tmp_path, suffix)
    for source in (
        Source(data_files=str(file)),
        Source(dataset_path=suffix if suffix in ("json", "csv", "parquet") else None, data_files={"test": [str(file)]}),
        Source(data_dir=str(tmp_path)),
        Source(dataset_path=str(tmp_path)),
        Source(data_dir=str(tmp_path), data_files=file.name),
        Source(data_files=str(tmp_path / f"te*.{suffix}")),
    ):
        assert read(source) == ROWS


def test_files_are_looked_for_here_when_the_data_set_is_on_the_hub(tmp_path: Path) -> None:
    file = write(tmp_path, "jsonl")
    assert read(Source(dataset_path="somebody/on-the-hub", data_files=os.path.relpath(file))) == ROWS


def test_json_with_a_data_list_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"version": 1, "data": ROWS}))
    assert read(Source(data_files=str(tmp_path / "a.json"))) == ROWS
    (tmp_path / "b.jsonl").write_text("\n" + json.dumps(ROWS[0]) + "\n\n")
    assert read(Source(data_files=str(tmp_path / "b.jsonl"))) == ROWS[:1]


def test_files_as_spreadsheets_write_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\ufeffq,a\r\n?,b\r\n".encode())
    assert read(Source(data_files=str(tmp_path / "a.csv"))) == [{"q": "?", "a": "b"}]
    (tmp_path / "b.csv").write_text("q,a\n" + "x" * 200_000 + ",1\n")
    assert len(read(Source(data_files=str(tmp_path / "b.csv")))[0]["q"]) == 200_000
    assert "two columns have one name (a, a)" in bad(tmp_path, "a,a\n1,2\n", "c.csv")


def test_a_pipe_among_the_files_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "test.jsonl")
    with pytest.raises(DataError, match="there is nothing to read"):
        read(Source(data_dir=str(tmp_path)))


def test_the_split_names_the_file(tmp_path: Path) -> None:
    for name in ("validation", "sampled_test", "train-00000-of-00002", "train-00001-of-00002"):
        jsonl(tmp_path / f"{name}.jsonl", [{"file": name}])
    source = Source(data_dir=str(tmp_path))
    assert [row["file"] for row in read(source, "validation")] == ["validation"]
    assert [row["file"] for row in read(source, "test")] == ["sampled_test"]
    assert len(read(source, "train")) == 2
    (tmp_path / "dev").mkdir()
    jsonl(tmp_path / "dev" / "rows.jsonl", [{"file": "in a folder"}])
    assert read(source, "dev") == [{"file": "in a folder"}]
    with pytest.raises(DataError, match=r"no file for the split 'eval'\n  Files there: dev/rows.jsonl, .*data_files: "):
        read(source, "eval")


def bad(tmp_path: Path, text: str, name: str = "test.jsonl") -> str:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as caught:
        read(Source(data_files=str(tmp_path / name)))
    return str(caught.value).replace(str(tmp_path), "")


def test_what_cannot_be_read_is_reported_with_its_place(tmp_path: Path) -> None:
    assert bad(tmp_path, '{"a": 1}\n{"a": \n').startswith("/test.jsonl:2:1: not JSON")
    assert bad(tmp_path, "[" * 100_000 + "\n").startswith("/test.jsonl:1:1: not JSON")
    assert bad(tmp_path, '{"a": 1}\n3\n').startswith("/test.jsonl:2:1: row 2 is not an object but 3")
    assert "more values than the heading has columns (a, b)" in bad(tmp_path, "a,b\n1,2,3\n", "x.csv")
    assert "cannot read .txt files" in bad(tmp_path, "x", "x.txt")
    (tmp_path / "x.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be read"):
        read(Source(data_files=str(tmp_path / "x.jsonl")))
    with pytest.raises(DataError, match=r"there is no such file\n  Did you mean test.jsonl"):
        read(Source(data_files=str(tmp_path / "tst.jsonl")))
    with pytest.raises(DataError, match="data_files has no split 'test'"):
        read(Source(data_files={"tests": "x.jsonl"}))
    with pytest.raises(DataError, match="file not found"):
        read(Source(data_dir=str(tmp_path / "nowhere")))
    with pytest.raises(DataError, match="there is no data source"):
        read(Source(dataset_path="json"))


@pytest.mark.slow
def test_a_data_set_that_cannot_be_had_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "from harness.extensions.datasets.rows import Source\n"
        "from harness.api.errors import SetupError\n"
        "try: next(iter(Source(dataset_path='nobody/has-this').rows('test')))\n"
        "except SetupError as error: print(error)"
    )
    done = offline(code, tmp_path)
    assert "the data set nobody/has-this, split test, cannot be loaded" in done.stdout, done.stderr
    assert "--data_dir FOLDER" in done.stdout


@pytest.mark.slow
def test_what_is_no_local_folder_comes_through_the_datasets_package(tmp_path: Path) -> None:
    """A loading script's place is taken by the package's own csv reader, which needs no hub."""
    file = write(tmp_path, "csv")
    code = (
        "from harness.extensions.datasets import rows\n"
        "rows.LOADERS = ()\n"
        f"source = rows.Source(dataset_path='csv', kwargs={{}})\n"
        "import datasets; load = datasets.load_dataset\n"
        f"datasets.load_dataset = lambda *a, **k: load(*a, **k, data_files={{'test': {str(file)!r}}})\n"
        "print([dict(row) for place, row in source.rows('test')])"
    )
    done = offline(code, tmp_path)
    assert done.stdout.strip() == str(ROWS), done.stderr


@pytest.mark.parametrize("parameter", ["doc_to_text", "doc_to_target", "doc_to_choice", "labels", "process_docs"])
@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
def test_what_is_no_number_is_no_answer(tmp_path: Path, suffix: str, parameter: str) -> None:
    """Python and pandas write NaN where nothing is: it was a right answer, "nan"."""
    good, bad = {"q": "a?", "a": 1.5, "c": [1.0, 1.5]}, {"q": "b?", "a": float("nan"), "c": [1.0, float("inf")]}
    file = tmp_path / f"test.{suffix}"
    if suffix == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([good, bad]), file)
    else:
        rows = map(json.dumps, (good, bad))
        file.write_text("\n".join(rows) if suffix == "jsonl" else f"[{', '.join(rows)}]")
    fields: dict[str, Any] = {"doc_to_text": "q", "doc_to_target": "q"}
    for template in ("{{c}}",) if parameter == "doc_to_choice" else ("a", "{{a}}", "{{[a]}}", "so {{a}}"):
        fields |= {
            parameter: {"labels": {"l": template}, "process_docs": {"set": {"x": template}}}.get(parameter, template)
        }
        task = find().load("tasks", "dataset_qa")(data_files=str(file), **fields)
        with pytest.raises(DataError, match="which is no number") as refused:
            list(task.cases(None, 0))
        assert str(refused.value.place) == f"{file}:2:1"
        assert [case.id for case in task.cases(1, 0)] == ["0"]


def test_a_missing_file_has_the_place_in_the_spec(tmp_path: Path) -> None:
    spec = tmp_path / "sums.yaml"
    spec.write_text(
        "name: sums\nprotocol: single\n"
        "task: {use: dataset_qa, data_files: {test: sum.jsonl}, doc_to_text: question, doc_to_target: answer}\n"
    )
    jsonl(tmp_path / "sums.jsonl", ROWS)
    says = rf"{re.escape(str(spec))}:3:7: sum\.jsonl: there is no such file"
    with contextlib.chdir(tmp_path), pytest.raises(DataError, match=says):
        harness.evaluate(spec, "mock", output_path=tmp_path / "run")
    assert not (tmp_path / "run").exists()
