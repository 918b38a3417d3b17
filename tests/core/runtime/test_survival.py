"""Runs that are killed, or whose disk is full, go on to byte-identical results: whole processes, really killed."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.toy import TOY, results

ROOT = Path(__file__).parents[2]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT.parent)}


def command(folder: Path, repeats: int, **arguments: Any) -> list[str]:
    """The command line of a run in a process of its own."""
    args = ",".join(f"{key}={value}" for key, value in {"name": "dice", **arguments}.items())
    return [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--model", "dice", "--model_args", args,
            "--output_path", str(folder), "--quiet", "--repeats", str(repeats), "--max_concurrency", "5"]  # fmt: skip


@pytest.mark.slow
def test_kill_9_at_random_moments_gives_byte_identical_tables(tmp_path: Path) -> None:
    """The real thing: a process killed again and again until one of its successors gets through."""
    calm, wild = tmp_path / "calm" / "run", tmp_path / "wild" / "run"
    slow = {"latency": 0.02}
    subprocess.run(command(calm, 25, log=f"{tmp_path}/calm.log", **slow), cwd=TOY.root, env=ENVIRONMENT, check=True)
    chance, kills = random.Random(1), 0
    for _ in range(40):
        process = subprocess.Popen(
            command(wild, 25, log=f"{tmp_path}/wild.log", **slow),
            cwd=TOY.root,
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            _, errors = process.communicate(timeout=0.3 + 0.7 * chance.random() if kills < 6 else None)
            assert process.returncode == 0, errors.decode()
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
    assert kills >= 2
    assert results(wild) == results(calm)
    parts = (tmp_path / "wild.log").read_text().split()
    answered = (tmp_path / "calm.log").read_text().split()
    assert set(parts) == set(answered)
    # Each kill loses at most what was in flight (5 calls, and the first call of a pair not yet repaired) and what had
    # come in during the last 100 ms: 5 at a time, each after 60/7 ms on average.
    assert len(parts) <= len(answered) + kills * (10 + 5 * 100 * 7 // 60)


@pytest.mark.slow
def test_a_full_disk_stops_the_run_which_then_goes_on(tmp_path: Path) -> None:
    import resource

    def full_after(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    calm, wild = tmp_path / "calm" / "run", tmp_path / "wild" / "run"
    subprocess.run(command(calm, 2), cwd=TOY.root, env=ENVIRONMENT, check=True, capture_output=True)
    stopped = subprocess.run(
        command(wild, 2),
        cwd=TOY.root,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: full_after(9000),
    )
    assert stopped.returncode == 1, stopped.stderr
    assert "cannot write" in stopped.stderr and "Make room" in stopped.stderr and "Traceback" not in stopped.stderr
    assert (wild / "journal.jsonl").stat().st_size > 8000
    subprocess.run(command(wild, 2), cwd=TOY.root, env=ENVIRONMENT, check=True, capture_output=True)
    assert results(wild) == results(calm)
