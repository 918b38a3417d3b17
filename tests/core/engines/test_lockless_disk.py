"""Response caches on a disk without locks: one process needs none, and a second one is refused in one line."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOY = ROOT / "tests" / "toy"


def evaluate(folder: Path, code: str, *more: str) -> subprocess.CompletedProcess[str]:
    """A run of the toy project's spec by a process that gets no locks."""
    command = [sys.executable, "-m", "tests.helpers.lockless", code, "eval", "--spec", "toy"]
    command += ["--model", "mock", "--limit", "1", "--output_path", str(folder), "--quiet", *more]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=TOY, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("code", ["ENOLCK", "EOPNOTSUPP", "EINVAL"])
def test_one_process_needs_no_locks(code: str, tmp_path: Path) -> None:
    """`--use_cache`, and the cache of `dedupe_calls` in the run's folder."""
    assert hasattr(errno, code)
    cache = tmp_path / "cache.sqlite"
    done = evaluate(tmp_path / "run", code, "--use_cache", str(cache), "--set", "dedupe_calls=true")
    assert done.returncode == 0, done.stderr
    with sqlite3.connect(cache) as kept:
        assert kept.execute("SELECT count(*) FROM answers").fetchone()[0] > 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["status"] == "finished" and record["engines"]["model"]["cache_misses"] > 0
    again = evaluate(tmp_path / "again", code, "--use_cache", str(cache), "--set", "dedupe_calls=true")
    assert again.returncode == 0, again.stderr
    assert json.loads((tmp_path / "again" / "run.json").read_text())["engines"]["model"]["cache_misses"] == 0


def test_a_second_process_is_refused_in_one_line(tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    (tmp_path / "cache.sqlite.lock").write_text('{"host": "elsewhere", "pid": 7}')  # by name alone
    done = evaluate(tmp_path / "run", "ENOLCK", "--use_cache", str(cache))
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "another process uses the response cache" in done.stderr and "its disk has no locks" in done.stderr
    assert f"rm {cache}.lock" in done.stderr
