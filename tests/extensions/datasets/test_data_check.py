"""`harness validate` reads local data whole, as a run does."""

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.extensions.datasets import data_check

SPEC = """
name: sums
matrix: {size: [one, two]}
task:
  use: dataset_qa
  data_files: {test: "${size}.jsonl"}
  doc_to_text: q
  doc_to_target: a
  answer: {form: number}
protocol: single
prompts: qa/standard
metrics: [score]
"""
ROWS = [json.dumps({"id": str(i), "q": f"{i} + {i}?", "a": str(2 * i)}) for i in range(5)]


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spec over two good files."""
    monkeypatch.chdir(tmp_path)
    Path("sums.yaml").write_text(SPEC)
    for name in ("one", "two"):
        Path(f"{name}.jsonl").write_text("\n".join(ROWS) + "\n")
    return Path("sums.yaml")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{broken", "one.jsonl:6:1: not JSON"),
        ('{"id": "x", "q": "1 + 1?"}', "one.jsonl:6:1: doc_to_target uses the column 'a'"),
        ('{"id": "x", "q": "", "a": "1"}', "one.jsonl:6:1: the row has no question"),
        (ROWS[0], "one.jsonl:6:1: the id '0' occurs twice"),
    ],
    ids=["json", "column", "question", "id"],
)
def test_a_mistake_in_any_row_is_found(line: str, message: str, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(spec)]) == 0
    for name in ("one", "two"):
        with Path(f"{name}.jsonl").open("a") as file:
            file.write(line + "\n")
    assert main(["validate", str(spec)]) == 2
    err = capsys.readouterr().err
    assert message in err and message.replace("one", "two") in err


def test_rows_beyond_the_limit_are_not_read(spec: Path) -> None:
    Path("one.jsonl").write_text("\n".join([*ROWS, "{broken"]))
    assert main(["validate", str(spec), "--set", "limit=5"]) == 0


def test_validate_says_what_it_did_not_read(
    spec: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_check, "MAX_BYTES", Path("one.jsonl").stat().st_size)
    assert main(["validate", str(spec)]) == 0
    assert "warning: only the first row was read of two.jsonl" in capsys.readouterr().out
