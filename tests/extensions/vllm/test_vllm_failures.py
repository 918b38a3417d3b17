"""What a user reads when vLLM does not start, through the command line, with a package that stands in for vLLM's."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.extensions.vllm._vllm_failures import killed_process
from tests.extensions.vllm.fake_vllm import make

ROOT = Path(__file__).parents[3]


def start(package: Path, *more: str) -> "subprocess.Popen[str]":
    """`harness eval --model vllm`, where `package` is the first folder on the path; the run's folder is `run` in it."""
    model = package / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    command = [
        *(sys.executable, "-m", "harness", "eval", "--spec", "specs/agentsnet_quick.yaml", "--limit", "1"),
        *("--model", "vllm", "--model_args", f"pretrained={model}", "--output_path", str(package / "run"), *more),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(ROOT)))}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)


def evaluate(package: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """`start` to its end."""
    process = start(package, *more)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.mark.slow
def test_one_line_with_the_root_cause_and_all_the_rest_in_the_log(tmp_path: Path) -> None:
    done = evaluate(make(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    error = [line for line in done.stderr.splitlines() if not line.startswith("agentsnet_quick · ")]
    assert error[0] == (
        f"error: vLLM cannot load '{tmp_path}/model': No available memory for the cache blocks; "
        f"its output: {tmp_path}/run/engine.log"
    )
    assert len(error) == 2 and "gpu_memory_utilization" in error[1]
    log = (tmp_path / "run" / "engine.log").read_text()
    assert log.count("by print") == 2 and "by C++" in log and "Traceback" in log
    assert json.loads((tmp_path / "run" / "run.json").read_text())["engines"]["model"]["platform"] == "cuda"


@pytest.mark.slow
def test_a_version_outside_the_range_is_warned_of_before_anything_fails(tmp_path: Path) -> None:
    done = evaluate(make(tmp_path, "0.40.0"), "--quiet")
    warning, error, _ = done.stderr.splitlines()
    assert warning == "vLLM 0.40.0 was not checked with this engine; those from 0.20 to 0.33 were"
    assert error.startswith("error: vLLM cannot load")


@pytest.mark.slow
def test_a_version_that_lacks_something_says_what(tmp_path: Path) -> None:
    done = evaluate(make(tmp_path, "0.40.0", without="enable_prefix_caching"))
    assert done.returncode == 2
    assert "unexpected keyword argument 'enable_prefix_caching'" in done.stderr
    assert "Install vLLM 0.20 to 0.33" in done.stderr


@pytest.mark.slow
def test_what_only_requests_need_is_missed_before_the_model_loads(tmp_path: Path) -> None:
    done = evaluate(make(tmp_path, "0.40.0", without="FINAL_ONLY", start="print('loading')"))
    assert done.returncode == 2 and "error: vLLM cannot load" in done.stderr
    assert "has no attribute 'FINAL_ONLY'" in done.stderr and "Install vLLM 0.20 to 0.33" in done.stderr
    assert "loading" not in (tmp_path / "run" / "engine.log").read_text()


FAILS_WITH_A_PROCESS = """
        import multiprocessing, signal
        multiprocessing.get_context("fork").Process(target=signal.pause).start()
        raise RuntimeError("too late")
"""
START = """
import asyncio, os, sys
from harness.extensions.vllm.vllm import VLLM
from harness.api.errors import SetupError

try:
    asyncio.run(VLLM(pretrained=sys.argv[1]).start())
except SetupError as error:
    print(error)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no process is left, running or dead")
"""


@pytest.mark.slow
def test_a_failed_start_leaves_no_dead_process_behind(tmp_path: Path) -> None:
    path = os.pathsep.join((str(make(tmp_path, start=FAILS_WITH_A_PROCESS)), str(ROOT)))
    command = [sys.executable, "-c", START, "a/model"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert "too late" in done.stdout and done.stdout.endswith("\nno process is left, running or dead\n"), done


@pytest.mark.slow
def test_a_build_without_a_device_says_so(tmp_path: Path) -> None:
    done = evaluate(make(tmp_path, device=""))
    assert done.returncode == 2 and "vLLM 0.32.0 finds no device" in done.stderr


@pytest.mark.slow
def test_a_process_that_is_killed_is_named(tmp_path: Path) -> None:
    words = "Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}"
    done = evaluate(make(tmp_path, start=f"raise RuntimeError({words!r})"))
    error = [line for line in done.stderr.splitlines() if not line.startswith("agentsnet_quick · ")]
    assert done.returncode == 2 and "the process EngineCore_DP0 was killed by SIGKILL" in error[0]
    assert "memory has run out" in error[1]


def test_a_signal_without_a_name_is_reported_by_its_number() -> None:
    assert killed_process("{'EngineCore_DP0': -40}", ()) == "the process EngineCore_DP0 was killed by signal 40"


LOADS = {
    "in python": """
        import time
        print("loading", flush=True)
        while True:
            time.sleep(0.01)
""",
    "deaf": """
        import ctypes, sys
        print("loading", flush=True)
        while True:
            try:
                ctypes.CDLL(None).sleep(600)
            except BaseException:
                pass
""",
    "in a process": """
        import multiprocessing, time
        print("loading", flush=True)
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        child.start()
        print("child", child.pid, flush=True)
        child.join()
        raise RuntimeError("Engine core initialization failed. See root cause above.")
""",
    "and starts processes when it was given up": """
        import multiprocessing, time
        print("loading", flush=True)
        time.sleep(0.3)
        child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
        child.start()
        child.join()
        time.sleep(600)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("load", LOADS)
def test_a_signal_while_it_loads_ends_the_run_at_once(tmp_path: Path, load: str, sent: signal.Signals) -> None:
    """Each of these would load for ten minutes, or forever."""
    process = start(make(tmp_path, start=LOADS[load].strip("\n").removeprefix("        ")))
    log = tmp_path / "run" / "engine.log"
    while not (log.exists() and ("child " if load == "in a process" else "loading") in log.read_text()):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.02)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
    assert "stopped; 0 of" in err and "To go on:" in err and "Traceback" not in err and out == ""
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "stopped"
    for word in log.read_text().splitlines():
        if word.startswith("child "):
            with pytest.raises(ProcessLookupError):
                os.kill(int(word.split()[1]), 0)


@pytest.mark.slow
def test_batch_invariance_is_asked_for_on_a_gpu(tmp_path: Path) -> None:
    begin = "import os; raise RuntimeError(f\"invariant: {os.environ.get('VLLM_BATCH_INVARIANT')}\")"
    done = evaluate(make(tmp_path, start=begin), "--model_args", f"pretrained={tmp_path}/model,deterministic=true")
    assert "cannot load" in done.stderr and "invariant: 1" in done.stderr
