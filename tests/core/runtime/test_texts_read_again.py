"""`harness score` reads recorded texts again: a move is what its text says, or the episode is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate, storage
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from tests.helpers.journals import sealed
from tests.helpers.toy import TOY


def forged(folder: Path, change: Any) -> None:
    """Change the first move with a text of a run's journal; its checksums are right again, and so is its length."""
    journal = folder / "journal.jsonl"
    lines = [dict(line) for _, line in storage.lines(journal)]
    change(next(line for line in lines if line["k"] == "move" and line.get("calls")))
    journal.write_bytes(sealed(*lines))
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**meta, "journals": {"journal.jsonl": journal.stat().st_size}}))


def text(line: dict[str, Any]) -> None:
    line["calls"][-1]["text"] = "Vote: b" if line["calls"][-1]["text"] == "a" else "a"


def garbage(line: dict[str, Any]) -> None:
    line["calls"][-1]["text"] = "\x00"


@pytest.mark.parametrize("change", [text, garbage])
def test_a_text_that_says_something_else_names_its_episode(tmp_path: Path, change: Any) -> None:
    run = evaluate("toy", Mock(text="b"), limit=1, project=TOY, output_path=tmp_path / "r")
    assert rescored(run.folder, TOY).scores
    forged(run.folder, change)
    with pytest.raises(DataError, match=r"the reply of \S+ in '\w+' is recorded as \"b\", and its text"):
        rescored(run.folder, TOY)


def test_texts_of_other_forms_are_not_read_again(tmp_path: Path) -> None:
    """What another version of harness has read is what was played then."""
    run = evaluate("toy", Mock(text="b"), limit=1, project=TOY, output_path=tmp_path / "r")
    forged(run.folder, text)
    meta = json.loads((run.folder / "run.json").read_text())
    for readers in ("0" * 64, None):
        (run.folder / "run.json").write_text(
            json.dumps({k: v for k, v in {**meta, "reply_code": readers}.items() if v})
        )
        again = rescored(run.folder, TOY)
        assert again.scores and not again.meta["graded_again"][-1]["texts_read"]
