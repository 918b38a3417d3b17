"""What reaches the screen and a run's folder: no terminal is driven, no formula runs, no symbolic link is followed."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness.api.errors
from harness.api.errors import StorageError
from harness.api.printable import clean, clean_name, csv_cell
from harness.extensions.charts.message_counts import MessageCount, written
from harness.storage import Journal, write_atomically
from tests.helpers.fake_openai import FakeOpenAI, status

TOY = Path(__file__).parents[2] / "toy"
DRIVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egpj.exe\r"


@pytest.fixture(autouse=True)
def in_toy() -> Iterator[None]:
    with contextlib.chdir(TOY):
        yield


def printed(*arguments: str, **environment: str) -> tuple[int, str]:
    """(exit code, stdout and stderr) of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "surrogateescape")


@pytest.mark.slow
def test_a_servers_error_drives_no_terminal_and_shows_no_key(tmp_path: Path) -> None:
    output = f"{EVIL}wrong key sentinel-key-1, go to https://tok-1234@host"
    with FakeOpenAI(faults=lambda body: status(401, output)) as server:
        arguments = f"model=fake,base_url={server.url},extra_body={{api_token: sentinel-body-1}}"
        command = ["eval", "--spec", "toy", "--model", "openai", "--model_args", arguments]
        code, text = printed(*command, "--output_path", str(tmp_path / "run"), OPENAI_API_KEY="sentinel-key-1")
    assert code == 1 and "wrong key" in text and r"\x1b]0;owned\x07" in text
    files = {
        file: file.read_text() for file in (tmp_path / "run").iterdir() if file.suffix in (".json", ".jsonl", ".yaml")
    }
    assert DRIVES.search(text) is None
    for secret in ("sentinel-key-1", "sentinel-body-1", "tok-1234"):
        assert secret not in text
        assert [file.name for file, content in files.items() if secret in content] == []


@pytest.mark.slow
def test_requests_that_a_server_refuses_are_counted_beside_the_score(tmp_path: Path) -> None:
    """A wrong parameter of the request, say: every answer is missing, and the table alone shows a weak model."""
    with FakeOpenAI(faults=lambda body: status(400, "no such parameter")) as server:
        arguments = f"model=fake,base_url={server.url}"
        command = ["eval", "--spec", "toy", "--model", "openai", "--model_args", arguments, "--limit", "1"]
        more = "--output_path", str(tmp_path / "run"), "--max_error_rate", "1"
        _, text = printed(*command, *more, OPENAI_API_KEY="x")
    count = json.loads((tmp_path / "run" / "run.json").read_text())["engines"]["model"]["requests"]
    assert f"fake: {count} turns, 0 % parsed ({count} refused)" in text and "journal" in text


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", f"{EVIL}.yaml"],
        ["eval", "--spec", EVIL],
        ["report", f"/nowhere/{EVIL}"],
        ["list", "tasks", f"--{EVIL}"],
        [EVIL],
        ["eval", "--spec", "toy", "--model", "mock", "--model_args", f"{EVIL}=1"],
    ],
)
def test_names_in_a_command_drive_no_terminal(arguments: list[str]) -> None:
    code, text = printed(*[argument.replace("\x00", "") for argument in arguments])
    assert code == 2 and r"\x1b" in text and DRIVES.search(text) is None


@pytest.mark.slow
def test_a_specs_name_and_its_progress_drive_no_terminal(tmp_path: Path) -> None:
    title = json.dumps(f"T{EVIL}")
    spec = tmp_path / f"x{EVIL}.yaml"
    tables = f"tables: [{{title: {title}, rows: model, metrics: agreed}}]"
    spec.write_text(f"extends: toy\nname: evil\ndescription: {title}\n{tables}\n")
    for command in (
        ["validate"],
        ["plan", "--spec"],
        ["show", "--spec"],
        ["eval", "--output_path", str(tmp_path / EVIL), "--spec"],
    ):
        code, text = printed(*command, str(spec))
        assert code == 0 and DRIVES.search(text) is None, text
    assert r"\x1b" in text and "Agreement" not in text


def test_a_bugs_traceback_and_a_warning_drive_no_terminal() -> None:
    script = (
        "import sys, warnings\nfrom harness.cli.terminal import clean_streams\nclean_streams()\n"
        f"warnings.warn({EVIL!r})\nprint({EVIL!r})\nsys.stderr.writelines([{EVIL!r}])\nraise RuntimeError({EVIL!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert DRIVES.search(done.stdout + done.stderr) is None
    assert "warning: \\x1b]0;owned" in done.stderr and "RuntimeError: \\x1b]0;owned" in done.stderr


@given(st.text(st.characters()))
def test_a_clean_text_drives_nothing_and_says_the_same(text: str) -> None:
    output = clean(text)
    assert DRIVES.search(output) is None and clean(output) == output
    assert output.count("\n") == text.count("\n") and output.count("\t") == text.count("\t")
    assert "\n" not in clean_name(text) and clean_name(text).encode().decode().splitlines() in ([clean_name(text)], [])
    if text.isprintable():
        assert output == text == clean_name(text)


BLANKS = st.text(" \t\n\u00a0\u2003\u3000", max_size=3)


@given(
    BLANKS,
    st.sampled_from("=+-@＝＋－＠﹦﹢﹣﹫⁼⁺−"),
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"])),
)
def test_no_cell_of_a_csv_file_is_a_formula(blanks: str, first: str, rest: str) -> None:
    assert str(csv_cell(f"{blanks}{first}{rest}")).lstrip().startswith(("'", "\\"))
    row = next(
        csv.DictReader(io.StringIO(written([MessageCount(f"{blanks}{first}", "a", "b", 1, 1)], "csv"), newline=""))
    )
    assert row["episode"].lstrip().startswith(("'", "\\"))


def test_ordinary_cells_stay_what_they_are() -> None:
    for value in ("gpt-4o", "a=1", "3", 3, -1.5, None, "", "*", "é"):
        assert csv_cell(value) == value


def test_a_file_is_written_through_no_link(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "run.json"
    victim.write_text("mine")
    (tmp_path / ".run.json.part").symlink_to(victim)
    target.symlink_to(victim)
    write_atomically(target, "new")
    assert victim.read_text() == "mine" and target.read_text() == "new" and not target.is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.json", "victim"]


def test_a_journal_that_is_a_link_is_refused(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "journal.jsonl").symlink_to(victim)
    with pytest.raises(StorageError, match="it is a symbolic link"):
        Journal(tmp_path / "journal.jsonl")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["run.json", ".run.json.part", "journal.jsonl", ".lock", "scores.jsonl", "tables.md", "samples.jsonl"]
)
def test_a_run_follows_no_link_in_its_folder(tmp_path: Path, name: str) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "run"
    victim.write_text("mine\nhalf a line")
    folder.mkdir()
    (folder / name).symlink_to(victim)
    with contextlib.suppress(harness.api.errors.UserError):
        harness.evaluate("toy", output_path=folder, log_samples=True, resume=False)
    assert victim.read_text() == "mine\nhalf a line"


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    write_atomically(link, "x")
    assert link.is_symlink() and sorted(file.name for file in tmp_path.iterdir()) == ["null"]
