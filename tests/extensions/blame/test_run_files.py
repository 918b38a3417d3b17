"""What stands under the name of a run's file: a pipe, a link, a folder or a huge file is an error, and never a wait."""

import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from harness.api.errors import DataError
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.extensions.blame.who_broke_it.reader_opinions import asked_about
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY, run
from tests.helpers.viewing import get, serving

_PATIENCE: Final = 20.0
"""Seconds after which a reader that waits for a pipe is let go: the test fails, and does not hang."""
BY = "{use: coin, bias: 1.0}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that `harness blame` has looked at."""
    return run(tmp_path_factory.mktemp("whole") / "run", overrides=("baseline.bias=0.5", "agents=null"))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def link(path: Path) -> None:
    path.with_name("elsewhere").write_text("{}")
    path.symlink_to("elsewhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse


ODD: list[Callable[[Path], None]] = [pipe, link_to_pipe, link, loop, folder, huge]


@contextmanager
def nobody_waits(path: Path) -> Iterator[None]:
    """Within it, a reader that waits for a writer of the pipe is let go after a while, and the test fails."""
    waited = list[bool]()

    def let_go() -> None:
        waited.append(True)
        for one in (path, path.with_name("elsewhere")):
            if one.is_fifo():
                os.close(os.open(one, os.O_RDWR))

    timer = threading.Timer(_PATIENCE, let_go)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    assert not waited, "a reader waited for a writer of the pipe"


def replaced(whole: Run, to: Path, name: str, odd: Callable[[Path], None]) -> Path:
    """A copy of the run in which something else stands under the name."""
    shutil.copytree(whole.folder, to)
    (to / name).unlink(missing_ok=True)
    odd(to / name)
    return to


@pytest.mark.sampled(1)
@pytest.mark.parametrize("odd", ODD, ids=lambda one: one.__name__)
def test_blame_json_that_is_no_file_is_named_by_all_that_read_it(
    whole: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    odd: Callable[[Path], None],
) -> None:
    monkeypatch.chdir(TOY.root)
    run_folder = replaced(whole, tmp_path / "run", "blame.json", odd)
    where = str(run_folder / "blame.json")
    with nobody_waits(run_folder / "blame.json"):
        code, out, err = invoke(capsys, "blame", str(run_folder), "--reference", BY, "--quiet")
        assert code == 0 and "Episodes" in out and f"{where}: " in err, "what was found is printed all the same"
        code, _, err = invoke(capsys, "plot", str(run_folder), "--kind", "blame", "-o", str(tmp_path / "blame.svg"))
        assert code == 2 and f"{where}: " in err
        with pytest.raises(DataError, match=re.escape(where)):
            next(asked_about(run_folder))
        rows = [*load_run(run_folder, TOY).episodes()]
        assert len(rows) == len(whole.scores) and not any(row.get("blame") for row in rows)
        assert any(where in record.getMessage() for record in caplog.records), "a warning says what is left out"
        with serving(tmp_path) as client:
            assert get(client, "/run/episode", episode=whole.scores[0].id)["findings"] == []
        page = ("report", str(run_folder), "--format", "html", "-o", str(tmp_path / "page.html"))
        assert invoke(capsys, *page)[0] == 0
    assert (os.path.lexists(where) and not (run_folder / "blame.json").is_file()) or odd in (link, huge)


READERS = [
    ("report", "RUN"),
    ("report", "RUN", "--format", "html", "-o", "PAGE"),
    ("score", "RUN"),
    ("compare", "RUN", "RUN"),
    ("blame", "RUN", "--reference", BY),
    ("replay", "RUN", "--episode", "agents=2/c0/0"),
    ("plot", "RUN", "--kind", "failures", "-o", "PLOT"),
    ("export", "RUN", "--to", "csv", "-o", "OUT"),
]
FILES = ["run.json", "spec.yaml", "scores.jsonl", "journal.jsonl", "results.json", "tables.json", "errors.jsonl"]
FILES += ["blame.json", "credit.json"]


@pytest.mark.sampled
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", READERS, ids=lambda command: f"{command[0]}{READERS.index(command)}")
def test_no_command_waits_for_a_pipe_in_a_run(
    whole: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    name: str,
) -> None:
    monkeypatch.chdir(TOY.root)
    run_folder = replaced(whole, tmp_path / "run", name, pipe)
    own = {"RUN": run_folder, "PAGE": tmp_path / "page.html", "PLOT": tmp_path / "plot.svg", "OUT": tmp_path / "out"}
    with nobody_waits(run_folder / name):
        code, _, err = invoke(capsys, *(str(own.get(word, word)) for word in command))
    assert "Traceback" not in err
    assert code == 0 or str(run_folder) in err, "an error names the place"
