"""Commands in processes of their own: signals, terminals, closed streams, what they import."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import ROOT


def as_from_a_terminal() -> None:
    """In a new process: SIGHUP ends it, also where these tests run under `nohup`, which it would inherit."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("sent", "before", "code"),
    [
        (signal.SIGINT, [], 130),
        (signal.SIGTERM, [], 143),
        (signal.SIGHUP, [], 129),
        (signal.SIGTERM, ["-c", "trap '' INT; exec \"$@\"", "sh"], 143),  # as in the background of a script
    ],
)
def test_ctrl_c_and_sigterm_stop_cleanly_and_say_how_to_go_on(
    tmp_path: Path, sent: signal.Signals, before: list[str], code: int
) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "dice",
               "--model_args", "latency=0.2", "--output_path", str(tmp_path / "r"),
               "--repeats", "30", "--max_concurrency", "2"]  # fmt: skip
    command = ["/bin/sh", *before, *command] if before else command
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=as_from_a_terminal
    )
    assert process.stderr is not None
    first = process.stderr.readline()  # the first progress line: the run is under way
    assert "episodes" in first
    if before:
        process.send_signal(signal.SIGINT)  # ignored, as it was meant
    process.send_signal(sent)
    _, err = process.communicate()
    assert process.returncode == code
    assert (
        "of 240 episodes are in" in err
        and "To go on:" in err
        and "harness eval --spec toy" in err
        and "Traceback" not in err
    )
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"


INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

wanted = sys.argv[1]

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv[:2] = ["harness"]
runpy.run_module("harness", run_name="__main__")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("module", ["harness.cli", "argparse", "harness.cli.evaluate", "harness.config.spec", "jinja2"])
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(tmp_path: Path, module: str) -> None:
    command = [
        sys.executable,
        "-c",
        INTERRUPTED_IMPORT,
        module,
        "eval",
        "--spec",
        "toy",
        "--output_path",
        str(tmp_path),
    ]
    done = subprocess.run(command, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "\nstopped.\n")


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    """Nothing can be printed there any more, and run.json still says how it ended."""
    above, below = os.openpty()
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "dice", "--model_args",
               "latency=0.2", "--output_path", str(tmp_path / "r"), "--repeats", "30",
               "--max_concurrency", "2"]  # fmt: skip
    attach = [sys.executable, "-c", "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
              "os.execv(sys.argv[1], sys.argv[1:])"]  # fmt: skip
    process = subprocess.Popen(
        [*attach, *command],
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        stdin=below,
        stdout=below,
        stderr=below,
        start_new_session=True,
        preexec_fn=as_from_a_terminal,
    )
    os.close(below)
    journal = tmp_path / "r" / "journal.jsonl"
    while not (journal.exists() and journal.stat().st_size):  # the run is under way
        assert process.poll() is None
    os.close(above)
    assert process.wait(60) == 129
    assert json.loads((tmp_path / "r" / "run.json").read_text())["status"] == "stopped"


@pytest.mark.slow
def test_output_may_be_cut_by_a_pipe() -> None:
    command = f"{sys.executable} -m harness schema | head -1"
    done = subprocess.run(
        ["bash", "-c", command], env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True
    )
    assert done.stderr == b""


def bash(command: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", command.replace("harness ", f"{sys.executable} -m harness ")],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "</dev/null"])
def test_closed_streams_are_no_reason_to_fail(tmp_path: Path, redirection: str) -> None:
    done = bash(f"harness eval --spec toy --output_path {tmp_path}/r {redirection}")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "r" / "tables.md").is_file()


def test_a_full_disk_behind_stdout_is_reported(tmp_path: Path) -> None:
    done = bash("harness schema > /dev/full")
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


@pytest.mark.slow
def test_a_terminal_without_the_signs_shows_their_codes(tmp_path: Path) -> None:
    done = bash(f"harness eval --spec toy --limit 1 --output_path {tmp_path}/r", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0 and "(\\u2013)" in done.stdout and "\\xb7" in done.stderr


@pytest.mark.sampled(1)
@pytest.mark.parametrize("command", ["list tasks", "validate", "--help", "plan --spec toy"])
def test_light_commands_import_nothing_heavy(command: str) -> None:
    heavy = ["torch", "vllm", "datasets", "pandas", "scipy", "numpy", "openai", "networkx", "matplotlib"]
    code = (
        "import sys\nfrom harness.cli import main\n"
        f"try: main({command.split()!r})\nexcept SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.stderr.strip().endswith("[]"), done.stderr
