"""run.json, whatever stands in it: a run's readers refuse it in words, or read it, and never fail with a traceback."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import UserError
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY

STRANGE: list[Any] = [None, [], "x", [1], {"a": []}]
OPTIONAL = {"stopped", "judges", "graded_again", "earlier", "session_start", "executor"}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records") / "r"
    harness.evaluate("toy", limit=1, output_path=folder, project=TOY)
    return folder


@pytest.fixture(autouse=True)
def in_toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixture of the module would leave the working directory to whatever runs between its tests."""
    monkeypatch.chdir(TOY.root)


@pytest.mark.slow
def test_a_strange_record_is_refused_in_words(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = played / "run.json"
    whole = json.loads(path.read_text("utf-8"))
    refused = set()
    try:
        for key in sorted(whole.keys() | OPTIONAL):
            for value in STRANGE:
                path.write_text(json.dumps({**whole, key: value}), "utf-8")
                code, _, err = invoke(capsys, "leaderboard", str(played))
                assert code in (0, 1, 2) and "Traceback" not in err, (key, value, err)
                if "not a run's record" in err:
                    assert key in err and str(path) in err
                    refused.add(key)
                    continue
                for read in (rescored, load_run, lambda folder, project: load_run(folder, project).rows):
                    path.write_text(json.dumps({**whole, key: value}), "utf-8")
                    with contextlib.suppress(UserError):
                        read(played, TOY)
    finally:
        path.write_text(json.dumps(whole), "utf-8")
    assert {"journals", "code", "cases", "engines", "duration", "identity", "versions"} <= refused


def test_a_damaged_journal_is_named_beside_the_tables(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = played / "journal.jsonl"
    whole = journal.read_bytes()
    tables = invoke(capsys, "report", str(played))
    assert tables[0] == 0 and tables[2] == ""
    try:
        for damaged, says in (
            (whole.replace(b'"k":"move"', b'"k":"Move"', 1), f"{journal}:1: the line is not as it was written"),
            (whole[: len(whole) // 2], f"{journal} was cut"),
            (b"", f"{journal} was cut"),
        ):
            journal.write_bytes(damaged)
            code, out, err = invoke(capsys, "report", str(played))
            assert (code, out) == tables[:2] and says in err and "those of scores.jsonl" in err
    finally:
        journal.write_bytes(whole)


def test_a_session_lasts_as_long_as_it_did_whatever_the_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runtime.run_json.time.time", lambda: 0.0)
    assert harness.evaluate("toy", limit=1, output_path=tmp_path / "r", project=TOY).meta["duration"] > 0
