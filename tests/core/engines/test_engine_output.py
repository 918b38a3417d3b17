"""What engines print goes to a file of the run, and the root cause of a failure is read from there."""

import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.engines.engine_output import Output, root_cause
from harness.engines.mock import Mock

PROGRAM = """
import logging, multiprocessing, os, subprocess, sys
from pathlib import Path
from harness.engines.engine_output import Output

early = logging.getLogger("vllm.early")
early.addHandler(logging.StreamHandler())  # as by an import before the run

def child():
    print("from a child", flush=True)

output = Output()
output.path = Path(sys.argv[1]) if len(sys.argv) > 1 else None
output.begin("an engine")
with output.diverted():
    print("by print")
    print("to the console", file=sys.stderr)
    os.write(1, b"by C++ to 1\\n")
    os.write(2, b"by C++ to 2\\n")
    later = logging.getLogger("vllm.later")
    later.addHandler(logging.StreamHandler())
    subprocess.run(["echo", "from a program"])
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
print("a table")
print("a note", file=sys.stderr)
early.warning("early logger")
later.warning("later logger")
output.close()
later.warning("after the end")
"""
NOISE = {"by print", "to the console", "by C++ to 1", "by C++ to 2", "from a program", "from a child"}


def play(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)


def test_all_that_is_printed_goes_to_the_file_and_the_rest_to_the_console(tmp_path: Path) -> None:
    done = play(str(tmp_path / "engine.log"))
    assert (done.stdout, done.stderr) == ("a table\n", "a note\nafter the end\n")
    title, *lines = (tmp_path / "engine.log").read_text().splitlines()
    assert title.startswith("--- an engine, 2")
    assert set(lines) == NOISE | {"early logger", "later logger"}


def test_without_a_folder_output_is_left_alone() -> None:
    done = play()
    assert set((done.stdout + done.stderr).splitlines()) >= NOISE


def test_the_commands_clean_streams_are_the_console_too(tmp_path: Path) -> None:
    begin = "from harness.cli.terminal import clean_streams\nclean_streams()\n"
    ending = PROGRAM.replace('"after the end"', r'"after \x1b[2J the end"')
    command = [sys.executable, "-c", begin + ending, str(tmp_path / "engine.log")]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("a table\n", "a note\nafter \\x1b[2J the end\n")
    assert set((tmp_path / "engine.log").read_text().splitlines()[1:]) == NOISE | {"early logger", "later logger"}


def test_a_log_that_is_a_link_is_refused_and_a_cause_shows_no_key(tmp_path: Path) -> None:
    victim, output = tmp_path / "victim", Output()
    victim.write_text("mine")
    output.path = tmp_path / "engine.log"
    output.path.symlink_to(victim)
    with pytest.raises(OSError, match="it is a symbolic link"):
        output.begin("an engine")
    assert victim.read_text() == "mine"
    output.path.unlink()
    output.begin("an engine")
    with output.path.open("a") as file:
        file.write(
            "Traceback (most recent call last):\n  x\nOSError: 401 for hf_token=sentinel at https://me:P@SS@host\n"
        )
    assert output.cause() == "401 for hf_token=… at https://…@host"
    output.close()


def test_a_second_start_appends(tmp_path: Path) -> None:
    play(str(tmp_path / "engine.log"))
    play(str(tmp_path / "engine.log"))
    assert (tmp_path / "engine.log").read_text().count("--- an engine") == 2


TWO = """
import logging, sys
from pathlib import Path
from harness.engines.engine_output import Output

outputs = [Output(), Output()]
for output, path in zip(outputs, sys.argv[1:], strict=True):
    output.path = Path(path)
    output.begin("an engine")
    with output.diverted():
        if not logging.root.handlers:
            logging.basicConfig()
            logging.getLogger("vllm").addHandler(logging.StreamHandler())
            logging.getLogger("vllm").propagate = False
for end in ("both", "one", "none"):
    logging.getLogger("vllm.worker").warning("vLLM: %s", end)
    logging.getLogger("other").warning(end)
    if outputs:
        outputs.pop().close()
"""


def test_with_one_of_two_engines_closed_loggers_write_to_the_others_file(tmp_path: Path) -> None:
    files = [tmp_path / "first.log", tmp_path / "second.log"]
    command = [sys.executable, "-c", TWO, *map(str, files)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    assert done.stderr == "vLLM: none\nWARNING:other:none\n"
    for file, end in zip(files, ("one", "both"), strict=True):
        assert file.read_text().splitlines()[1:] == [f"vLLM: {end}", f"WARNING:other:{end}"]


def test_a_run_names_the_file_before_it_starts_an_engine(tmp_path: Path) -> None:
    class Heard(Mock):
        heard: tuple[object, ...] = ()

        def log_to(self, path: Path) -> None:
            self.heard += (path,)

        async def start(self) -> None:
            self.heard += ("start",)

    engine = Heard(text="Group 1")
    harness.evaluate("agentsnet_quick", engine, limit=1, output_path=tmp_path / "run", max_error_rate=1)
    assert engine.heard == (tmp_path / "run" / "engine.log", "start")


WORKER, CORE = (
    "(VllmWorker-0 pid=9100) ERROR 11-22 03:27:06 [multiproc_executor.py:953] ",
    "(EngineCore pid=9086) ERROR 11-22 03:27:09 [core.py:1510] ",
)
FRAMES = ("Traceback (most recent call last):", '  File "x.py", line 9, in f', "    raise Error(", "          ^^^^^")
ELSEWHERE = "Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace."


def log(*parts: tuple[str, str]) -> str:
    return "".join(f"{prefix}{line}\n" for prefix, line in parts)


def trace(prefix: str, *lines: str) -> list[tuple[str, str]]:
    return [(prefix, line) for line in (*FRAMES, *lines)]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", None),
        ("INFO all is well\n", None),
        (log(("", "Loading: 100%"), *trace(WORKER, "ValueError: no memory"), *trace(CORE, ELSEWHERE)), "no memory"),
        (log(*trace(CORE, ELSEWHERE), *trace("", "KeyError: 'x'")), "KeyError: 'x'"),
        (log(*trace(CORE, ELSEWHERE)), None),
        (log((CORE, "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor."),
             *trace(CORE, "RuntimeError: cancelled")), "the process VllmWorker-0 died unexpectedly"),
        (log(*trace(WORKER, "ValueError: mine"), (CORE, "Worker proc VllmWorker-0 died unexpectedly.")), "mine"),
        (log(*trace("", "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB")),
         "OutOfMemoryError: CUDA out of memory. Tried 2 GiB"),
        (log(*trace("", "ValueError: first"), ("", ""), ("", "The above exception was the direct cause …"), ("", ""),
             *trace("", "RuntimeError: second")), "first"),
        (log(*trace(CORE, "1 validation error for X", "  wrong")), None),
        (log(*trace(CORE, "ValidationError: 1 error for X", "  it is wrong [a=1]")),
         "ValidationError: 1 error for X it is wrong [a=1]"),
        (log(*trace("", "RuntimeError: \x1b[31mred\x1b[0m\x07")), "[31mred [0m"),
        (log(*[pair for both in zip(trace(WORKER, "ValueError: mine"), trace(CORE, ELSEWHERE), strict=True)
               for pair in both]), "mine"),
    ],
)  # fmt: skip
def test_the_root_cause_is_the_first_exception_of_its_own(text: str, cause: str | None) -> None:
    assert root_cause(text) == cause


def test_a_cause_is_bounded() -> None:
    cause = root_cause(log(*trace("", f"ValueError: {'x' * 100_000}")))
    assert cause is not None and len(cause) == 300
