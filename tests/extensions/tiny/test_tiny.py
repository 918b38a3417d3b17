"""The engine tiny by the command line, with a stand-in for llama.cpp's server (`stand_in/xllamacpp.py`)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.slow
STAND_IN = Path(__file__).with_name("stand_in")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    file = tmp_path / "Small.gguf"
    file.write_bytes(b"GGUF")
    return file


def play(folder: Path, model: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`harness eval` of a few questions; none of its processes is left behind."""
    arguments = [
        "eval",
        "--spec",
        "arithmetic",
        "--limit",
        "4",
        "--model",
        "tiny",
        "--output_path",
        str(folder / "run"),
    ]
    command = [sys.executable, "-m", "harness", *arguments, "--model_args", f"file={model}", *options]
    mark = f"MARK={folder}"
    path = os.pathsep.join((str(STAND_IN), str(ROOT)))
    own = {"PYTHONPATH": path, "MARK": str(folder), **environment}
    done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, cwd=ROOT)
    for process in Path("/proc").glob("[0-9]*"):
        try:
            assert mark not in (process / "environ").read_text("utf-8", "replace").split("\0"), process
        except OSError:
            continue  # it has ended meanwhile, or is of another user
    return done


def test_a_file_of_ones_own_is_played_and_its_digest_recorded(tmp_path: Path, model: Path) -> None:
    done = play(tmp_path, model, "--set", "matrix.terms=[2]")
    assert done.returncode == 0, done.stderr
    assert "Small" in done.stdout and "4 turns, 100 % parsed" in done.stderr
    run = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert run["engine_args"]["model"]["weights"] == hashlib.sha256(b"GGUF").hexdigest()
    assert run["engines"]["model"]["requests"] == 4


def test_tools_that_the_template_of_a_file_leaves_out_end_the_run(tmp_path: Path, model: Path) -> None:
    done = play(tmp_path, model, "--set", "reply_via=tool_calls")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "Small calls no tools: its chat template has" in done.stderr and "Say reply_via: text" in done.stderr


def test_a_run_whose_server_was_killed_says_so_and_goes_on_with_the_same_command(tmp_path: Path, model: Path) -> None:
    done = play(tmp_path, model, ANSWERS="6")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "llama.cpp's server has ended (exit status -9)" in done.stderr
    again = play(tmp_path, model)
    assert again.returncode == 0, again.stderr
    assert "12 turns, 100 % parsed" in again.stderr


def test_a_file_that_is_no_model_is_refused_with_the_servers_words(tmp_path: Path, model: Path) -> None:
    model.write_bytes(b"PK")
    done = play(tmp_path, model)
    assert done.returncode != 0 and "Traceback" not in done.stderr.splitlines()
    assert f"llama.cpp's server did not start with {model} (exit status 1)" in done.stderr
    assert "invalid magic characters" in done.stderr


def test_a_missing_file_and_a_missing_package_are_mistakes_of_one_line(tmp_path: Path, model: Path) -> None:
    done = play(tmp_path, tmp_path / "none.gguf")
    assert done.returncode != 0 and f"there is no file {tmp_path / 'none.gguf'}" in done.stderr
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['xllamacpp'] = None\n")
    done = play(tmp_path, model, PYTHONPATH=os.pathsep.join((str(tmp_path), str(ROOT))))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "pip install 'mas-eval-harness[tiny]'" in done.stderr
